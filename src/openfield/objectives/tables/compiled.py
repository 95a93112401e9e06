"""Compiled loops for large tables: sorting of packed rows, and the sums of rows in order.

Imported only where it pays (extra `fast`). The NumPy paths of `counts` give the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from openfield.objectives.tables.rows import Array, Columns

DIGIT = 11
"""Bits that a round of sorting looks at."""


def sort_keys(keys: Array, bits: int) -> Array:
    """Return numbers of so many bits in order. NumPy takes three times as long."""
    spare = np.empty_like(keys)
    for shift in range(0, bits, DIGIT):
        _scatter(keys, spare, np.uint64(shift))
        keys, spare = spare, keys
    return keys


def sum_rows_of_inputs(rows: Columns) -> tuple[Array, Array, Array, Array, Array]:
    """Return n(o), n(o, a), n(o, p), n(o, a, p) and k(o, a) of rows in order that hold all rows of their inputs."""
    sums = np.empty((5, len(rows.obs)), np.int64)
    sizes = _sum_rows(*rows, int(rows.action.max()) + 1, sums)
    inputs, pairs, moves, triples, branches = (part[:size] for part, size in zip(sums, sizes, strict=True))
    return inputs, pairs, moves, triples, branches


@njit(cache=True)
def _scatter(source: Any, target: Any, shift: Any) -> None:
    """Copy keys to where the digit at `shift` puts them; keys with equal digits keep their order."""
    mask = np.uint64((1 << DIGIT) - 1)
    places = np.zeros((1 << DIGIT) + 1, np.int64)
    for key in source:
        places[np.int64((key >> shift) & mask) + 1] += 1
    for i in range(1, len(places)):
        places[i] += places[i - 1]
    for key in source:
        at = np.int64((key >> shift) & mask)
        target[places[at]] = key
        places[at] += 1


@njit(cache=True)
def _sum_rows(obs: Any, next_obs: Any, action: Any, count: Any, actions: int, sums: Any) -> Any:
    """Write the sums of equal inputs, pairs, moves and triples, and the branches of pairs; return how many of each."""
    inputs, pairs, moves, triples, branches = sums
    place = np.full(actions, -1, np.int64)  # where the pair of the open input and each action is
    i = p = m = t = 0
    first = 0
    for row in range(len(obs)):
        new_input = row == 0 or obs[row] != obs[row - 1]
        new_move = new_input or next_obs[row] != next_obs[row - 1]
        if new_input:
            inputs[i] = 0
            i += 1
            first = p
        if new_move:
            moves[m] = 0
            m += 1
        a = action[row]
        if place[a] < first:
            place[a] = p
            pairs[p] = branches[p] = 0
            p += 1
        if new_move or a != action[row - 1]:
            triples[t] = 0
            t += 1
            branches[place[a]] += 1
        inputs[i - 1] += count[row]
        moves[m - 1] += count[row]
        triples[t - 1] += count[row]
        pairs[place[a]] += count[row]
    return i, p, m, t, p
