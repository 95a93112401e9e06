"""Tasks, their instances and the stage: a task starts instances, and each hears symbols and speaks on a stage.

Authors subclass `Task` and `Instance`. Only the environment calls them, and it is the stage. The rounds of an instance,
which are questions with their answers and feedback, come from a source: random, shuffled or scripted.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import NamedTuple, Protocol

import msgspec

from openfield.domains.commai.environment.grid_world import GridWorld
from openfield.domains.commai.environment.serializers import Scrambler
from openfield.domains.commai.settings import CommaiSettings
from openfield.errors import InvalidInput

SILENCE = " "
BYTES = tuple(map(chr, range(256)))
Prices = Mapping[str | None, int | None]
"""The reward of a symbol said while the teacher talks; None calls `overhear` to find out."""

ASKED: Prices = {**dict.fromkeys(BYTES), SILENCE: 0, None: 0}
"""Every interruption calls `overhear`."""
PENALISED: Prices = {**dict.fromkeys(BYTES, -1), SILENCE: 0, None: 0}
"""Every interruption costs a point."""
DOTS_ASKED: Prices = {**dict.fromkeys(BYTES, 0), ".": None, None: 0}
"""Dots call `overhear`; other symbols are lost."""


class Stage(Protocol):
    """The side of the environment that a task sees."""

    rng: random.Random
    settings: CommaiSettings
    serializer: Scrambler | None
    """Encodes what the teacher says; an answer must be decoded before it is judged."""
    penalties: int
    """Interruptions so far that had a price."""

    @property
    def unsaid(self) -> int:
        """Symbols left to say before only spaces remain."""
        ...

    def say(self, text: str, priority: int = 1) -> None:
        """Queue a text behind the unsaid rest, or drop it if that rest has a higher priority."""
        ...

    def finish(self, result: bool, text: str = "", pays: bool = True) -> None:
        """End the instance with a verdict; `pays` gives it to the learner as a reward."""
        ...


class Instance:
    """One run of a task, from its first symbol to its verdict. Its state ends with it.

    `hear` and `overhear` return the immediate reward of the symbol: -1, 0 or 1.
    """

    prices: Prices = ASKED
    marks: str = ""
    """One `+` or `-` per answered question; empty if the instance has only its verdict."""
    original: bool | None = None
    """The verdict of the original criterion, where a strict one decides."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def hear(self, symbol: str) -> int:
        """Take a symbol said while the teacher was silent."""
        return 0

    def overhear(self, symbol: str) -> int:
        """Take a symbol said while the teacher was talking. Called only if `prices` has None for it."""
        return 0

    def time_out(self) -> None:
        """End the instance because its time is up; it fails unless a subclass decides otherwise."""
        self.stage.finish(False)

    def hint(self) -> str:
        """Return what a perfect learner says when the teacher is silent; empty for silence."""
        return ""


class Task(ABC):
    """A kind of exercise. Its fields may carry state from instance to instance, never between environments."""

    max_time: int = 10_000
    """Steps after which an instance times out, as soon as there is nothing left to say."""
    separator: bool = True
    """Whether one space is said between the end of an instance and the next."""
    minimum_threshold: int = 1
    """Solved instances that a strict curriculum asks for at least."""

    def __init__(self, name: str = "", world: GridWorld | None = None) -> None:
        self.name = self.kind = name or type(self).__name__
        self.world = world

    @abstractmethod
    def start(self, stage: Stage) -> Instance:
        """Begin an instance and queue its first message."""


class Round(msgspec.Struct, frozen=True, gc=False):
    """One question, the answer of a perfect learner with its terminator, and the feedback."""

    question: str
    answer: str
    right: str = ""
    """Feedback after a correct answer."""
    wrong: str = ""
    """Feedback after a wrong answer."""
    accepts: Callable[[str], bool] | None = None
    """Judges whether an answer is correct; None accepts only `answer`."""


class RoundSource(NamedTuple):
    """Gives the rounds of one instance."""

    draw: Callable[[], Round]
    keys: Sequence[str] = ()
    """All possible questions; empty if they are not a fixed set."""


class RoundScript:
    """Rounds written down beforehand, one list per instance, asked in exactly this order.

    Args:
        instances: The rounds of each instance. A plain `(question, answer, feedback)` is a round with the same
            feedback to every answer.
        keys: All possible questions, one list per instance, for criteria that count them; by default those that occur.
    """

    def __init__(
        self,
        instances: Iterable[Iterable[Round | tuple[str, str] | tuple[str, str, str]]],
        keys: Sequence[Sequence[str]] | None = None,
    ) -> None:
        self._instances = [[_round(entry) for entry in entries] for entries in instances]
        self._keys = keys
        self._dealt = 0

    def deal(self) -> RoundSource:
        """Return the rounds of the next instance. After the last one, every answer is an error."""
        number = self._dealt
        if number >= len(self._instances):
            raise InvalidInput(f"The script has {len(self._instances)} instances, and one more was started.")
        self._dealt += 1
        rounds = self._instances[number]
        keys = self._keys[number] if self._keys else sorted({entry.question for entry in rounds})

        def refuse(answer: str) -> bool:
            raise InvalidInput(
                f"Instance {number} of the script has {len(rounds)} questions, and one more was answered."
            )

        left, silence = iter(rounds), Round("", ".", accepts=refuse)
        return RoundSource(lambda: next(left, silence), keys)


def draw_uniformly(rounds: Sequence[Round], rng: Random) -> RoundSource:
    """Return a source that draws uniformly, with replacement."""
    random, count = rng.random, len(rounds)
    return RoundSource(lambda: rounds[int(random() * count)], [entry.question for entry in rounds])


def draw_shuffled(rounds: Sequence[Round], rng: Random) -> RoundSource:
    """Return a source that asks each of n rounds n times before it starts again.

    Drawing from a random place is the same as shuffling first, and takes a third of the time.
    """
    random = rng.random
    left: list[Round] = []

    def draw() -> Round:
        if not left:
            left.extend([*rounds] * len(rounds))
        at = int(random() * len(left))
        drawn, last = left[at], left.pop()
        if drawn is not last:
            left[at] = last
        return drawn

    return RoundSource(draw, [entry.question for entry in rounds])


def _round(entry: Round | tuple[str, str] | tuple[str, str, str]) -> Round:
    if isinstance(entry, Round):
        return entry
    question, answer, feedback = (*entry, "")[:3]
    return Round(question, answer, feedback, feedback)
