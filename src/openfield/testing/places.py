"""Compares what stands in every place of what is shown, in the usual world and in a changed one.

Part of the conformance kit; `leaks.py` judges the differences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from openfield.core import Truth, Turn
from openfield.journal.steps import ENCODER, SMALL_ARRAY
from openfield.testing.secrets import parts_of

LEAST_TURNS = 5
"""In each of the two worlds, before a value that never varies is more than chance."""
MOST_ELEMENTS = 4096
"""Of one array; where more of them differ a picture has changed, and no flag was hidden in it."""
Place = tuple[str, ...]
"""What kind of turn it is, as agents see it, then the way to a value through keys and `[numbers]`."""


class Difference(NamedTuple):
    """What a place is in the usual world and in the changed one, in the form it is compared in; `b""` is nothing."""

    usual: bytes
    changed: bytes
    turns: tuple[int, int]


Differences = Mapping[Place, Difference]


class Constants:
    """What stands in every place of some turns, as long as it is always the same."""

    def __init__(self) -> None:
        self._values: dict[Place, bytes] = {}
        self._varying: set[Place] = set()
        self._turns: Counter[Place] = Counter()
        self._arrays: dict[Place, tuple[Any, Any]] = {}  # the first one seen, and where all others equal it

    def see(self, turn: Turn) -> None:
        """Takes in a turn."""
        kind = f"{turn.ask.value}, {turn.phase}, {'first, ' * turn.first}{turn.last or 'going on'}"
        self._look((kind,), {"observation": turn.observation, "feedback": turn.feedback})

    def joined(self, other: Constants) -> Constants:
        """What is the same in these turns and those."""
        both = Constants()
        both._turns = self._turns + other._turns
        both._varying = self._varying | other._varying
        both._values = self._values | other._values
        shared = self._values.keys() & other._values.keys()
        both._varying |= {place for place in shared if self._values[place] != other._values[place]}
        both._arrays = self._arrays | other._arrays
        for place in self._arrays.keys() & other._arrays.keys():
            (first, same), (again, there) = self._arrays[place], other._arrays[place]
            both._arrays[place] = first, _agree(first, same, again, there)
        return both

    def differences(self, changed: Constants) -> dict[Place, Difference]:
        """The places that are always one thing here and always another there."""
        found: dict[Place, Difference] = {}
        for place in self._turns.keys() | changed._turns.keys():
            usual, other = self._constant(place), changed._constant(place)
            if usual is not None and other is not None and usual != other:
                found[place] = Difference(usual, other, (self._met(place), changed._met(place)))
        return found | dict(self._elements(changed))

    def _look(self, place: Place, value: Any) -> None:
        self._turns[place] += 1
        if place not in self._varying:
            encoded = ENCODER.encode(value)
            if self._values.setdefault(place, encoded) != encoded:
                self._varying.add(place)
        if isinstance(value, np.ndarray) and value.size > SMALL_ARRAY:
            self._look_closely(place, value)
        for name, part in parts_of(value):
            self._look((*place, name), part)

    def _look_closely(self, place: Place, array: np.ndarray[Any, Any]) -> None:
        first, same = self._arrays.get(place, (array.copy(), np.ones(array.shape, dtype=bool)))
        self._arrays[place] = first, _agree(first, same, array)

    def _constant(self, place: Place) -> bytes | None:
        """What a place always is: nothing, where it is missing from something that is there; None if it varies."""
        turns, around = self._turns[place], self._turns[place[:-1]]
        if place in self._varying or 0 < turns < around:
            return None
        if turns:
            return self._values[place]
        return b"" if around and not place[-1].startswith("[") else None

    def _met(self, place: Place) -> int:
        return self._turns[place] or self._turns[place[:-1]]

    def _elements(self, changed: Constants) -> Iterator[tuple[Place, Difference]]:
        for place in self._arrays.keys() & changed._arrays.keys():
            (usual, same), (other, there) = self._arrays[place], changed._arrays[place]
            if usual.shape != other.shape:
                continue
            telling = np.argwhere(same & there & (usual != other))
            for where in map(tuple, telling if len(telling) <= MOST_ELEMENTS else ()):
                values = ENCODER.encode(usual[where]), ENCODER.encode(other[where])
                name = "".join(f"[{number}]" for number in where)
                yield (*place, name), Difference(*values, (self._met(place), changed._met(place)))


def sort_turns(turns: Sequence[Turn], truths: Sequence[Truth]) -> tuple[Constants, Constants]:
    """What never varies in the usual world, and in the changed one."""
    usual, changed = Constants(), Constants()
    for turn, truth in zip(turns, truths, strict=True):
        (changed if truth.novel else usual).see(turn)
    return usual, changed


def in_both(one: Differences, other: Differences) -> dict[Place, Difference]:
    """The differences that two pairs of worlds have alike."""
    return {
        place: Difference(a.usual, a.changed, (a.turns[0] + b.turns[0], a.turns[1] + b.turns[1]))
        for place, a in one.items()
        if (b := other.get(place)) is not None and a[:2] == b[:2]
    }


def in_all(found: Iterable[Differences]) -> set[Place]:
    """Places that are the same in the usual world and the same in every changed one: they name no novelty but all."""
    first, *others = found
    return {place for place, one in first.items() if all(one[:2] == other.get(place, ())[:2] for other in others)}


def says_yes_or_no(place: Place, difference: Difference) -> bool:
    """Whether nothing more can be read there than one of two things, by its key alone.

    An item of a list is not judged: a cell of a map may well become a wall.
    """
    return not any(part.startswith("[") for part in place) and all(_is_plain(value) for value in difference[:2])


def innermost(places: Iterable[Place]) -> list[Place]:
    """The places that have no other one inside, each once and in order, whatever kind of turn it was seen in."""
    found = {place[1:]: place for place in sorted(places, reverse=True)}
    outer = {path[:depth] for path in found for depth in range(1, len(path))}
    return [place for path, place in sorted(found.items()) if path not in outer]


def is_certain(difference: Difference) -> bool:
    """Whether enough turns speak for it."""
    return min(difference.turns) >= LEAST_TURNS


def describe(place: Place, difference: Difference, novelties: Sequence[str]) -> str:
    """A difference in words."""
    path = ".".join(place[1:]).replace(".[", "[")
    usual, changed = (_say(value) for value in difference[:2])
    return f"{path} is {changed} exactly when the world is novel ({', '.join(novelties)}), and {usual} otherwise"


def _agree(first: Any, same: Any, array: Any, there: Any = True) -> Any:
    """Where an array equals the first one, and all others so far did here and there; nowhere if its shape differs."""
    return same & there & (first == array) if first.shape == array.shape else np.zeros(first.shape, dtype=bool)


def _is_plain(encoded: bytes) -> bool:
    """Whether a value is nothing, yes, no, or so many times the same of these."""
    leaves = set(_leaves(msgspec.msgpack.decode(encoded))) if encoded else set()
    return len(leaves) <= 1 and leaves <= {None, 0, 1}


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _leaves(part)
    else:
        yield value


def _say(encoded: bytes) -> str:
    value = msgspec.msgpack.decode(encoded) if encoded else None
    text = repr(value) if encoded else "not there"
    if len(text) <= 40:
        return text
    return f"{type(value).__name__} of {len(value)}" if isinstance(value, (list, dict)) else f"{text[:39]}…"
