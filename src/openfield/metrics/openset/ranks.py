"""The rank of the true class among an agent's scores.

Scores are reduced to ranks once; the metrics of `compat` and `fixed` are sums over ranks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NEVER = np.iinfo(np.int64).max
"""The rank of a label that has no column: it is never among the best."""


def rank_labels(p_class: ArrayLike, gt_class: ArrayLike) -> Ints:
    """Return how many classes come before the true one; a label without a column has the rank `NEVER`.

    Of equal scores the lower index comes first: an unstable sort would give other numbers on other processors.
    """
    scores, labels = np.asarray(p_class), np.asarray(gt_class, dtype=np.int64)
    within = (labels >= 0) & (labels < scores.shape[1])
    safe = np.where(within, labels, 0)
    own = scores[np.arange(len(scores)), safe][:, None]
    before = np.arange(scores.shape[1]) < safe[:, None]
    ranks = (scores > own).sum(axis=1) + ((scores == own) & before).sum(axis=1)
    return np.where(within, ranks, NEVER)


def first_of(flags: NDArray[Any]) -> int | None:
    """Return the index of the first true flag, or None."""
    found = np.flatnonzero(flags)
    return int(found[0]) if len(found) else None


def count_windows(hits: NDArray[np.bool_], width: int) -> Ints:
    """Count the hits in each window of this width."""
    total = np.concatenate([[0], np.cumsum(hits, dtype=np.int64)])
    return total[width:] - total[: len(total) - width] if len(hits) >= width else np.zeros(0, np.int64)
