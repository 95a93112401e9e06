"""Compiled code that makes frames small, with the same bits as `resize`.

Imported only where it pays (extra `fast`); compiled code is kept on disk between runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True)
def shrink_bytes(images: Any, rows: Any, down: Any, columns: Any, across: Any, scale: float, result: Any) -> None:
    """Write small frames into `result`: for each row add its source rows up in 32 bits, then its columns in 64."""
    size = len(down)
    row_spans, column_spans = _spans(down), _spans(across)
    line = np.empty(images.shape[2], np.int32)
    for t in range(len(images)):
        frame = images[t]
        for i in range(size):
            line[:] = 0
            for h in range(row_spans[i, 0], row_spans[i, 1]):
                weight, source = np.int32(down[i, h]), frame[rows[h]]
                for w in range(len(line)):
                    line[w] += weight * np.int32(source[w])
            for j in range(size):
                total = np.int64(0)
                for k in range(column_spans[j, 0], column_spans[j, 1]):
                    total += across[j, k] * line[columns[k]]
                result[t, i, j] = total * scale


@njit(cache=True)
def _spans(weights: Any) -> Any:
    """Return where the weights of each result begin and end."""
    spans = np.zeros((len(weights), 2), np.int64)
    for i in range(len(weights)):
        found = np.flatnonzero(weights[i])
        spans[i, 0], spans[i, 1] = found[0], found[-1] + 1
    return spans
