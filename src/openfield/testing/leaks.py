"""Look for the truth in what an agent is shown: named outright, or given away by what differs in a changed world.

Part of the conformance kit. It walks through everything an agent receives, leaf by leaf. `world.py` decides which
differences are leaks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import numpy as np

from openfield.core import Spec, Truth, Turn
from openfield.novelty import Novelty
from openfield.record import ENCODER, SMALL_ARRAY
from openfield.trial import Trial

TELLING = frozenset({"novel", "novelty", "novelties", "is_novel", "truth", "onset"})
"""Keys that say by their name what an agent must find out."""
MIN_WORD_LENGTH = 4
MIN_NUMBER = 10_000
"""Shorter words and smaller numbers occur by themselves."""
Leaf = tuple[str, Any, bool]
"""Where something is shown, what, and whether it is a key."""
MIN_TURNS = 5
"""The turns needed in each of the two worlds before a value that never varies is more than chance."""
MAX_ELEMENTS = 4096
"""The elements of one array that may differ; where more do, a picture has changed and hides no flag."""
KeyPath = tuple[str, ...]
"""The kind of turn, as agents see it, then the keys and `[numbers]` that lead to a value."""


def find_named(turns: Sequence[Turn], spec: Spec, trial: Trial, novelties: Iterable[Novelty[Any]]) -> Iterator[str]:
    """Yield everything shown that names a novelty, the trial, its seed, or a phase other than training and test."""
    known = set(list_spec_words(spec))
    names = {name for novelty in novelties for name in (novelty.id, novelty.name)} - known
    secrets = {*names, trial.id, str(trial.seed)}
    for number, turn in enumerate(turns):
        if turn.phase not in ("training", "test"):
            yield f"turn {number} shows the phase '{turn.phase}'; only training and test may be shown"
        for path, leaf, is_key in chain(walk(turn.observation, "observation"), walk(turn.feedback, "feedback")):
            if is_key and leaf in TELLING:
                yield f"turn {number} shows a key '{leaf}' ({path})"
            if str(leaf) in secrets or (isinstance(leaf, str) and secrets & set(_words(leaf))):
                yield f"turn {number} shows '{leaf}' ({path})"


def find_detail(turn: Turn, truth: Truth, known: frozenset[str], shown: Iterable[str]) -> Iterator[str]:
    """Yield values of the truth's detail that the observation also shows, unless `shown` declares their keys."""
    hidden = {str(leaf) for leaf in _distinctive(truth.detail, frozenset(shown))} - known
    for path, leaf, is_key in walk(turn.observation, "observation"):
        if not is_key and hidden and (str(leaf) in hidden or (isinstance(leaf, str) and hidden & set(_words(leaf)))):
            yield f"{path} shows '{leaf}', which the truth's detail holds"


def list_spec_words(spec: Spec) -> Iterator[str]:
    """Yield the texts of a spec, and each of their words."""
    for _, leaf, _ in walk(msgspec.to_builtins(spec), "spec"):
        if isinstance(leaf, str):
            yield leaf
            yield from _words(leaf)


def walk(value: Any, path: str) -> Iterator[Leaf]:
    """Yield all keys and leaves of a value. Large arrays are skipped."""
    parts = parts_of(value)
    for name, part in parts:
        is_key = not name.startswith("[")
        inner = f"{path}.{name}" if is_key else f"{path}{name}"
        if is_key:
            yield inner, name, True
        yield from walk(part, inner)
    if not parts and not _is_container(value):
        yield path, _plain(value), False


def parts_of(value: Any) -> list[tuple[str, Any]]:
    """Return the parts of a value: fields by name, items by `[number]`. A value without parts gives an empty list."""
    if isinstance(value, dict):
        return [(str(key), part) for key, part in value.items()]
    if isinstance(value, msgspec.Struct):
        return [(name, getattr(value, name)) for name in value.__struct_fields__]
    if is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, np.ndarray) and value.ndim > 0 and value.size <= SMALL_ARRAY:
        value = value.tolist()
    if isinstance(value, (list, tuple, set, frozenset)):
        return [(f"[{number}]", part) for number, part in enumerate(value)]
    return []


