"""Questions with their answers and feedback, and the sources an instance draws them from: random, shuffled or scripted.

A micro instance asks the rounds of its source one by one. A script replaces the source and changes nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import NamedTuple

import msgspec

from openfield.errors import InvalidInput


class Round(msgspec.Struct, frozen=True, gc=False):
    """One question, the answer of a perfect learner with its terminator, and the feedback."""

    question: str
    answer: str
    right: str = ""
    """Feedback after a correct answer."""
    wrong: str = ""
    """Feedback after a wrong answer."""
    accepts: Callable[[str], bool] | None = None
    """Tells whether an answer is correct; None accepts only `answer`."""


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
