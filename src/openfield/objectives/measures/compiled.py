"""Compiled shuffles of many visits, for `permutations`.

Imported only where it pays (extra `fast`). The NumPy path of `permutations` shuffles alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from openfield.objectives.tables.histograms import Array

if TYPE_CHECKING:
    from openfield.objectives.measures.permutations import Visits


def sum_shuffled(visits: Visits, draws: int, seed: int, constants: tuple[int, int, int]) -> Array:
    """Compute the sum of n(o, a, p) ln n(o, a, p) for each of many shuffles.

    Args:
        visits: The visits to some inputs.
        draws: How many times their actions are shuffled.
        seed: The seed of the shuffles.
        constants: Those of SplitMix64, which makes a random number of any place.
    """
    sums, numbers = np.zeros(draws), tuple(map(np.uint64, (seed, *constants)))
    _shuffle_all(visits.starts, visits.move, visits.action, visits.width, visits.terms, numbers, sums)
    return sums


@njit(cache=True)
def _shuffle_all(starts: Any, move: Any, action: Any, width: int, terms: Any, numbers: Any, sums: Any) -> None:
    """Shuffle the actions of every input once per draw, and add up the terms of the cells."""
    size = len(move)
    seed, step, first, second = numbers
    taken = np.empty_like(action)
    counts = np.zeros(width, np.int64)
    for draw in range(len(sums)):
        taken[:] = action
        offset = np.uint64(draw) * np.uint64(size) + np.uint64(1)
        for group in range(len(starts) - 1):
            start = starts[group]
            for here in range(start + 1, starts[group + 1]):
                bits = seed + (np.uint64(here) + offset) * step
                bits = (bits ^ (bits >> np.uint64(30))) * first
                bits = (bits ^ (bits >> np.uint64(27))) * second
                bits = bits ^ (bits >> np.uint64(31))
                steps = np.uint64(here - start + 1)
                there = start + np.int64(((bits >> np.uint64(32)) * steps) >> np.uint64(32))
                moved = taken[there]
                taken[there] = taken[here]
                taken[here] = moved
        sums[draw] = _add_terms(move, taken, counts, terms)


@njit(cache=True)
def _add_terms(move: Any, taken: Any, counts: Any, terms: Any) -> float:
    """Add up the terms of the cells, a move at a time; `counts` is all zeros before and after."""
    total = 0.0
    first = 0
    for at in range(len(move)):
        counts[taken[at]] += 1
        if at + 1 == len(move) or move[at + 1] != move[at]:
            for visit in range(first, at + 1):
                count = counts[taken[visit]]
                if count:
                    total += terms[count]
                    counts[taken[visit]] = 0
            first = at + 1
    return total