def _is_container(value: Any) -> bool:
    return isinstance(value, (dict, list, tuple, set, frozenset, msgspec.Struct)) or (
        isinstance(value, np.ndarray) and value.ndim > 0
    )


def _plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.item()
    return bytes(value).decode(errors="replace") if isinstance(value, (bytes, bytearray)) else value


def _distinctive(detail: Any, shown: frozenset[str]) -> Iterator[str | int]:
    """Yield the values of a detail that would not occur elsewhere by chance."""
    if isinstance(detail, dict):
        detail = {key: value for key, value in detail.items() if key not in shown}
    for _, leaf, is_key in walk(detail, "detail"):
        long = isinstance(leaf, str) and len(leaf) >= MIN_WORD_LENGTH
        large = isinstance(leaf, int) and abs(leaf) >= MIN_NUMBER
        if not is_key and (long or large):
            yield leaf


def _words(text: str) -> list[str]:
    """Return the words of a text, and the pairs of words that a colon joins."""
    return re.findall(r"[\w-]+(?::[\w-]+)?", text) + re.findall(r"[\w-]+", text)


class Difference(NamedTuple):
    """The encoded value at a key path in the usual and in the changed world; `b""` if it is missing there."""

    usual: bytes
    changed: bytes
    turns: tuple[int, int]
    """How many turns of either world show it."""


Differences = Mapping[KeyPath, Difference]


class Constants:
    """The values that are the same in every turn of some turns, by key path."""

    def __init__(self) -> None:
        self._values: dict[KeyPath, bytes] = {}
        self._varying: set[KeyPath] = set()
        self._turns: Counter[KeyPath] = Counter()
        self._arrays: dict[KeyPath, tuple[Any, Any]] = {}  # the first one seen, and where all others equal it
        self._orders: dict[KeyPath, Counter[tuple[str, ...]]] = {}  # of the same keys

    def add(self, turn: Turn) -> None:
        """Add a turn."""
        kind = f"{turn.ask.value}, {turn.phase}, {'first, ' * turn.first}{turn.last or 'going on'}"
        self._look((kind,), {"observation": turn.observation, "feedback": turn.feedback})

    def join(self, other: Constants) -> Constants:
        """Return the values that are the same in these turns and in those."""
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
        for place in self._orders.keys() | other._orders.keys():
            both._orders[place] = self._orders.get(place, Counter()) + other._orders.get(place, Counter())
        return both

    def compare(self, changed: Constants) -> dict[KeyPath, Difference]:
        """Return the key paths with one constant value here and another one there."""
        found: dict[KeyPath, Difference] = {}
        for place in self._turns.keys() | changed._turns.keys():
            usual, other = self._constant(place), changed._constant(place)
            if usual is not None and other is not None and usual != other:
                found[place] = Difference(usual, other, (self._met(place), changed._met(place)))
        return found | dict(self._elements(changed)) | dict(self._reordered(changed))

    def _look(self, place: KeyPath, value: Any) -> None:
        self._turns[place] += 1
        if place not in self._varying:
            encoded = ENCODER.encode(value)
            if self._values.setdefault(place, encoded) != encoded:
                self._varying.add(place)
        if isinstance(value, np.ndarray) and value.size > SMALL_ARRAY:
            first, same = self._arrays.get(place, (value.copy(), np.ones(value.shape, dtype=bool)))
            self._arrays[place] = first, _agree(first, same, value)
        if isinstance(value, dict) and len(value) > 1:
            keys = tuple(map(str, value))
            self._orders.setdefault((*place, f"other order of {', '.join(sorted(keys))}"), Counter())[keys] += 1
        for name, part in parts_of(value):
            self._look((*place, name), part)

    def _constant(self, place: KeyPath) -> bytes | None:
        """Return the constant value at a key path; `b""` if the key is always missing, None if the value varies."""
        turns, around = self._turns[place], self._turns[place[:-1]]
        if place in self._varying or 0 < turns < around:
            return None
        if turns:
            return self._values[place]
        return b"" if around and not place[-1].startswith("[") else None

    def _met(self, place: KeyPath) -> int:
        return self._turns[place] or self._turns[place[:-1]]

    def _reordered(self, changed: Constants) -> Iterator[tuple[KeyPath, Difference]]:
        """Yield where the same keys come in another order."""
        for place in self._orders.keys() & changed._orders.keys():
            usual, other = self._orders[place], changed._orders[place]
            if not usual.keys() & other.keys():
                turns = usual.total(), other.total()
                yield place, Difference(ENCODER.encode(False), ENCODER.encode(True), turns)

    def _elements(self, changed: Constants) -> Iterator[tuple[KeyPath, Difference]]:
        for place in self._arrays.keys() & changed._arrays.keys():
            (usual, same), (other, there) = self._arrays[place], changed._arrays[place]
            if usual.shape != other.shape:
                continue
            telling = np.argwhere(same & there & (usual != other))
            for where in map(tuple, telling if len(telling) <= MAX_ELEMENTS else ()):
                values = ENCODER.encode(usual[where]), ENCODER.encode(other[where])
                name = "".join(f"[{number}]" for number in where)
                yield (*place, name), Difference(*values, (self._met(place), changed._met(place)))


