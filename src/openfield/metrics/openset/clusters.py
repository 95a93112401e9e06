"""How well clusters of discovered novelty agree with the true classes, as the CONDDA protocol asks.

Two labellings of the same samples -> numbers.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray


def score_clusters(true: ArrayLike, found: ArrayLike) -> dict[str, float]:
    """Compute NMI, ARI, purity and clustering accuracy of a labelling."""
    table = contingency(true, found)
    return {
        "nmi": normalised_information(table),
        "ari": adjusted_rand(table),
        "purity": float(table.max(axis=0).sum() / table.sum()),
        "accuracy": assignment_total(table) / float(table.sum()),
    }


def contingency(true: ArrayLike, found: ArrayLike) -> NDArray[np.int64]:
    """Count the samples of each class (rows) in each cluster (columns)."""
    _, rows = np.unique(np.asarray(true), return_inverse=True)
    _, columns = np.unique(np.asarray(found), return_inverse=True)
    table = np.zeros((rows.max() + 1, columns.max() + 1), np.int64)
    np.add.at(table, (rows, columns), 1)
    return table


def normalised_information(table: NDArray[np.int64]) -> float:
    """Return the mutual information of the labellings over the mean of their entropies; 1 if both are 0."""
    joint = table / table.sum()
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    seen = joint > 0
    shared = float((joint[seen] * np.log(joint[seen] / np.outer(rows, columns)[seen])).sum())
    mean = (_entropy(rows) + _entropy(columns)) / 2
    return 1.0 if mean == 0 else max(shared, 0.0) / mean


def adjusted_rand(table: NDArray[np.int64]) -> float:
    """Return the agreement on pairs, corrected for chance."""
    pairs = math.comb(int(table.sum()), 2)
    both, rows, columns = (_pairs(part) for part in (table, table.sum(axis=1), table.sum(axis=0)))
    expected = rows * columns / pairs if pairs else 0.0
    maximum = (rows + columns) / 2
    return 1.0 if maximum == expected else (both - expected) / (maximum - expected)


def assignment_total(table: NDArray[np.int64]) -> float:
    """Return the most samples that agree if each cluster is given its own class (Hungarian method, O(n^3))."""
    size = max(table.shape)
    cost = np.zeros((size + 1, size + 1))
    cost[1 : table.shape[0] + 1, 1 : table.shape[1] + 1] = -table
    row_price, column_price = np.zeros(size + 1), np.zeros(size + 1)
    owner = np.zeros(size + 1, np.int64)  # of each column; 0 means none
    for row in range(1, size + 1):
        _augment(cost, row, owner, row_price, column_price)
    return -float(sum(cost[owner[column], column] for column in range(1, size + 1)))


def _augment(
    cost: NDArray[np.float64],
    row: int,
    owner: NDArray[np.int64],
    row_price: NDArray[np.float64],
    column_price: NDArray[np.float64],
) -> None:
    """Find a column for one more row along the cheapest alternating path."""
    size = len(owner)
    slack, before, done = np.full(size, np.inf), np.zeros(size, np.int64), np.zeros(size, bool)
    owner[0], column = row, 0
    while owner[column]:
        done[column] = True
        gap = cost[owner[column]] - row_price[owner[column]] - column_price
        better = ~done & (gap < slack)
        slack[better], before[better] = gap[better], column
        following = int(np.argmin(np.where(done, np.inf, slack)))
        step = slack[following]
        row_price[owner[done]] += step
        column_price[done] -= step
        slack[~done] -= step
        column = following
    while column:
        owner[column] = owner[before[column]]
        column = int(before[column])


def _entropy(shares: NDArray[np.float64]) -> float:
    seen = shares[shares > 0]
    return -float((seen * np.log(seen)).sum())


def _pairs(counts: NDArray[np.int64]) -> float:
    return float((counts * (counts - 1) // 2).sum())
