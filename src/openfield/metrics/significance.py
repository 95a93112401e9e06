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
    signs = np.random.default_rng(SEED).choice((-1.0, 1.0), (MAX_ARRANGEMENTS - 1, len(sizes)))
    return share_as_extreme(np.append(abs(signs @ sizes), observed), observed, float(sizes.sum()))


def permute_labels(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the two-sided p-value that two samples have one mean: each value could be of the other sample."""
    values, m = np.array([*first, *second], dtype=float), len(first)
    labels = arrange(np.arange(len(values)) < m)
    sums = labels @ values
    gaps = abs(sums / m - (values.sum() - sums) / (len(values) - m))
    return share_as_extreme(gaps, float(gaps[0]), float(abs(values).max()))


def share_as_extreme(statistics: NDArray[np.floating[Any]], observed: float, scale: float) -> float:
    """Return the share of arrangements whose statistic is at least the observed one."""
    return float(np.mean(statistics >= observed - TOLERANCE * max(scale, 1.0)))


def arrange(labels: NDArray[Any]) -> NDArray[Any]:
    """Return all distinct arrangements of labels, or a random choice of them; the first row is the observed one."""
    counts = sorted(Counter(labels.tolist()).items(), key=lambda item: item[1])
    ways = math.factorial(len(labels))
    for _, count in counts:
        ways //= math.factorial(count)
    if ways <= MAX_ARRANGEMENTS:
        rows = [row for row in _list_all(counts, list(range(len(labels))), labels.tolist()) if row != labels.tolist()]
        return np.array([labels.tolist(), *rows])
    drawn = np.random.default_rng(SEED).permuted(np.tile(labels, (MAX_ARRANGEMENTS - 1, 1)), axis=1)
    return np.concatenate([labels[None], drawn])


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
