"""Table entries of a pickle read thousands at a time: every step works on whole columns.

The fast lane of `pickles`. A guess says where entries end; the guess counts only where each entry, read from the end of
the one before it, arrives exactly there. So this is a parse and not a search: what it cannot follow it leaves alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from openfield.objectives.scalars import ABSENT, Ints, Scalars

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

TUPLE3, TUPLE2, REDUCE, SETITEMS, MARK = 0x87, 0x86, 0x52, 0x75, 0x28
INT1, INT2, INT4, LONG1, GET1, GET4, BYTES1 = 0x4B, 0x4D, 0x4A, 0x8A, 0x68, 0x6A, 0x43
PUT1, PUT4, PUT_NEXT = 0x71, 0x72, 0x94
IMPLICIT = -2
SPARE = 256
"""Bytes after the last entry looked at: no read of an entry's part goes further."""


def _lookup(lengths: dict[int, int]) -> Ints:
    table = np.zeros(256, np.int64)
    for code, length in lengths.items():
        table[code] = length
    return table


_INT_LENGTH = _lookup({INT1: 2, INT2: 3, INT4: 5})
_INT_MASK = _lookup({INT1: 0xFF, INT2: 0xFFFF, INT4: 0xFFFFFFFF}).astype(np.uint64)
_INT_SIGN = _lookup({INT4: 1 << 31})
_PUT_LENGTH = _lookup({PUT1: 2, PUT4: 5, PUT_NEXT: 1})
_STARTS_VALUE = _lookup({INT1: 1, INT2: 1, INT4: 1, LONG1: 1, GET1: 1, GET4: 1}).astype(bool)
_STARTS_NEXT = _STARTS_VALUE | _lookup({SETITEMS: 1}).astype(bool)


class Rows(NamedTuple):
    """Entries of a table as four columns of equal length."""

    obs: np.ndarray[Any, Any]
    action: np.ndarray[Any, Any]
    next_obs: np.ndarray[Any, Any]
    counts: np.ndarray[Any, Any]


class Stretch(NamedTuple):
    """What was read in one go, and where reading goes on."""

    rows: Rows
    end: int
    puts: int


class _Atoms(NamedTuple):
    """Integers read at many places at once."""

    values: Ints
    lengths: Ints
    """0 where no integer could be read."""
    special: _Special | None = None
    """None where all are plain."""

    def take(self, chosen: Ints) -> _Atoms:
        """Those at the chosen places, which rise."""
        if len(chosen) == len(self.values):
            return self
        special = self.special.take(chosen) if self.special else None
        return _Atoms(self.values[chosen], self.lengths[chosen], special)


class _Special(NamedTuple):
    """Those of the integers that are NumPy numbers or go through the memo."""

    at: Ints
    """Which of the integers."""
    puts: Ints
    """How many memo entries each made: 3 where a NumPy number is spelled out."""
    keys: Ints
    """The memo number each was put under; IMPLICIT if it is the next one, ABSENT if it was not put."""
    refs: Ints
    """The memo number each is taken from; ABSENT if it is spelled out."""

    def take(self, chosen: Ints) -> _Special:
        """Those at the chosen places, numbered by where they are among them."""
        at = np.searchsorted(chosen, self.at)
        kept = (at < len(chosen)) & (np.append(chosen, ABSENT)[at] == self.at)
        return _Special(at[kept], self.puts[kept], self.keys[kept], self.refs[kept])


class _Ends(NamedTuple):
    """Where entries seem to end: their tuple opcode, their count, and the entry after them."""

    tuples: Ints
    puts: Ints
    counts: _Atoms
    nexts: Ints


def read_records(view: Bytes, at: int, scalars: Scalars, puts: int) -> Stretch | None:
    """All entries from `at` on that follow each other without a break, or None if there is none.

    Args:
        view: The bytes at hand.
        at: Where an entry of a table begins.
        scalars: What the memo holds; extended by what is read.
        puts: How many memo entries there are.
    """
    if len(view) < at + SPARE:
        return None
    words = np.ndarray((len(view) - 7,), "<u8", view, 0, (1,))
    ends = _guess_ends(view, words, at, scalars)
    starts = np.concatenate(([at], ends.nexts))
    parts: list[_Atoms] = []
    for _ in range(3):
        parts.append(_read_atoms(view, words, starts, scalars))
        starts = starts + parts[-1].lengths
    keys, counts = _chain(starts, ends.tuples, parts)
    parts = [*(part.take(keys) for part in parts), ends.counts.take(counts)]
    size, puts = _follow_memo(scalars, parts, ends.puts[counts], puts)
    if not size:
        return None
    rows = Rows(*(narrow(part.values[:size]) for part in parts))
    return Stretch(rows, int(ends.nexts[counts[size - 1]]), puts)


