"""The passes of `counts` as compiled loops, for tables that are large.

Imported only where it pays; the NumPy paths give the same bits. Needs the extra `fast`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from openfield.objectives.tables.counts import Counts
from openfield.objectives.tables.histograms import SMALL, Array, from_tally
from openfield.objectives.tables.jit import njit
from openfield.objectives.tables.packing import Layout, Packed
from openfield.objectives.tables.rows import Columns

KINDS = 5
INPUT, PAIR, MOVE, TRIPLE, BRANCH = range(KINDS)
WHOLE_SORT = 48
"""Runs up to this length are sorted by insertion."""
FIRST_DIGIT = 11
UNPACKED = 2048
FILLED = 7


def count_rows(columns: Columns) -> Counts:
    """The histograms of rows in order."""
    few = np.zeros((KINDS, SMALL), np.int64)
    return _counts(few, _count_rows(*columns, int(columns.action.max()) + 1, few))


def count_packed(packed: Packed) -> Counts:
    """The histograms of packed rows in any order; the keys are sorted in place."""
    layout = packed.layout
    _sort_keys(packed.keys, np.empty_like(packed.keys), sum(layout[:4]))
    few = np.zeros((KINDS, SMALL), np.int64)
    return _counts(few, _count_keys(packed.keys, packed.large, np.array(layout[:4]), few))


def pack_keys(columns: tuple[Array, Array, Array, Array], layout: Layout) -> Array:
    """`packing.pack`'s keys, in one pass."""
    keys = np.empty(len(columns[0]), np.uint64)
    _pack_keys(columns, np.array(layout), keys)
    return keys


def _counts(few: Array, large: Array) -> Counts:
    parts = []
    for kind in range(KINDS):
        values, times = np.unique(large[large[:, 0] == kind, 1], return_counts=True)
        parts.append(from_tally(few[kind], values, times))
    return Counts(*parts)


@njit(cache=True)
def _pack_keys(columns: Any, layout: Any, keys: Any) -> None:
    obs, next_obs, action, counts = columns
    limit = (1 << layout[3]) - 1
    for i in range(len(keys)):
        key = (np.int64(obs[i]) - layout[4]) << layout[1] | (np.int64(next_obs[i]) - layout[5])
        key = key << layout[2] | np.int64(action[i])
        count = np.int64(counts[i])
        keys[i] = np.uint64(key << layout[3] | (count if count <= limit else 0))


@njit(cache=True)
def _count_rows(obs: Any, next_obs: Any, action: Any, count: Any, actions: int, few: Any) -> Any:
    state, scratch, large = _begin(actions)
    done = 0
    while done < len(obs):
        rows = (obs[done:], next_obs[done:], action[done:], count[done:])
        done += _pass(rows, state, scratch, few, large)
        large = _with_room(large, state[FILLED], actions)
    return _finish(state, scratch, few, large)


@njit(cache=True)
def _count_keys(keys: Any, outsized: Any, bits: Any, few: Any) -> Any:
    """The pass over packed rows, unpacked a few thousand at a time into columns that stay in the cache."""
    actions = 1 << bits[2]
    state, scratch, large = _begin(actions)
    rows = np.empty((4, UNPACKED), np.int64)
    used = 0
    for start in range(0, len(keys), UNPACKED):
        size = min(UNPACKED, len(keys) - start)
        used = _unpack(keys[start : start + size], outsized, used, bits, rows)
        done = 0
        while done < size:
            here = rows[:, done:size]
            done += _pass((here[0], here[1], here[2], here[3]), state, scratch, few, large)
            large = _with_room(large, state[FILLED], actions)
    return _finish(state, scratch, few, large)


@njit(cache=True)
def _unpack(keys: Any, outsized: Any, used: int, bits: Any, rows: Any) -> int:
    masks = [np.uint64((1 << bits[i]) - 1) for i in range(4)]
    shifts = [np.uint64(bits[i]) for i in range(4)]
    for i in range(len(keys)):
        key = keys[i]
        rows[3, i] = np.int64(key & masks[3])
        key >>= shifts[3]
        rows[2, i] = np.int64(key & masks[2])
        key >>= shifts[2]
        rows[1, i] = np.int64(key & masks[1])
        rows[0, i] = np.int64(key >> shifts[1])
        if rows[3, i] == 0:
            rows[3, i] = outsized[used]
            used += 1
    return used


@njit(cache=True)
def _begin(actions: int) -> Any:
    """What is kept between rows.

    The sums of the open runs; for each action of the open input its sum, its next inputs, and a list of those touched;
    and the values too large to be tallied by position.
    """
    return np.zeros(8, np.int64), np.zeros((3, actions), np.int64), np.empty((2 * actions + 1024, 2), np.int64)


@njit(cache=True)
def _with_room(large: Any, filled: int, actions: int) -> Any:
    if filled + 2 * actions + 8 <= len(large):
        return large
    grown = np.empty((2 * len(large), 2), np.int64)
    grown[:filled] = large[:filled]
    return grown


