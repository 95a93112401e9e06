"""Table entries of a pickle read thousands at a time: every step works on whole columns.

The fast lane of `pickles`. A guess says where entries end; the guess counts only where each entry, read from the end of
the one before it, arrives exactly there. So this is a parse and not a search: what it cannot follow it leaves alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from openfield.objectives.forms import FRACTION, LARGE, Bytes, Forms, Ints, column_of, decode
from openfield.objectives.memo import IMPLICIT, Atoms, Special, follow_memo
from openfield.objectives.scalars import ABSENT, Scalars

TUPLE3, TUPLE2, REDUCE, SETITEMS, MARK = 0x87, 0x86, 0x52, 0x75, 0x28
INT1, INT2, INT4, LONG1, GET1, GET4, BYTES1, FLOAT = 0x4B, 0x4D, 0x4A, 0x8A, 0x68, 0x6A, 0x43, 0x47
PUT1, PUT4, PUT_NEXT = 0x71, 0x72, 0x94
LONGEST = 32
"""Bytes of an integer that is read in bulk; of longer ones there are few in a file."""
SPARE = 256
"""Bytes after the last entry looked at: no read of an entry's part goes further."""


def _lookup(lengths: dict[int, int], other: int = 0) -> Ints:
    table = np.full(256, other, np.int64)
    for code, length in lengths.items():
        table[code] = length
    return table


_INT_LENGTH = _lookup({INT1: 2, INT2: 3, INT4: 5})
_INT_MASK = _lookup({INT1: 0xFF, INT2: 0xFFFF, INT4: 0xFFFFFFFF}).astype(np.uint64)
_INT_SIGN = _lookup({INT4: 1 << 31})
_PUT_LENGTH = _lookup({PUT1: 2, PUT4: 5, PUT_NEXT: 1})
_PUT_MASK = _lookup({PUT1: 0xFF, PUT4: 0xFFFFFFFF})
_PUT_OTHER = _lookup({PUT1: 0, PUT4: 0, PUT_NEXT: IMPLICIT}, ABSENT)
_STARTS_KEY = _lookup({INT1: 1, INT2: 1, INT4: 1, LONG1: 1, GET1: 1, GET4: 1}).astype(bool)
_STARTS_VALUE = _STARTS_KEY | _lookup({FLOAT: 1}).astype(bool)
_STARTS_NEXT = _STARTS_KEY | _lookup({SETITEMS: 1}).astype(bool)
_LENGTHS = {
    **{TUPLE3: 1, TUPLE2: 1, REDUCE: 1, SETITEMS: 1, MARK: 1, PUT_NEXT: 1},
    **{INT1: 2, INT2: 3, INT4: 5, LONG1: 2, BYTES1: 2, GET1: 2, GET4: 5, PUT1: 2, PUT4: 5, FLOAT: 9},
}
"""Bytes of every opcode in entries; two of them are followed by as many as they say."""


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


class _Ends(NamedTuple):
    """Where entries seem to end: their tuple opcode, their count, and the entry after them."""

    tuples: Ints
    counts: Atoms
    nexts: Ints


def read_records(view: Bytes, at: int, scalars: Scalars) -> Stretch | None:
    """All entries from `at` on that follow each other without a break, or None if there is none.

    Args:
        view: The bytes at hand.
        at: Where an entry of a table begins.
        scalars: What the memo holds; extended by what is read.
    """
    if len(view) < at + SPARE:
        return None
    words = np.ndarray((len(view) - 7,), "<u8", view, 0, (1,))
    ends = _guess_ends(view, words, at, scalars)
    starts = np.concatenate(([at], ends.nexts))
    parts: list[Atoms] = []
    for _ in range(3):
        parts.append(_read_atoms(view, words, starts, scalars))
        starts = starts + parts[-1].lengths
    keys, counts = _chain(starts, ends.tuples, parts)
    parts = [*(part.take(keys) for part in parts), ends.counts.take(counts)]
    size = follow_memo(scalars, parts, _read_puts(words, ends.tuples[counts] + 1)[0])
    if not size:
        return None
    rows = Rows(*(column_of(part.values[:size], _first(part.forms, size), view) for part in parts))
    return Stretch(rows, int(ends.nexts[counts[size - 1]]))


def _first(forms: Forms | None, size: int) -> Forms | None:
    return None if forms is None else forms[:size]


def hits_border(view: Bytes, at: int, border: int) -> bool:
    """Whether an opcode begins at the border, where at most a few entries lie between it and the entry at `at`."""
    if border - at > 2 * SPARE:
        return False
    data = view[at : border + 1].tobytes()
    border, at = border - at, 0
    while at < border:
        length = _LENGTHS.get(data[at], 0)
        if not length:
            return False
        at += length + (data[at + 1] if data[at] in (LONG1, BYTES1) else 0)
    return at == border


def _guess_ends(view: Bytes, words: Any, at: int, scalars: Scalars) -> _Ends:
    """Every tuple opcode that is followed by a count and by the beginning of another entry or of the batch's end."""
    tuples = np.flatnonzero(view[at:-SPARE] == TUPLE3) + at
    values = tuples + 1 + _PUT_LENGTH[view[tuples + 1]]
    fits = _STARTS_VALUE[view[values]]
    tuples, values = tuples[fits], values[fits]
    counts = _read_atoms(view, words, values, scalars)
    nexts = values + counts.lengths
    fits = (counts.lengths > 0) & _STARTS_NEXT[view[nexts]]
    if not fits.all():
        tuples, nexts = tuples[fits], nexts[fits]
        counts = _read_atoms(view, words, values[fits], scalars)
    nexts += 2 * ((view[nexts] == SETITEMS) & (view[nexts + 1] == MARK))
    return _Ends(tuples, counts, nexts)


