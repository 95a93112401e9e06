"""Histograms of counts: how often each count occurs, which is all that the objectives need of a table.

`counts` fills them, and the measures sum functions over them. Sums of whole numbers are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

Array = np.ndarray[Any, Any]

SMALL = 1 << 12
"""Values below this are counted by position. 98 % of the counts of a recorded human are below 20."""


class Histogram(msgspec.Struct, frozen=True, eq=False):
    """Distinct values, rising, and how many times each occurs."""

    values: Array
    times: Array

    @property
    def size(self) -> int:
        """How many numbers were counted."""
        return int(self.times.sum())

    @property
    def total(self) -> int | float:
        """The sum of all numbers, exact for whole ones."""
        if self.values.dtype.kind == "f":
            return math.fsum((self.values * self.times).tolist())
        pairs = zip(self.values.tolist(), self.times.tolist(), strict=True)
        total: int = sum(value * time for value, time in pairs)
        return total

    def sum_of(self, function: Callable[[Array], Array]) -> float:
        """Sum a function over all numbers, rounded once."""
        return math.fsum((self.times * function(self.values.astype(np.float64))).tolist())


def sorted_distinct(numbers: Array) -> Array:
    """Return the distinct numbers in rising order, by sorting: `np.unique` hashes and takes twenty times as long."""
    ordered = np.sort(numbers)
    first: Array = np.ones(len(ordered), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def tally(numbers: Array) -> Histogram:
    """Return the histogram of positive numbers."""
    if numbers.dtype.kind == "f":
        return Histogram(*np.unique(numbers, return_counts=True))
    small = numbers < SMALL
    if small.all():
        return from_tally(np.bincount(numbers))
    few = np.bincount(np.minimum(numbers, SMALL), minlength=SMALL + 1)[:SMALL]
    values, times = np.unique(numbers[~small], return_counts=True)
    return from_tally(few, values, times)


def from_tally(few: Array, values: Array | None = None, times: Array | None = None) -> Histogram:
    """Make a histogram.

    Args:
        few: How often each small value occurs, by position.
        values: Larger values in rising order.
        times: How often each larger value occurs.
    """
    found = np.flatnonzero(few)
    if values is None or times is None:
        return Histogram(found.astype(np.int64), few[found].astype(np.int64))
    return Histogram(
        np.concatenate((found, values)).astype(np.int64), np.concatenate((few[found], times)).astype(np.int64)
    )


def merge_histograms(histograms: Sequence[Histogram], signs: Sequence[int] | None = None) -> Histogram:
    """Merge histograms into one; with signs, add or subtract them and drop values that cancel."""
    if not histograms:
        return Histogram(np.empty(0, np.int64), np.empty(0, np.int64))
    signs = signs or [1] * len(histograms)
    values, places = np.unique(np.concatenate([part.values for part in histograms]), return_inverse=True)
    times = np.zeros(len(values), np.int64)
    np.add.at(times, places, np.concatenate([sign * part.times for sign, part in zip(signs, histograms, strict=True)]))
    kept = times != 0
    return Histogram(values[kept], times[kept])
