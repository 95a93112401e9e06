"""The entries of a pickled table read byte by byte in a compiled loop, for files that are large.

Does what `records` does with whole columns, and like it stops before anything that is not an entry. Needs the extra
`fast`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from openfield.objectives.forms import Bytes, narrow
from openfield.objectives.records import (
    BYTES1,
    GET1,
    GET4,
    INT1,
    INT2,
    INT4,
    LONG1,
    MARK,
    PUT1,
    PUT4,
    PUT_NEXT,
    REDUCE,
    SETITEMS,
    SPARE,
    TUPLE2,
    TUPLE3,
    Rows,
    Stretch,
)
from openfield.objectives.scalars import ABSENT, Scalars

SHORTEST = 8
"""Bytes of the shortest entry: three small integers, tuple, and a count that is small as well."""

AT, PUTS, TOP, KEPT, FUNCTION, DTYPE, WIDTH, SIGNED = range(8)
"""Places in the state: position, memo entries, the highest memo number, numbers kept; what the memo holds."""


def read_stretch(view: Bytes, at: int, scalars: Scalars) -> Stretch | None:
    """As `records.read_records`."""
    room = (len(view) - at) // SHORTEST + 1
    rows = np.empty((4, room), np.int64)
    made = np.empty((2, 4 * room if scalars.function >= 0 else 4), np.int64)
    kind = scalars.function, scalars.dtype, scalars.width, scalars.signed
    state = np.array([at, scalars.puts, scalars.top, 0, *kind], np.int64)
    size = _read(view, state, scalars.whole(), rows, made)
    if not size:
        return None
    at, scalars.puts, scalars.top, kept = (int(number) for number in state[:4])
    scalars.extend(made[0, :kept], made[1, :kept])
    return Stretch(Rows(*(narrow(column[:size]) for column in rows)), at)


@njit(cache=True)
def _read(view: Any, state: Any, known: Any, rows: Any, made: Any) -> Any:
    """Entries one after the other; `state` is left as it was after the last whole one.

    Plain integers are read in place, with unsigned positions that need no check for being negative: 15 ns an entry
    against 127 when every integer is a call.
    """
    size, at, end = 0, np.uint64(state[AT]), np.uint64(max(len(view) - SPARE, 0))
    one, two, four = np.uint64(1), np.uint64(2), np.uint64(4)
    puts, top = state[PUTS], state[TOP]
    steady = state[:4].copy()
    whole = True
    while at < end and size < rows.shape[1]:
        for part in range(4):
            if part == 3:
                whole = view[at] == TUPLE3
                at += one
                key = np.int64(ABSENT)
                if view[at] == PUT4:
                    key = np.int64(view[at + one]) | np.int64(view[at + two]) << 8
                    key |= np.int64(view[at + two + one]) << 16 | np.int64(view[at + four]) << 24
                    at += four + one
                elif view[at] == PUT_NEXT:
                    key = puts
                    at += one
                elif view[at] == PUT1:
                    key = np.int64(view[at + one])
                    at += two
                if key != ABSENT:
                    whole = whole and key > top
                    puts, top = puts + 1, key
            code = view[at]
            if code == INT2:
                rows[part, size] = np.int64(view[at + one]) | np.int64(view[at + two]) << 8
                at += two + one
            elif code == INT1:
                rows[part, size] = np.int64(view[at + one])
                at += two
            elif code == INT4:
                low = np.int64(view[at + one]) | np.int64(view[at + two]) << 8 | np.int64(view[at + two + one]) << 16
                rows[part, size] = low | np.int64(np.int8(view[at + four])) << 24
                at += four + one
            else:
                state[AT], state[PUTS], state[TOP] = np.int64(at), puts, top
                rows[part, size] = _odd(view, state, known, made)
                whole = whole and state[AT] >= 0
                at, puts, top = np.uint64(max(state[AT], 0)), state[PUTS], state[TOP]
            if not whole:
                break
        if not whole:
            break
        if view[at] == SETITEMS and view[at + one] == MARK:
            at += two
        state[AT], state[PUTS], state[TOP] = np.int64(at), puts, top
        steady[:] = state[:4]
        size += 1
    state[:4] = steady
    return size


@njit(cache=True)
def _odd(view: Any, state: Any, known: Any, made: Any) -> Any:
    """A longer integer or a NumPy number at state[AT], which moves on behind it, or to -1 if there is none."""
    at = state[AT]
    if view[at] == LONG1 and view[at + 1] <= 8:
        size = np.int64(view[at + 1])
        state[AT] = at + 2 + size
        return _signed(_little(view, at + 2, size), 8 * size)
    if view[at] == GET1 or view[at] == GET4:
        return _number(view, state, known, made)
    state[AT] = -1
    return np.int64(0)


@njit(cache=True)
def _number(view: Any, state: Any, known: Any, made: Any) -> Any:
    """A NumPy number spelled out, or one taken from the memo."""
    asked = _get(view, state)
    if asked != state[FUNCTION]:
        return _recall(state, asked, known, made)
    kind = _get(view, state)
    at, width = state[AT], state[WIDTH]
    if kind != state[DTYPE] or kind == ABSENT or at < 0 or view[at] != BYTES1 or view[at + 1] != width:
        state[AT] = -1
        return np.int64(0)
    value = _little(view, at + 2, width)
    value = _signed(value, 8 * width) if state[SIGNED] else value
    state[AT] = at + 2 + width
    for code in (TUPLE2, REDUCE):
        _skip_put(view, state)
        if state[AT] < 0 or view[state[AT]] != code:
            state[AT] = -1
            return np.int64(0)
        state[AT] += 1
    key = _skip_put(view, state)
    if key != ABSENT:
        made[0, state[KEPT]], made[1, state[KEPT]] = key, value
        state[KEPT] += 1
    return value


@njit(cache=True)
def _recall(state: Any, key: int, known: Any, made: Any) -> Any:
    """The number kept under a memo number, among those made here or before."""
    here = np.searchsorted(made[0, : state[KEPT]], key)
    if here < state[KEPT] and made[0, here] == key:
        return made[1, here]
    keys, values = known
    there = np.searchsorted(keys, key)
    if there < len(keys) and keys[there] == key:
        return values[there]
    state[AT] = -1
    return np.int64(0)


@njit(cache=True)
def _get(view: Any, state: Any) -> Any:
    """The memo number asked for at state[AT], which moves on; ABSENT if nothing is asked for."""
    at = state[AT]
    if view[at] == GET1:
        state[AT] = at + 2
        return np.int64(view[at + 1])
    if view[at] == GET4:
        state[AT] = at + 5
        return _little(view, at + 1, 4)
    return ABSENT


@njit(cache=True)
def _skip_put(view: Any, state: Any) -> Any:
    """Pass over a memo opcode, if there is one, or to -1 if its number does not rise; the number, or ABSENT."""
    at = state[AT]
    code = view[at]
    if code == PUT_NEXT:
        key, length = state[PUTS], 1
    elif code == PUT1:
        key, length = np.int64(view[at + 1]), 2
    elif code == PUT4:
        key, length = _little(view, at + 1, 4), 5
    else:
        return ABSENT
    if key <= state[TOP]:
        state[AT] = -1
        return ABSENT
    state[AT], state[PUTS], state[TOP] = at + length, state[PUTS] + 1, key
    return key


@njit(cache=True)
def _little(view: Any, at: Any, size: Any) -> Any:
    value = np.int64(0)
    for i in range(size):
        value |= np.int64(view[at + i]) << (8 * i)
    return value


@njit(cache=True)
def _signed(value: Any, bits: Any) -> Any:
    if bits == 0 or bits == 64:
        return value
    return value - (((value >> (bits - 1)) & 1) << bits)
