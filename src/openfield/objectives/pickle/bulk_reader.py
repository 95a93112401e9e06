"""Table entries of a pickle read thousands at a time: every step works on whole columns.

The fast lane of `pickles`. A guess says where entries end; the guess counts only where each entry, read from the end of
the one before it, arrives exactly there. So this is a parse and not a search: what it cannot follow it leaves alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from openfield.objectives.pickle.memo import IMPLICIT, Atoms, Special, follow_memo
from openfield.objectives.pickle.number_forms import FRACTION, LARGE, Bytes, Forms, Ints, Words, column_of, decode
from openfield.objectives.pickle.numerals import INT_TEXT, LONG_TEXT, read_numerals
from openfield.objectives.pickle.scalars import ABSENT, Scalars

TUPLE3, TUPLE2, TUPLE, REDUCE, SETITEMS, MARK = 0x87, 0x86, 0x74, 0x52, 0x75, 0x28
INT1, INT2, INT4, LONG1, GET1, GET4, BYTES1, FLOAT = 0x4B, 0x4D, 0x4A, 0x8A, 0x68, 0x6A, 0x43, 0x47
PUT1, PUT4, PUT_NEXT = 0x71, 0x72, 0x94
SPARE = 3_000
"""Bytes after the last entry looked at: no read of an entry goes further, however many digits its integers have."""


WRONG_GUESSES = 16
"""Entries for each wrong guess from which on they are taken run by run, not one by one."""


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
_STARTS_KEY = _lookup(dict.fromkeys((INT1, INT2, INT4, LONG1, GET1, GET4, INT_TEXT, LONG_TEXT), 1)).astype(bool)
_STARTS_VALUE = _STARTS_KEY | _lookup({FLOAT: 1}).astype(bool)
STARTS_NEXT = _STARTS_KEY | _lookup({SETITEMS: 1}).astype(bool)


class Rows(NamedTuple):
    """Entries of a table as four columns of equal length."""

    obs: np.ndarray[Any, Any]
    action: np.ndarray[Any, Any]
    next_obs: np.ndarray[Any, Any]
    counts: np.ndarray[Any, Any]


class Codes(NamedTuple):
    """A stretch of a code book: image codes and the indices they were given."""

    codes: np.ndarray[Any, Any]
    indices: np.ndarray[Any, Any]


class Stretch(NamedTuple):
    """What was read in one go, and where reading goes on."""

    entries: Rows | Codes
    end: int


class _Shape(NamedTuple):
    """How a protocol puts a key: what opens it, what closes it, and what may follow an entry."""

    opening: int
    """Bytes of it: none, or a mark."""
    closing: int
    nexts: Any


_LATER = _Shape(0, TUPLE3, STARTS_NEXT)
_MARKED = _Shape(1, TUPLE, _lookup({MARK: 1, SETITEMS: 1}).astype(bool))


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
    return _read(view, at, scalars, _LATER)


def read_marked(view: Bytes, at: int, scalars: Scalars) -> Stretch | None:
    """As `read_records`, for keys that a mark opens, as protocol 1 has them."""
    return _read(view, at, scalars, _MARKED)


def _read(view: Bytes, at: int, scalars: Scalars, shape: _Shape) -> Stretch | None:
    if len(view) < at + SPARE:
        return None
    words = words_at(view)
    ends = _guess_ends(view, words, at, scalars, shape)
    starts = np.concatenate(([at], ends.nexts))
    opened = view[starts] == MARK if shape.opening else None
    starts += shape.opening
    parts: list[Atoms] = []
    for _ in range(3):
        parts.append(read_atoms(view, words, starts, scalars))
        starts = starts + parts[-1].lengths
    if opened is not None:
        parts[0].lengths[~opened] = 0
    keys, counts = _chain(starts, ends.tuples, parts)
    parts = [*(part.take(keys) for part in parts), ends.counts.take(counts)]
    size = follow_memo(scalars, parts, _read_puts(words, ends.tuples[counts] + 1)[0])
    if not size:
        return None
    rows = Rows(*(column_of(part.values[:size], _first(part.forms, size), view) for part in parts))
    return Stretch(rows, int(ends.nexts[counts[size - 1]]))


def words_at(view: Bytes) -> Words:
    """The eight bytes from every place on, as one number."""
    return np.ndarray((len(view) - 7,), "<u8", view, 0, (1,))


def _first(forms: Forms | None, size: int) -> Forms | None:
    return None if forms is None else forms[:size]


def _guess_ends(view: Bytes, words: Any, at: int, scalars: Scalars, shape: _Shape) -> _Ends:
    """Every tuple opcode that is followed by a count and by the beginning of another entry or of the batch's end."""
    tuples = np.flatnonzero(view[at:-SPARE] == shape.closing) + at
    values = tuples + 1 + _PUT_LENGTH[view[tuples + 1]]
    fits = _STARTS_VALUE[view[values]]
    tuples, values = tuples[fits], values[fits]
    counts = read_atoms(view, words, values, scalars)
    nexts = values + counts.lengths
    fits = (counts.lengths > 0) & shape.nexts[view[nexts]]
    if not fits.all():
        tuples, nexts = tuples[fits], nexts[fits]
        counts = read_atoms(view, words, values[fits], scalars)
    nexts += 2 * ((view[nexts] == SETITEMS) & (view[nexts + 1] == MARK))
    return _Ends(tuples, counts, nexts)


