"""Make frames small by a fixed linear map on rows and one on columns.

Weights are whole numbers over 2 * size^3, so 8-bit frames need no rounding.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from openfield.objectives.tables.histograms import Array

CHUNK = 8
"""Frames handled at once: 0.6 MB as float32, which stay in the cache; 32 take half as long again."""


class Taps(NamedTuple):
    """Which rows (or columns) are read, and their weights in each of the results; weights are over 2 * size^3."""

    used: Array
    weights: Array
    """(size, len(used))."""


def shrink(images: Array, size: int) -> Array:
    """Return frames of shape (T, H, W) as (T, size, size) float64."""
    count, height, width = images.shape
    rows, columns = taps(height, size), taps(width, size)
    scale = 1.0 / (2 * size**3) ** 2
    result = np.empty((count, size, size), np.float64)
    exact = images.dtype == np.uint8 and _exact_in_32_bits(size)
    kind = np.float32 if exact else np.float64
    across: Array = _matrix(columns, width).astype(kind)
    down = rows.weights.astype(np.float64)
    for at in range(0, count, CHUNK):
        part: Array = images[at : at + CHUNK, rows.used].astype(np.float32).astype(kind, copy=False)
        result[at : at + CHUNK] = down @ (part @ across).astype(np.float64) * scale
    return result


@lru_cache(maxsize=64)
def taps(length: int, size: int) -> Taps:
    """Return the weights of `length` source lines in `size` results.

    Sample point i of size^2 lies at (i + 1/2) * length / size^2 - 1/2, clamped to the frame.
    """
    grid = size * size
    weights = np.zeros((size, length), np.int64)
    for point in range(grid):
        twice = (2 * point + 1) * length - grid
        low, part = divmod(twice, 2 * grid)
        if low < 0:
            low, part = 0, 0
        if low >= length - 1:
            low, part = length - 1, 0
        weights[point // size, low] += 2 * grid - part
        if part:
            weights[point // size, low + 1] += part
    used = np.flatnonzero(weights.any(axis=0))
    return Taps(used, weights[:, used])


def _matrix(columns: Taps, width: int) -> Array:
    """Return the weights of all columns, (width, size)."""
    matrix = np.zeros((width, len(columns.weights)), np.int64)
    matrix[columns.used] = columns.weights.T
    return matrix


def _exact_in_32_bits(size: int) -> bool:
    """Return True if 255 times all weights of one result fits the 24 bits of a float32."""
    return 255 * 2 * size**3 < 1 << 24
