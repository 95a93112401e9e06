"""Integers in decimal digits within binary pickles, read at many places at once.

Under `records` and `books`. Protocol 1 writes integers beyond 32 bits so, Python 2 also in protocol 2 and some smaller.
"""

from __future__ import annotations

import numpy as np

from openfield.objectives.pickle.number_forms import NUMERAL, WHOLE, Bytes, Flags, Forms, Ints

INT_TEXT, LONG_TEXT, LINE_END = 0x49, 0x4C, 0x0A
SURE = 18
"""Characters of a number that fits into 64 bits."""
MOST = 620
"""Characters of the longest."""


def read_numerals(view: Bytes, at: Ints) -> tuple[Ints, Ints, Forms]:
    """Values, lengths and forms of the numbers whose opcodes are at these places; length 0 where one is not right."""
    ends = _line_ends(view, at)
    size = ends - at - 1
    suffix = (view[at] == LONG_TEXT) & (view[ends - 1] == LONG_TEXT) & (size > 1)
    size -= suffix
    good, long = _are_numbers(view, at + 1, size), size > SURE
    values, short = at + 1, np.flatnonzero(good & ~long)
    values[short] = _short(view, at[short] + 1, size[short])
    return values, np.where(good, ends - at + 1, 0), np.where(long, NUMERAL, WHOLE).astype(np.int8)


def _line_ends(view: Bytes, at: Ints) -> Ints:
    """Where the line ends on which each place is; the place itself if it does not."""
    ends = np.append(np.flatnonzero(view == LINE_END), 0)
    found = ends[np.searchsorted(ends[:-1], at)]
    return np.where(found, found, at + 1)


def _are_numbers(view: Bytes, start: Ints, size: Ints) -> Flags:
    """Which texts are spelled as writers do: no zeros before, no plus. Most may be wrong guesses, 10^5 in a block."""
    others = np.zeros(len(view) + 1, np.int32)  # how many bytes before each place are no digits
    np.cumsum((view < ord("0")) | (view > ord("9")), out=others[1:])
    first = start + (view[start] == ord("-"))
    digits = start + size - first
    good = (digits > 0) & (size < MOST) & (others[start + size] == others[first])
    found: Flags = good & ((view[first] != ord("0")) | (digits == 1))
    return found


def _short(view: Bytes, start: Ints, size: Ints) -> Ints:
    """The numbers of a few digits."""
    width = int(size.max(initial=1))
    places = np.arange(width)
    raw = np.where(places < size[:, None], view[np.minimum(start[:, None] + places, len(view) - 1)], 0)
    return np.ascontiguousarray(raw.astype(np.uint8)).view(f"S{width}").reshape(-1).astype(np.int64)
