"""P-values by rearrangement: signs of paired differences, labels of trials, and Holm's correction of several.

All arrangements are counted if there are at most 10,000; otherwise the observed one and 9,999 random ones from a fixed
seed, so that the same trials always give the same p-value.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_ARRANGEMENTS = 10_000
MAX_BLOCK = 2_000_000
"""Values that are rearranged at a time, so that memory is bounded."""
SEED = 0
TOLERANCE = 1e-9
"""Sums of the same numbers in another order differ by rounding; arrangements that near count as equal."""


def flip_signs(differences: Sequence[float]) -> float:
    """Return the two-sided p-value that paired differences have no direction: each sign could be the other."""
    sizes = np.array([abs(value) for value in differences if value], dtype=float)
    observed = abs(math.fsum(differences))
    if 2 ** len(sizes) <= MAX_ARRANGEMENTS:
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=len(sizes))))
        return share_as_extreme(abs(signs @ sizes), observed, float(sizes.sum()))
    rng = np.random.default_rng(SEED)
    sums = [rng.choice((-1.0, 1.0), (rows, len(sizes))) @ sizes for rows in _split_rows(len(sizes))]
    return share_as_extreme(np.append(abs(np.concatenate(sums)), observed), observed, float(sizes.sum()))


def permute_labels(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the two-sided p-value that two samples have one mean: each value could be of the other sample."""
    values, m = np.array([*first, *second], dtype=float), len(first)
    sums = np.concatenate([labels @ values for labels in arrange(np.arange(len(values)) < m)])
    gaps = abs(sums / m - (values.sum() - sums) / (len(values) - m))
    return share_as_extreme(gaps, float(gaps[0]), float(abs(values).max()))


def share_as_extreme(statistics: NDArray[np.floating[Any]], observed: float, scale: float) -> float:
    """Return the share of arrangements whose statistic is at least the observed one."""
    return float(np.mean(statistics >= observed - TOLERANCE * max(scale, 1.0)))


def arrange(labels: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield all distinct arrangements of labels, or a random choice of them, in blocks of rows.

    The first row of the first block is the observed one.
    """
    counts = sorted(Counter(labels.tolist()).items(), key=lambda item: item[1])
    if _has_few_ways([count for _, count in counts]):
        others = [row for row in _list_all(counts, list(range(len(labels))), labels.tolist()) if row != labels.tolist()]
        yield np.array([labels.tolist(), *others])
        return
    yield labels[None]
    rng = np.random.default_rng(SEED)
    for rows in _split_rows(len(labels)):
        yield rng.permuted(np.tile(labels, (rows, 1)), axis=1)


def _has_few_ways(counts: Sequence[int]) -> bool:
    """Return whether labels that occur so often have few enough arrangements to list them all."""
    ways, left = 1, sum(counts)
    for count in counts[:-1]:
        if left > MAX_ARRANGEMENTS:  # there are more places for one label already
            return False
        ways, left = ways * math.comb(left, count), left - count
    return ways <= MAX_ARRANGEMENTS


def _split_rows(length: int) -> Iterator[int]:
    """Yield the numbers of rows of this length in which random arrangements are drawn."""
    block = max(1, MAX_BLOCK // max(1, length))
    left = MAX_ARRANGEMENTS - 1
    while left:
        rows = min(block, left)
        yield rows
        left -= rows


def _list_all(counts: Sequence[tuple[Any, int]], places: list[int], row: list[Any]) -> Iterator[list[Any]]:
    """Yield all arrangements of these labels on these places; the most frequent label comes last and fills the rest."""
    (label, count), *rest = counts
    for chosen in itertools.combinations(places, count):
        for place in chosen:
            row[place] = label
        if rest:
            yield from _list_all(rest, [place for place in places if place not in chosen], row)
        else:
            yield row.copy()


def correct_by_holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number, by Holm's step-down rule."""
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = highest
    return corrected