def _read_atoms(view: Bytes, words: Any, at: Ints, scalars: Scalars) -> Atoms:
    """The number at each place: one of the five plain forms, a NumPy number, or a reference to one."""
    word = words[at]
    code = (word & 255).astype(np.uint8)
    lengths = _INT_LENGTH[code]
    values = ((word >> 8) & _INT_MASK[code]).astype(np.int64)
    values -= (values & _INT_SIGN[code]) << 1
    odd = np.flatnonzero(lengths == 0)
    if not len(odd):
        return Atoms(values, lengths)
    forms = np.zeros(len(at), np.int8)
    long = odd[code[odd] == LONG1]
    if len(long):
        values[long], lengths[long], forms[long] = _read_longs(words, at[long])
    real = odd[code[odd] == FLOAT]
    if len(real):
        values[real], lengths[real], forms[real] = words[at[real] + 1].byteswap().view(np.int64), 9, FRACTION
    get = odd[(code[odd] == GET1) | (code[odd] == GET4)]
    if not len(get):
        return Atoms(values, lengths, None, forms)
    values[get], lengths[get], forms[get], special = _read_scalars(view, words, at[get], scalars)
    return Atoms(values, lengths, special._replace(at=get), forms)


def _read_longs(words: Any, at: Ints) -> tuple[Ints, Ints, Forms]:
    """Integers of up to eight bytes, and the places of somewhat longer ones; the longest get length 0."""
    size = ((words[at] >> 8) & 255).astype(np.int64)
    unused = 64 - 8 * size.clip(1, 8)
    values = (words[at + 2].astype(np.int64) << unused) >> unused
    large = size > 8
    values = np.where(size == 0, 0, np.where(large, at + 1, values))
    return values, np.where(size <= LONGEST, size + 2, 0), np.where(large, LARGE, 0).astype(np.int8)


def _read_scalars(view: Bytes, words: Any, at: Ints, scalars: Scalars) -> tuple[Ints, Ints, Forms, Special]:
    """NumPy numbers: get function, get kind, their bytes, pair, call; or a reference to one made before."""
    key, at_kind = _read_get(words, at)
    spelled = key == scalars.function
    kind, at_bytes = _read_get(words, at_kind)
    values, forms, width, signed = _read_kinds(words[at_bytes + 2], kind, scalars)
    single = width == 1
    raws, after_raw = _read_get(words, at_bytes)
    raws = np.where(spelled & single, raws, ABSENT)
    told = raws == ABSENT
    made = spelled & (~told | ((view[at_bytes] == BYTES1) & (view[at_bytes + 1] == width)))
    first, length = _read_puts(words, at_bytes + 2 + width)
    first = np.where(told, first, ABSENT)
    values = np.where(told, values, signed)
    at_pair = np.where(told, at_bytes + 2 + width + length, after_raw)
    second, length = _read_puts(words, at_pair + 1)
    at_call = at_pair + 1 + length
    made &= (view[at_pair] == TUPLE2) & (view[at_call] == REDUCE)
    third, length = _read_puts(words, at_call + 1)
    lengths = np.where(made, at_call + 1 + length - at, np.where(spelled | (key < 0), 0, at_kind - at))
    keys = np.where(made, np.stack((first, second, third)), ABSENT)
    special = Special(at, keys, np.where(made, ABSENT, key), np.where(made, raws, ABSENT), made & single)
    return values, lengths, forms, special


def _read_kinds(words: Any, asked: Ints, scalars: Scalars) -> tuple[Ints, Forms, Ints, Ints]:
    """The numbers in the words, each by the kind that the memo has under the number asked for, widths, and signs.

    Where the memo has no kind there, the width is one that no number has.
    """
    size = len(asked)
    values, forms, widths, signed = np.zeros(size, np.int64), np.zeros(size, np.int8), np.full(size, -1), asked * 0
    for key, kind in zip(scalars.kind_keys, scalars.kinds, strict=True):
        mine = asked == key
        if mine.all():
            return *decode(words, kind), np.full(size, kind.itemsize), np.full(size, int(kind.kind == "i"))
        if mine.any():
            (values[mine], forms[mine]), widths[mine] = decode(words[mine], kind), kind.itemsize
            signed[mine] = kind.kind == "i"
    return values, forms, widths, signed


def _read_puts(words: Any, at: Ints) -> tuple[Ints, Ints]:
    """The memo number put at each place (IMPLICIT if it is the next one, ABSENT if none is) and the opcode's length."""
    word = words[at].astype(np.int64)
    code = word & 255
    return ((word >> 8) & _PUT_MASK[code]) + _PUT_OTHER[code], _PUT_LENGTH[code]


def _read_get(words: Any, at: Ints) -> tuple[Ints, Ints]:
    """The memo number asked for (ABSENT if this is no such opcode) and the place after it."""
    word = words[at].astype(np.int64)
    code = word & 255
    key = (word >> 8) & np.where(code == GET1, 0xFF, 0xFFFFFFFF)
    known = (code == GET1) | (code == GET4)
    return np.where(known, key, ABSENT), at + np.where(code == GET4, 5, 2)


def _chain(arrivals: Ints, tuples: Ints, parts: list[Atoms]) -> tuple[Ints, Ints]:
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