def _guess_ends(view: Bytes, words: Any, at: int, scalars: Scalars) -> _Ends:
    """Every tuple opcode that is followed by a count and by the beginning of another entry or of the batch's end."""
    tuples = np.flatnonzero(view[at:-SPARE] == TUPLE3) + at
    puts = _PUT_LENGTH[view[tuples + 1]]
    fits = _STARTS_VALUE[view[tuples + 1 + puts]]
    tuples, puts = tuples[fits], puts[fits]
    values = tuples + 1 + puts
    counts = _read_atoms(view, words, values, scalars)
    nexts = values + counts.lengths
    fits = (counts.lengths > 0) & _STARTS_NEXT[view[nexts]]
    if not fits.all():
        tuples, puts, nexts = tuples[fits], puts[fits], nexts[fits]
        counts = _read_atoms(view, words, values[fits], scalars)
    nexts += 2 * ((view[nexts] == SETITEMS) & (view[nexts + 1] == MARK))
    return _Ends(tuples, puts, counts, nexts)


def _read_atoms(view: Bytes, words: Any, at: Ints, scalars: Scalars) -> _Atoms:
    """The integer at each place: one of the four plain forms, a NumPy number, or a reference to one."""
    word = words[at]
    code = (word & 255).astype(np.uint8)
    lengths = _INT_LENGTH[code]
    values = ((word >> 8) & _INT_MASK[code]).astype(np.int64)
    values -= (values & _INT_SIGN[code]) << 1
    odd = np.flatnonzero(lengths == 0)
    if not len(odd):
        return _Atoms(values, lengths)
    long = odd[code[odd] == LONG1]
    if len(long):
        values[long], lengths[long] = _read_longs(words, at[long])
    get = odd[(code[odd] == GET1) | (code[odd] == GET4)]
    if not len(get):
        return _Atoms(values, lengths)
    values[get], lengths[get], special = _read_scalars(view, words, at[get], scalars)
    return _Atoms(values, lengths, special._replace(at=get))


def _read_longs(words: Any, at: Ints) -> tuple[Ints, Ints]:
    """Integers of up to eight bytes; longer ones get length 0."""
    size = ((words[at] >> 8) & 255).astype(np.int64)
    unused = 64 - 8 * size.clip(1, 8)
    values = (words[at + 2].astype(np.int64) << unused) >> unused
    return np.where(size == 0, 0, values), np.where(size <= 8, size + 2, 0)


def _read_scalars(view: Bytes, words: Any, at: Ints, scalars: Scalars) -> tuple[Ints, Ints, _Special]:
    """NumPy numbers: get function, get kind, eight bytes, pair, call; or a reference to one made before."""
    key, at_kind = _read_get(words, at)
    spelled = key == scalars.function
    kind, at_bytes = _read_get(words, at_kind)
    values = words[at_bytes + 2].astype(np.int64)
    made = spelled & (kind == scalars.dtype) & (view[at_bytes] == BYTES1) & (view[at_bytes + 1] == 8)
    at_pair = at_bytes + 10 + _PUT_LENGTH[view[at_bytes + 10]]
    at_call = at_pair + 1 + _PUT_LENGTH[view[at_pair + 1]]
    made &= (view[at_pair] == TUPLE2) & (view[at_call] == REDUCE)
    put = view[at_call + 1]
    end = at_call + 1 + _PUT_LENGTH[put]
    argument = words[at_call + 2].astype(np.int64) & np.where(put == PUT1, 0xFF, 0xFFFFFFFF)
    keys = np.where(put == PUT_NEXT, IMPLICIT, np.where(_PUT_LENGTH[put] > 0, argument, ABSENT))
    puts = (at_pair > at_bytes + 10).astype(np.int64) + (at_call > at_pair + 1) + (end > at_call + 1)
    lengths = np.where(made, end - at, np.where(spelled | (key < 0), 0, at_kind - at))
    special = _Special(at, np.where(made, puts, 0), np.where(made, keys, ABSENT), np.where(made, ABSENT, key))
    return values, lengths, special


