"""From a function that draws to all that it can draw: a tree of its draws, with a result at every end.

A draw among few options is followed to every option by calling the function again. A draw among many, such as a word,
becomes a slot: the function gets symbols that stand for whatever will be drawn, and they end up in the texts it makes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from openfield.errors import InvalidInput

T = TypeVar("T")
_FIRST = 0x4E00
"""The first symbol of slots: a letter, as those of the texts it stands for, and one that no task says."""
_WHOLE, _HEAD, _TAIL = range(3)


@dataclass(frozen=True)
class SlotDraw:
    """Draws texts that all differ into slots that follow each other."""

    options: Sequence[str]
    count: int
    slot: int
    avoids: bool = False
    """Whether a text that contains a code word is drawn again."""


@dataclass(frozen=True)
class Leaf(Generic[T]):
    """An end of the tree."""

    slots: list[SlotDraw]
    """Draws since the last choice."""
    result: T


@dataclass(frozen=True)
class Branches(Generic[T]):
    """A choice: among all branches alike, or the first with a chance and else the second."""

    slots: list[SlotDraw]
    """Draws since the last choice."""
    chance: float | None
    branches: list[Tree[T]]


Tree = Leaf[T] | Branches[T]


class Tracer(random.Random):
    """A generator whose draws are decided beforehand. The first that is not ends the call."""

    def __init__(self, decisions: Sequence[int], slot: int) -> None:
        super().__init__(0)
        self._decisions = iter(decisions)
        self._slot = slot
        self.slots: list[SlotDraw] = []

    def random(self) -> float:
        """Return a number that asks for a decision when it is used."""
        return _Undecided(self)

    def decide(self, options: int, chance: float | None = None) -> int:
        """Return the next decision."""
        for decision in self._decisions:
            self.slots = []
            return decision
        raise _ForkError(options, chance)

    def fill(self, options: Sequence[str], count: int = 1, avoids: bool = False) -> list[int]:
        """Draw into new slots and return their numbers."""
        first, self._slot = self._slot, self._slot + count
        self.slots.append(SlotDraw(options, count, first, avoids))
        return list(range(first, first + count))


def trace(draw: Callable[[Tracer], T], slot: int = 0, decisions: tuple[int, ...] = ()) -> Tree[T]:
    """Return the tree of a function's draws.

    Args:
        draw: The function. It must do the same whenever its draws are the same.
        slot: The first slot that is free.
        decisions: The choices on the way to this part of the tree.
    """
    tracer = Tracer(decisions, slot)
    try:
        result = draw(tracer)
    except _ForkError as fork:
        branches = [trace(draw, slot, (*decisions, option)) for option in range(fork.options)]
        return Branches(tracer.slots, fork.chance, branches)
    return Leaf(tracer.slots, result)


def stand_for(slot: int) -> str:
    """Return the symbol that stands for the text in a slot."""
    return chr(_FIRST + 3 * slot + _WHOLE)


def stand_for_letters(slot: int) -> str:
    """Return a word of two letters that stands for any word.

    If a function puts something between the two, it puts it between all letters of the word.
    """
    return chr(_FIRST + 3 * slot + _HEAD) + chr(_FIRST + 3 * slot + _TAIL)


class Literal(NamedTuple):
    """A part of a text that is always the same."""

    text: str


class SlotText(NamedTuple):
    """A part of a text that is in a slot; a mark stands between its letters if there is one."""

    slot: int
    mark: str = ""


def split_text(text: str) -> list[Literal | SlotText]:
    """Return the parts of a text with slots."""
    parts: list[Literal | SlotText] = []
    at = plain = 0
    while at < len(text):
        slot, role = divmod(ord(text[at]) - _FIRST, 3)
        if slot < 0:
            at += 1
            continue
        if plain < at:
            parts.append(Literal(text[plain:at]))
        size = 1 if role == _WHOLE else text.find(chr(_FIRST + 3 * slot + _TAIL), at, at + 3) - at + 1
        if role == _TAIL or size < 1:
            raise InvalidInput(f"{text!r} cannot be compiled: a word in it was changed other than by marks.")
        parts.append(SlotText(slot, text[at + 1 : at + size - 1]))
        at = plain = at + size
    if plain < len(text):
        parts.append(Literal(text[plain:]))
    return parts


class _ForkError(Exception):
    """A draw that has no decision yet."""

    def __init__(self, options: int, chance: float | None) -> None:
        super().__init__(options)
        self.options, self.chance = options, chance


class _Undecided(float):
    """A draw. Its use shows how many options it has."""

    tracer: Tracer

    def __new__(cls, tracer: Tracer) -> _Undecided:
        made = super().__new__(cls)
        made.tracer = tracer
        return made

    def __mul__(self, options: float) -> int:
        return self.tracer.decide(int(options))

    def __lt__(self, chance: float) -> bool:
        return self.tracer.decide(2, chance) == 0