def read_atoms(view: Bytes, words: Any, at: Ints, scalars: Scalars) -> Atoms:
    """The number at each place: in one of the plain forms, a NumPy number, or a reference to one."""
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
    text = odd[(code[odd] == LONG_TEXT) | (code[odd] == INT_TEXT)]
    if len(text):
        values[text], lengths[text], forms[text] = read_numerals(view, at[text])
    real = odd[code[odd] == FLOAT]
    if len(real):
        values[real], lengths[real], forms[real] = words[at[real] + 1].byteswap().view(np.int64), 9, FRACTION
    get = odd[(code[odd] == GET1) | (code[odd] == GET4)]
    if not len(get):
        return Atoms(values, lengths, None, forms)
    values[get], lengths[get], forms[get], special = read_scalars(view, words, at[get], scalars)
    return Atoms(values, lengths, special._replace(at=get), forms)


def _read_longs(words: Any, at: Ints) -> tuple[Ints, Ints, Forms]:
    """Integers of up to eight bytes, and the places of longer ones."""
    size = ((words[at] >> 8) & 255).astype(np.int64)
    unused = 64 - 8 * size.clip(1, 8)
    values = (words[at + 2].astype(np.int64) << unused) >> unused
    large = size > 8
    values = np.where(size == 0, 0, np.where(large, at + 1, values))
    return values, size + 2, np.where(large, LARGE, 0).astype(np.int8)


def read_scalars(view: Bytes, words: Any, at: Ints, scalars: Scalars) -> tuple[Ints, Ints, Forms, Special]:
    """NumPy numbers: get function, get kind, their bytes, pair, call; or a reference to one made before."""
    key, behind = read_get(words, at)
    spelled = np.flatnonzero(key == scalars.function) if scalars.function != ABSENT else at[:0]
    if len(spelled) == len(at):
        return _read_spelled(view, words, at, behind, scalars)
    values, forms, lengths = np.zeros(len(at), np.int64), np.zeros(len(at), np.int8), np.where(key < 0, 0, behind - at)
    none = np.full(len(at), ABSENT)
    special = Special(at, np.stack((none,) * 3), key, none, np.zeros(len(at), bool))
    if len(spelled):
        found = _read_spelled(view, words, at[spelled], behind[spelled], scalars)
        values[spelled], lengths[spelled], forms[spelled], made = found
        special.keys[:, spelled], special.refs[spelled] = made.keys, ABSENT
        special.raws[spelled], special.single[spelled] = made.raws, made.single
    return values, lengths, forms, special


def _read_spelled(
    view: Bytes, words: Any, at: Ints, at_kind: Ints, scalars: Scalars
) -> tuple[Ints, Ints, Forms, Special]:
    """Numbers that are made here; length 0 where none is."""
    kind, at_bytes = read_get(words, at_kind)
    values, forms, width, signed = _read_kinds(words[at_bytes + 2], kind, scalars)
    single = width == 1
    raws, after_raw = read_get(words, at_bytes)
    raws = np.where(single, raws, ABSENT)
    told = raws == ABSENT
    made = ~told | ((view[at_bytes] == BYTES1) & (view[at_bytes + 1] == width))
    first, length = _read_puts(words, at_bytes + 2 + width)
    first = np.where(told, first, ABSENT)
    values = np.where(told, values, signed)
    at_pair = np.where(told, at_bytes + 2 + width + length, after_raw)
    second, length = _read_puts(words, at_pair + 1)
    at_call = at_pair + 1 + length
    made &= (view[at_pair] == TUPLE2) & (view[at_call] == REDUCE)
    third, length = _read_puts(words, at_call + 1)
    keys = np.where(made, np.stack((first, second, third)), ABSENT)
    special = Special(at, keys, np.full(len(at), ABSENT), np.where(made, raws, ABSENT), made & single)
    return values, np.where(made, at_call + 1 + length - at, 0), forms, special


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


def read_get(words: Any, at: Ints) -> tuple[Ints, Ints]:
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
    if len(breaks) * WRONG_GUESSES > size:
        keys = np.array(_hop(np.where(arrived, ends + 1, ABSENT).tolist()))
        keys = keys[: len(keys) - (not arrived[keys[-1]])]
        return keys, ends[keys]
    runs, at = [], 0
    while True:
        turn = int(breaks[np.searchsorted(breaks, at)])
        runs.append(np.arange(at, turn + bool(arrived[turn])))
        if not arrived[turn]:
            break
        at = int(ends[turn]) + 1
    keys = np.concatenate(runs)
    return keys, ends[keys]


def _hop(nexts: list[int]) -> list[int]:
    """Every place on the way from the first to one after which there is none."""
    places, at = [], 0
    while at >= 0:
        places.append(at)
        at = nexts[at]
    return places
