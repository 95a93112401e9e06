"""Entries of a table and of a code book as columns.

Pickle and Parquet readers produce these; tables are made of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class Rows(NamedTuple):
    """Entries of a table as four columns of equal length."""

    obs: Array
    action: Array
    next_obs: Array
    counts: Array


class Codes(NamedTuple):
    """Entries of a code book: image codes and their indices."""

    codes: Array
    indices: Array


class Columns(NamedTuple):
    """Entries of a table with the columns in the order that sorting uses."""

    obs: Array
    next_obs: Array
    action: Array
    counts: Array

    def part(self, start: int, stop: int) -> Columns:
        """Return the rows from `start` up to `stop`."""
        return Columns(*(column[start:stop] for column in self))


def as_column(values: Sequence[Any]) -> Array:
    """Return numbers as int64 if all fit, as float64 if there are fractions, else as Python integers."""
    if float in set(map(type, values)):
        return np.array([float(value) for value in values], np.float64)
    try:
        return np.array(values, np.int64)
    except OverflowError:
        return np.array(values, object)


def narrow(values: Array) -> Array:
    """Return int64 numbers in 32 bits if they fit, which halves the memory of a large table."""
    small = values.astype(np.int32)
    return small if np.array_equal(small, values) else values
