"""Questions with their answers and feedback, and where an instance gets them from: drawn at random or from a script.

Tasks deal rounds, instances ask them; a script replaces the dealing and leaves everything else as it is.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import msgspec

from openfield.errors import InvalidInput


class Round(msgspec.Struct, frozen=True, gc=False):
    """A question, what a perfect learner answers (terminator included), and what the teacher says then."""

    question: str
    answer: str
    right: str = ""
    """Feedback after a correct answer."""
    wrong: str = ""
    """Feedback after a wrong answer."""
    accepts: Callable[[str], bool] | None = None
    """Which answers are correct; only `answer` itself if None."""


class RoundSource(Protocol):
    """Where the rounds of one instance come from."""

    @property
    def keys(self) -> Sequence[str]:
        """All questions there can be; empty if that is no fixed set."""
        ...

    def draw(self) -> Round:
        """The next round."""
        ...


class RoundScript:
    """Rounds written down beforehand, one list per instance, asked in exactly this order.

    Args:
        instances: The rounds of each instance; a plain `(question, answer, feedback)` serves as a round whose feedback
            does not depend on the answer.
        keys: All questions there could have been, one list per instance, for criteria that count them; those that
            occur if not given.
    """

    def __init__(
        self,
        instances: Iterable[Iterable[Round | tuple[str, str] | tuple[str, str, str]]],
        keys: Sequence[Sequence[str]] | None = None,
    ) -> None:
        self._instances = [[_round(entry) for entry in entries] for entries in instances]
        self._keys = keys
        self._dealt = 0

    def deal(self) -> ScriptedRounds:
        """The rounds of the next instance."""
        number = self._dealt
        if number >= len(self._instances):
            raise InvalidInput(f"The script has {len(self._instances)} instances; one more was started.")
        self._dealt += 1
        return ScriptedRounds(self._instances[number], self._keys[number] if self._keys else None, number)


class ScriptedRounds:
    """The scripted rounds of one instance."""

    def __init__(self, rounds: Sequence[Round], keys: Sequence[str] | None, number: int) -> None:
        self.keys: Sequence[str] = keys if keys is not None else sorted({entry.question for entry in rounds})
        self._rounds = iter(rounds)
        self._complaint = f"Instance {number} of the script has {len(rounds)} questions; one more was answered."

    def draw(self) -> Round:
        """The next round; after the last, silence, whose answer nobody has written down."""
        return next(self._rounds, None) or Round("", ".", accepts=self._complain)

    def _complain(self, answer: str) -> bool:
        raise InvalidInput(self._complaint)


class UniformRounds:
    """Draws rounds uniformly and puts them back."""

    __slots__ = ("_random", "_rounds")

    def __init__(self, rounds: Sequence[Round], rng: random.Random) -> None:
        self._rounds, self._random = rounds, rng.random

    @property
    def keys(self) -> Sequence[str]:
        """All questions."""
        return [entry.question for entry in self._rounds]

    def draw(self) -> Round:
        """Any of the rounds."""
        return self._rounds[int(self._random() * len(self._rounds))]


class ShuffledRounds(UniformRounds):
    """Deals rounds like cards: several copies of each, shuffled anew when all are gone."""

    __slots__ = ("_copies", "_left")

    def __init__(self, rounds: Sequence[Round], rng: random.Random, copies: int) -> None:
        self._rounds, self._random = rounds, rng.random
        self._copies = copies
        self._left: list[Round] = []

    def draw(self) -> Round:
        """The next card. Drawing from a random place is the same as shuffling first, and takes a third of the time."""
        left = self._left
        if not left:
            left = self._left = [*self._rounds] * self._copies
        at = int(self._random() * len(left))
        card, last = left[at], left.pop()
        if card is not last:
            left[at] = last
        return card


def _round(entry: Round | tuple[str, str] | tuple[str, str, str]) -> Round:
    if isinstance(entry, Round):
        return entry
    question, answer, feedback = (*entry, "")[:3]
    return Round(question, answer, feedback, feedback)
