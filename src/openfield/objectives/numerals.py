"""Integers in decimal digits within binary pickles, read at many places at once.

Under `records` and `books`. Protocol 1 writes integers beyond 32 bits so, Python 2 also in protocol 2 and some smaller.
"""

from __future__ import annotations

import re

import numpy as np

from openfield.objectives.forms import NUMERAL, WHOLE, Bytes, Flags, Forms, Ints

INT_TEXT, LONG_TEXT, LINE_END = 0x49, 0x4C, 0x0A
SURE = 18
"""Characters of a number that fits into 64 bits."""
MOST = 620
"""Characters of the longest."""
_LONGER = re.compile(rb"-?[1-9][0-9]{15,618}\Z")


def read_numerals(view: Bytes, at: Ints) -> tuple[Ints, Ints, Forms]:
    """Values, lengths and forms of the numbers whose opcodes are at these places; length 0 where one is not right."""
    ends = _line_ends(view, at)
    size = ends - at - 1
    suffix = (view[at] == LONG_TEXT) & (view[ends - 1] == LONG_TEXT) & (size > 1)
    size -= suffix
    values, good = _short(view, at + 1, np.where(size <= SURE, size, 0))
    for place in np.flatnonzero((size > SURE) & (size < MOST)).tolist():
        start = int(at[place]) + 1
        good[place] = _LONGER.match(view[start : start + int(size[place])].tobytes()) is not None
        values[place] = start
    return values, np.where(good, ends - at + 1, 0), np.where(size > SURE, NUMERAL, WHOLE).astype(np.int8)


def _line_ends(view: Bytes, at: Ints) -> Ints:
    """Where the line ends on which each place is; the place itself if it does not."""
    ends = np.append(np.flatnonzero(view == LINE_END), 0)
    found = ends[np.searchsorted(ends[:-1], at)]
    return np.where(found, found, at + 1)


def _short(view: Bytes, start: Ints, size: Ints) -> tuple[Ints, Flags]:
    """Numbers of a few digits, and which of them are spelled as writers do: no zeros before, no plus."""
    width = int(size.max(initial=1))
    places = np.arange(width)
    inside = places < size[:, None]
    raw = np.where(inside, view[np.minimum(start[:, None] + places, len(view) - 1)], 0).astype(np.uint8)
    minus = (raw[:, 0] == ord("-")).astype(np.int64)
    first = raw[np.arange(len(raw)), np.minimum(minus, width - 1)]
    digits = (raw >= ord("0")) & (raw <= ord("9"))
    good = (digits == (inside & (places >= minus[:, None]))).all(axis=1) & (size > minus)
    good &= (first != ord("0")) | (size - minus == 1)
    raw[~good] = ord("0")
    return np.ascontiguousarray(raw).view(f"S{width}").reshape(-1).astype(np.int64), good
