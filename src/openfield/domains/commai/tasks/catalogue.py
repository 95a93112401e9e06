"""Every task by its id, in the order of the challenge's curriculum.

Each call of `make_task` makes a new task, so no two environments share one. Schedulers and configuration files get
their tasks here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from openfield.domains.commai.environment.task import Task
from openfield.domains.commai.tasks import mapping, phrases
from openfield.domains.commai.tasks.draws import load_phrasebook
from openfield.domains.commai.tasks.legacy import LEGACY, make_legacy
from openfield.domains.commai.tasks.mapping import LETTERS, DigitsTask, LettersTask, Relation, Shape
from openfield.domains.commai.tasks.micro import KnowAfter, KnowAtOnce, KnowByElimination
from openfield.domains.commai.tasks.mini import MINI
from openfield.domains.commai.tasks.phrases import MixedTask, PhraseTask, ReworkedTask, RoundMaker
from openfield.errors import UnknownName

Factory = Callable[[str], Task]

_SHAPES = msgspec.convert(load_phrasebook().shapes, dict[str, Shape])
_PHRASES: dict[str, RoundMaker] = {
    "micro7.1": phrases.say_letter,
    "micro7.2": phrases.say_word,
    "micro7.3": phrases.say_two_words,
    "micro8": phrases.say_without_spaces,
    "micro9.1": phrases.spell_letter,
    "micro9.2": phrases.spell_word,
    "micro9.3": phrases.interleave_word,
    "micro10": phrases.say_several,
    "micro11": phrases.combine_pairs,
    "micro12": phrases.combine_sets,
    "micro13.1": phrases.decide_letters,
    "micro13.2": phrases.decide_words,
    "micro14": phrases.follow_letter,
}
_MIXED = (phrases.spell_word, phrases.say_several, phrases.combine_pairs, phrases.combine_sets)
_REWORDED = (phrases.say_several, phrases.combine_pairs, phrases.combine_sets, phrases.follow_letter)


MICRO: dict[str, Factory] = {
    "micro1": mapping.ConstantTask,
    "micro2": partial(LettersTask, answers=Relation.ONE, rule=KnowAfter(len(LETTERS), LETTERS)),
    "micro3": partial(LettersTask, answers=Relation.OTHERS, rule=KnowByElimination(len(LETTERS), LETTERS)),
    "micro4": partial(LettersTask, answers=Relation.SAME, rule=KnowAtOnce(), mixed=True),
    **{name: partial(DigitsTask, shape=shape) for name, shape in _SHAPES.items()},
    "micro6": mapping.WordMapTask,
    **{name: partial(PhraseTask, make=make) for name, make in _PHRASES.items()},
    "micro15": mapping.SequenceTask,
    "micro16": partial(MixedTask, makers=_MIXED),
    "micro19": partial(ReworkedTask, makers=_REWORDED, rework=phrases.use_synonyms),
    "micro20": partial(ReworkedTask, makers=_REWORDED, rework=phrases.use_code_word, coded=True),
}
_LEGACY: dict[str, Factory] = {
    f"{group}.{name}": partial(make_legacy, place=place, kind=f"{group}.{name}")
    for group, tasks in LEGACY.items()
    for name, place in tasks.items()
}
CATALOGUE: dict[str, Factory] = {**MICRO, **MINI, **_LEGACY}
GROUPS: dict[str, tuple[str, ...]] = {
    "all": (*MICRO, *MINI),
    "micro": tuple(MICRO),
    "mini": tuple(MINI),
    **{group: tuple(f"{group}.{name}" for name in tasks) for group, tasks in LEGACY.items()},
}


def task_ids(wanted: Iterable[str]) -> list[str]:
    """Return the task ids that ids and group names stand for.

    Raises:
        UnknownName: There is no such task.
    """
    ids: list[str] = []
    for name in wanted:
        if name not in GROUPS and name not in CATALOGUE:
            group = name.partition(".")[0]
            raise UnknownName("task", name, GROUPS.get(group, (*GROUPS, *MICRO, *MINI)), label="Known")
        ids.extend(GROUPS.get(name, (name,)))
    return ids


def make_task(name: str) -> Task:
    """Make a new task by its id."""
    return CATALOGUE[task_ids([name])[0]](name)
