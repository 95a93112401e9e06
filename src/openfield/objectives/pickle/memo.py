"""What entries read in bulk put into a pickle's memo and take from it, followed for thousands of entries at once.

Under `records`. Memo numbers rise throughout a file; reading stops before the first that does not, and before a
reference to something that is not there yet.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from openfield.objectives.pickle.number_forms import BYTE, FRACTION, Flags, Forms, Ints
from openfield.objectives.pickle.scalars import ABSENT, Scalars

IMPLICIT = -2
"""In place of a memo number: the next one."""


class Special(NamedTuple):
    """Those of many integers that are NumPy numbers or go through the memo."""

    at: Ints
    """Which of the integers."""
    keys: Ints
    """The memo numbers a NumPy number and its parts were put under, (3, n): bytes, pair, number."""
    refs: Ints
    """The memo number each is taken from; ABSENT if it is spelled out."""
    raws: Ints
    """The memo number its one byte is taken from, or ABSENT. Until that is known, its value is 1 if it is signed."""
    single: Flags
    """Whether it is made of one byte."""

    def take(self, chosen: Ints) -> Special:
        """Those at the chosen places, numbered by where they are among them."""
        at = np.searchsorted(chosen, self.at)
        kept = (at < len(chosen)) & (np.append(chosen, ABSENT)[at] == self.at)
        return Special(at[kept], self.keys[:, kept], self.refs[kept], self.raws[kept], self.single[kept])


class Atoms(NamedTuple):
    """Integers read at many places at once."""

    values: Ints
    lengths: Ints
    """0 where no integer could be read."""
    special: Special | None = None
    """None where all are plain."""
    forms: Forms | None = None
    """What the values stand for; None where all are integers."""

    def take(self, chosen: Ints) -> Atoms:
        """Those at the chosen places, which rise."""
        if len(chosen) == len(self.values):
            return self
        special = self.special.take(chosen) if self.special else None
        forms = None if self.forms is None else self.forms[chosen]
        return Atoms(self.values[chosen], self.lengths[chosen], special, forms)


def follow_memo(scalars: Scalars, parts: list[Atoms], tuple_keys: Ints) -> int:
    """How many entries can be followed; their numbers are kept, and those they refer to are filled in.

    Args:
        scalars: The memo, which is brought to where it is after those entries.
        parts: Inputs, actions, next inputs and counts of the entries, or the two numbers of a code book's.
        tuple_keys: The memo number of each key, put after its three parts; IMPLICIT, or ABSENT if it has none.
    """
    way = _Way(parts, tuple_keys, scalars.puts)
    risen = way.rising(scalars.top)
    places, values, forms = way.made()
    inside = np.searchsorted(places, risen)
    scalars.extend(way.numbers[places[:inside]], values[:inside], forms[:inside])
    size = int(np.searchsorted(way.ends, risen, side="right"))
    limits = np.append(scalars.top, way.numbers)  # limits[k] is the number put last before put k
    for part, at, raws, place in way.bytes_asked:
        texts, kinds, found = scalars.find_many(raws)
        part.values[at] = texts - ((texts >> 7 & part.values[at]) << 8)
        size = _before(size, at[~(found & (kinds == BYTE) & (raws <= limits[place]))])
    for part, at, place in way.late if way.bytes_asked else ():
        known = place < risen
        scalars.amend(way.numbers[place[known]], part.values[at[known]])
    for part, at, refs, place in way.asked:
        part.values[at], kinds, found = scalars.find_many(refs)
        if part.forms is not None:
            part.forms[at] = kinds
        size = _before(size, at[~(found & (kinds != BYTE) & (refs <= limits[place]))])
    for part in parts[:3]:  # a key is made of integers
        if part.forms is not None:
            size = _before(size, np.flatnonzero(part.forms == FRACTION))
    done = int(way.ends[size - 1]) if size else 0
    scalars.puts, scalars.top = scalars.puts + done, int(limits[done])
    scalars.forget_after(scalars.top)
    return size


def _before(size: int, wrong: Ints) -> int:
    """How many entries come before the first wrong one."""
    return min(size, int(wrong[0])) if len(wrong) else size


class _Way:
    """All puts of some entries in the order of the file."""

    def __init__(self, parts: list[Atoms], tuple_keys: Ints, puts: int) -> None:
        slots = [_slots(part) for part in parts]
        keyed = np.flatnonzero(tuple_keys != ABSENT)
        tuples = [(keyed if len(keyed) < len(tuple_keys) else slice(None), tuple_keys[keyed])] if len(keyed) else []
        made = np.zeros(len(tuple_keys), np.int64)
        for at, _ in [slot for each in slots for slot in each] + tuples:
            made[at] += 1
        self.ends = np.cumsum(made)
        """How many puts there are up to the end of each entry."""
        self.numbers = np.empty(int(made.sum()), np.int64)
        """The memo number of each put."""
        self.asked: list[tuple[Atoms, Ints, Ints, Ints]] = []
        """For each part the entries that refer to the memo, to which numbers, and how many puts come before."""
        self.bytes_asked: list[tuple[Atoms, Ints, Ints, Ints]] = []
        """The same for NumPy numbers whose byte is in the memo."""
        self.late: list[tuple[Atoms, Ints, Ints]] = []
        """Where NumPy numbers are put: for each part the entries and the puts."""
        self._made: list[tuple[Ints, Ints, Forms]] = []
        self._next, self._puts = self.ends - made, puts
        for number, (part, mine) in enumerate(zip(parts, slots, strict=True)):
            self._walk(part, mine)
            self._number(tuples if number == 2 else [])

    def rising(self, top: int) -> int:
        """How many puts there are before one whose number does not rise."""
        falls = np.flatnonzero(np.diff(self.numbers, prepend=top) <= 0)
        return int(falls[0]) if len(falls) else len(self.numbers)

    def made(self) -> tuple[Ints, Ints, Forms]:
        """Which puts are of NumPy numbers, in order, and the numbers' bits and forms."""
        if not self._made:
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int8)
        places, values, forms = (np.concatenate(column) for column in zip(*self._made, strict=True))
        order = np.argsort(places)
        return places[order], values[order], forms[order]

    def _walk(self, part: Atoms, slots: list[tuple[Ints | slice, Ints]]) -> None:
        if part.special is None:
            return
        special = part.special
        for refs, asked in ((special.refs, self.asked), (special.raws, self.bytes_asked)):
            refers = refs != ABSENT
            if refers.any():
                at = special.at[refers]
                asked.append((part, at, refs[refers], self._next[at]))
        texts = special.at[special.single & (special.keys[0] != ABSENT)]
        if len(texts):
            self._made.append((self._next[texts], part.values[texts] & 255, np.full(len(texts), BYTE, np.int8)))
        self._number(slots)
        spelled = special.at[special.keys[2] != ABSENT]
        forms = np.zeros(len(spelled), np.int8) if part.forms is None else part.forms[spelled]
        self._made.append((self._next[spelled] - 1, part.values[spelled], forms))
        self.late.append((part, spelled, self._next[spelled] - 1))

    def _number(self, slots: list[tuple[Ints | slice, Ints]]) -> None:
        for at, keys in slots:
            place = self._next[at]
            self.numbers[place] = np.where(keys == IMPLICIT, self._puts + place, keys)
            self._next[at] += 1


def _slots(part: Atoms) -> list[tuple[Ints | slice, Ints]]:
    """Where NumPy numbers and their parts are put: the entries that have one, and their memo numbers."""
    if part.special is None:
        return []
    every = [(part.special.at[keys != ABSENT], keys[keys != ABSENT]) for keys in part.special.keys]
    return [(at, keys) for at, keys in every if len(at)]