@njit(cache=True)
def _pass(rows: Any, state: Any, scratch: Any, few: Any, large: Any) -> int:
    """Runs of equal triples, moves and inputs are summed and tallied as they end.

    Returns how many rows were read: fewer than given when the list of large values is nearly full.
    """
    last_obs, last_next, last_action, n_obs, n_move, n_triple, touched, filled = state
    obs, next_obs, action, count = rows
    sums, branches, list_of = scratch[0], scratch[1], scratch[2]
    triples, moves = few[TRIPLE], few[MOVE]
    limit = len(large) - 2 * len(sums) - 8
    done = len(obs)
    for i in range(len(obs)):
        o, p, a, c = np.int64(obs[i]), np.int64(next_obs[i]), np.uint64(action[i]), np.int64(count[i])
        new_input = o != last_obs
        new_move = new_input or p != last_next
        if (new_move or a != np.uint64(last_action)) and n_triple:
            if n_triple < SMALL:
                triples[np.uint64(n_triple)] += 1
            else:
                filled = _put(large, filled, TRIPLE, n_triple)
            n_triple = 0
            if new_move:
                if n_move < SMALL:
                    moves[np.uint64(n_move)] += 1
                else:
                    filled = _put(large, filled, MOVE, n_move)
                n_move = 0
            if new_input:
                filled = _end_input(n_obs, touched, scratch, few, large, filled)
                n_obs = touched = 0
            if filled > limit:
                done = i
                break
        if n_triple == 0:
            list_of[np.uint64(touched)] = a
            touched += sums[a] == 0
            branches[a] += 1
        sums[a] += c
        n_triple += c
        n_move += c
        n_obs += c
        last_obs, last_next, last_action = o, p, np.int64(a)
    state[:] = (last_obs, last_next, last_action, n_obs, n_move, n_triple, touched, filled)
    return done


@njit(cache=True)
def _end_input(n_obs: int, touched: int, scratch: Any, few: Any, large: Any, filled: int) -> int:
    """Tally an input and its pairs, and clear their slots."""
    filled = _tally(few[INPUT], large, filled, INPUT, n_obs)
    pairs, fans = few[PAIR], few[BRANCH]
    sums, branches, list_of = scratch[0], scratch[1], scratch[2]
    for i in range(touched):
        action = np.uint64(list_of[i])
        filled = _tally(pairs, large, filled, PAIR, sums[action])
        filled = _tally(fans, large, filled, BRANCH, branches[action])
        sums[action] = 0
        branches[action] = 0
    return filled


@njit(cache=True)
def _tally(few: Any, large: Any, filled: int, kind: int, value: int) -> int:
    if value < SMALL:
        few[np.uint64(value)] += 1
        return filled
    return _put(large, filled, kind, value)


@njit(cache=True)
def _put(large: Any, filled: int, kind: int, value: int) -> int:
    """Note a value that is too large to be tallied by position."""
    large[filled, 0] = kind
    large[filled, 1] = value
    return filled + 1


@njit(cache=True)
def _finish(state: Any, scratch: Any, few: Any, large: Any) -> Any:
    """Tally the runs that were open at the end."""
    n_obs, n_move, n_triple, touched, filled = state[3], state[4], state[5], state[6], state[7]
    if n_triple:
        filled = _tally(few[TRIPLE], large, filled, TRIPLE, n_triple)
        filled = _tally(few[MOVE], large, filled, MOVE, n_move)
        filled = _end_input(n_obs, touched, scratch, few, large, filled)
    return large[:filled]


@njit(cache=True)
def _sort_keys(keys: Any, spare: Any, used: int) -> None:
    """Radix sort from the highest used bits down: two scattering rounds leave runs of a few keys.

    np.sort takes 64 ns a key here (its vector code is slow on this processor family), this about 15.
    """
    shift = max(used - FIRST_DIGIT, 0)
    edges = _scatter(keys, spare, shift, FIRST_DIGIT)
    start = 0
    for end in edges:
        size = end - start
        if size > WHOLE_SORT and shift > 0:
            digit = 1
            while digit < FIRST_DIGIT and digit < shift and size >> digit > 4:
                digit += 1
            inner = _scatter(spare[start:end], keys[start:end], shift - digit, digit)
            low = 0
            for high in inner:
                _sort_run(keys[start + low : start + high])
                low = high
        else:
            keys[start:end] = spare[start:end]
            _sort_run(keys[start:end])
        start = end


@njit(cache=True)
def _scatter(source: Any, target: Any, shift: int, digit: int) -> Any:
    """Copy keys to where the digit at `shift` puts them; the places where runs of equal digits end are returned."""
    mask = np.uint64((1 << digit) - 1)
    down = np.uint64(shift)
    edges = np.zeros((1 << digit) + 1, np.int64)
    for key in source:
        edges[np.int64((key >> down) & mask) + 1] += 1
    for i in range(1, len(edges)):
        edges[i] += edges[i - 1]
    for key in source:
        at = np.int64((key >> down) & mask)
        target[edges[at]] = key
        edges[at] += 1
    return edges[:-1]


@njit(cache=True)
def _sort_run(keys: Any) -> None:
    if len(keys) > WHOLE_SORT:
        keys.sort()
        return
    for i in range(1, len(keys)):
        key = keys[i]
        j = i
        while j > 0 and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            j -= 1
        keys[j] = key
