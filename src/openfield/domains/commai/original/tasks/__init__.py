"""The older task sets with the rules of the original and our own wording, under the class names of the original.

Start with `base.py`, the task that erases interruptions. User code builds micro tasks from
`task_generator.py` and `challenge_micro.py`. `LEGACY` says where the class of each task is, by set and short name.
"""

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
    group: {short_name(name): (f"{__name__}.{module}", name) for name in names.split()}
    for group, (module, names) in _MODULES.items()
}
"""The module and the class of each task, by set and short name."""

__all__ = ["LEGACY", "short_name"]
