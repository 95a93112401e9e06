"""The older task sets: their names, and where their classes are.

The classes are written with the decorators of the original, in `original/tasks/`. They are named here as text, because
that package stands above this one and is imported only when a curriculum has such a task.
"""

from __future__ import annotations

from importlib import import_module

from openfield.domains.commai.environment.task import Task

ORIGINAL = "openfield.domains.commai.original"
TASKS = f"{ORIGINAL}.tasks"
_MODULES = {
    "repetition": (
        "repetition",
        "BeSilentTask RepeatCharacterTask RepeatWhatISayTask RepeatWhatISay2Task RepeatWhatISayMultipleTimesTask "
        "RepeatWhatISayMultipleTimes2Task RepeatWhatISayMultipleTimesSeparatedByCommaTask "
        "RepeatWhatISayMultipleTimesSeparatedByAndTask RepeatWhatISayMultipleTimesSeparatedByCATask "
        "RepeatWhatISayDisjunction RepeatWhatISayConjunctionNegation VerbTask",
    ),
    "counting": ("objects_properties", "SimpleCountingTask"),
    "objects_properties": (
        "objects_properties",
        "ObjectExistenceTask1 ObjectExistenceTask2 AssociateObjectWithPropertyTask VerifyThatObjectHasPropertyTask "
        "ListPropertiesOfAnObjectTask NameAPropertyOfAnObjectTask HowManyPropertiesDoesAnObjectHaveTask "
        "ListObjectsWithACertainPropertyTask NameAnObjectWithAPropertyTask HowManyObjectsHaveACertainPropertyTask "
        "WhoHasACertainObjectWithACertainPropertyTask ListThePropertiesThatAnObjectHasInABasketOnlyTask "
        "ListThePropertiesThatAnObjectHasInAllBasketsTask",
    ),
    "navigation": (
        "navigation",
        "TurningTask MovingTask MovingRelativeTask MovingAbsoluteTask PickUpTask PickUpAroundTask PickUpInFrontTask "
        "GivingTask PickUpAroundAndGiveTask CountingInventoryTask CountingInventoryGivingTask LookTask LookAroundTask "
        "FindObjectAroundTask",
    ),
    "small": ("repetition", "Repeat1V1LTask Repeat3V1LTask Repeat3V2LTask"),
    "sample": (
        "sample",
        "RepeatingCharTask YesNoTask BeSilentTask RepeatingPhraseTask SampleConflictingMessagesTask MovingTask "
        "TurnLeftTask TurnRightTask LookAroundTask PickAnApple UnicodeTask",
    ),
}


def short_name(name: str) -> str:
    """Return the name of a task by the name of its class: without `Task`, and without `Sample` before it."""
    return name.replace("Task", "").removeprefix("Sample")


LEGACY: dict[str, dict[str, tuple[str, str]]] = {
    group: {short_name(name): (f"{TASKS}.{module}", name) for name in names.split()}
    for group, (module, names) in _MODULES.items()
}
"""The module and the class of each task, by set and short name."""


def make_legacy(name: str, place: tuple[str, str], kind: str) -> Task:
    """Make a task of an older set."""
    made: Task = import_module(f"{ORIGINAL}.hosting").make_hosted(
        getattr(import_module(place[0]), place[1]), name, kind
    )
    return made