def _read_get(words: Any, at: Ints) -> tuple[Ints, Ints]:
    """The memo number asked for (ABSENT if this is no such opcode) and the place after it."""
    word = words[at].astype(np.int64)
    code = word & 255
    key = (word >> 8) & np.where(code == GET1, 0xFF, 0xFFFFFFFF)
    known = (code == GET1) | (code == GET4)
    return np.where(known, key, ABSENT), at + np.where(code == GET4, 5, 2)


def _chain(arrivals: Ints, tuples: Ints, parts: list[_Atoms]) -> tuple[Ints, Ints]:
    """The entries that hang together from the first on: which key reading belongs to which guessed end.

    Key reading `i + 1` started where guess `i` ended. A wrong guess is one that no reading arrives at.
    """
    size = len(tuples)
    readable = (parts[0].lengths > 0) & (parts[1].lengths > 0) & (parts[2].lengths > 0)
    here = np.arange(size)
    if readable[:-1].all() and np.array_equal(arrivals[:-1], tuples):
        return here, here
    ends = np.searchsorted(tuples, arrivals)
    arrived = readable & (np.append(tuples, -1)[ends] == arrivals)
    breaks = np.flatnonzero(~arrived | (ends != np.arange(size + 1)))
    runs, at = [], 0
    while True:
        turn = int(breaks[np.searchsorted(breaks, at)])
        runs.append(np.arange(at, turn + bool(arrived[turn])))
        if not arrived[turn]:
            break
        at = int(ends[turn]) + 1
    keys = np.concatenate(runs)
    return keys, ends[keys]


def _follow_memo(scalars: Scalars, parts: list[_Atoms], tuple_puts: Ints, puts: int) -> tuple[int, int]:
    """Number the memo entries made on the way, keep the NumPy numbers, and look up those referred to."""
    made = (tuple_puts > 0).astype(np.int64)
    size = len(made)
    if not any(part.special for part in parts):
        return size, puts + int(made.sum())
    steps = [_puts_of(part, size) for part in parts]
    before = puts + np.cumsum(made + sum(steps)) - made - sum(steps)
    keys = _new_keys(scalars, parts, steps, before, made, size)
    known = np.maximum.accumulate(keys)
    for part in parts:
        size = min(size, _resolve(scalars, part, known, size))
    return size, puts + int(made[:size].sum() + sum(step[:size].sum() for step in steps))


def _puts_of(part: _Atoms, size: int) -> Ints:
    puts = np.zeros(size, np.int64)
    if part.special:
        inside = part.special.at < size
        puts[part.special.at[inside]] = part.special.puts[inside]
    return puts


def _new_keys(scalars: Scalars, parts: list[_Atoms], steps: list[Ints], before: Ints, made: Ints, size: int) -> Ints:
    """Keep the numbers spelled out, in the order of their memo numbers; the highest of each entry is returned."""
    keys, values, highest = [], [], np.full(size, scalars.last)
    for place, part in enumerate(parts):
        if part.special:
            special = part.special
            spelled = (special.at < size) & (special.keys != ABSENT)
            at, key = special.at[spelled], special.keys[spelled]
            implicit = before[at] + sum(step[at] for step in steps[: place + 1]) + (made[at] if place == 3 else 0) - 1
            key = np.where(key == IMPLICIT, implicit, key)
            highest[at] = np.maximum(highest[at], key)
            keys.append(key)
            values.append(part.values[at])
    joined = np.concatenate(keys)
    order = np.argsort(joined, kind="stable")
    scalars.extend(joined[order], np.concatenate(values)[order])
    return highest


def _resolve(scalars: Scalars, part: _Atoms, known: Ints, size: int) -> int:
    """Fill in the numbers taken from the memo; reading stops before one that is not there yet."""
    if part.special is None:
        return size
    asked = (part.special.at < size) & (part.special.refs != ABSENT)
    at, refs = part.special.at[asked], part.special.refs[asked]
    part.values[at], found = scalars.find_many(refs)
    found &= refs <= known[at]
    return size if found.all() else int(at[found.argmin()])


def narrow(values: Ints) -> np.ndarray[Any, Any]:
    """The same numbers in 32 bits if they fit: half the memory of a large table."""
    small = values.astype(np.int32)
    return small if np.array_equal(small, values) else values