def find_constants(turns: Sequence[Turn], truths: Sequence[Truth]) -> tuple[Constants, Constants]:
    """Return the constants of the turns of the usual world, and those of the changed one."""
    usual, changed = Constants(), Constants()
    for turn, truth in zip(turns, truths, strict=True):
        (changed if truth.novel else usual).add(turn)
    return usual, changed


def intersect(one: Differences, other: Differences) -> dict[KeyPath, Difference]:
    """Return the differences that two pairs of worlds share, with their turns added up."""
    return {
        place: Difference(a.usual, a.changed, (a.turns[0] + b.turns[0], a.turns[1] + b.turns[1]))
        for place, a in one.items()
        if (b := other.get(place)) is not None and a[:2] == b[:2]
    }


def find_common(found: Iterable[Differences]) -> set[KeyPath]:
    """Return the key paths with the same difference for every novelty: they reveal that there is one, not which."""
    first, *others = found
    return {place for place, one in first.items() if all(one[:2] == other.get(place, ())[:2] for other in others)}


def is_binary(place: KeyPath, difference: Difference) -> bool:
    """Return whether the key can only say yes or no.

    An item of a list is not judged: a cell of a map may well become a wall.
    """
    return not any(part.startswith("[") for part in place) and all(_is_plain(value) for value in difference[:2])


def pick_innermost(places: Iterable[KeyPath]) -> list[KeyPath]:
    """Return the key paths that contain no other one, each once and in order, whatever the kind of turn."""
    found = {place[1:]: place for place in sorted(places, reverse=True)}
    outer = {path[:depth] for path in found for depth in range(1, len(path))}
    return [place for path, place in sorted(found.items()) if path not in outer]


def describe_difference(place: KeyPath, difference: Difference, novelties: Sequence[str]) -> str:
    """Return a difference in words."""
    path = ".".join(place[1:]).replace(".[", "[")
    usual, changed = (_say(value) for value in difference[:2])
    return f"{path} is {changed} exactly when the world is novel ({', '.join(novelties)}), and {usual} otherwise"


def _agree(first: Any, same: Any, array: Any, there: Any = True) -> Any:
    """Return where an array equals the first one and all so far; nowhere if its shape differs."""
    return same & there & (first == array) if first.shape == array.shape else np.zeros(first.shape, dtype=bool)


def _is_plain(encoded: bytes) -> bool:
    """Return whether a value is missing, yes, no, or a repetition of one of these."""
    found = walk(msgspec.msgpack.decode(encoded), "") if encoded else ()
    leaves = {leaf for _, leaf, is_key in found if not is_key}
    return len(leaves) <= 1 and leaves <= {None, 0, 1}


def _say(encoded: bytes) -> str:
    value = msgspec.msgpack.decode(encoded) if encoded else None
    text = repr(value) if encoded else "not there"
    if len(text) <= 40:
        return text
    return f"{type(value).__name__} of {len(value)}" if isinstance(value, (list, dict)) else f"{text[:39]}…"
