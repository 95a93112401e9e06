"""Check the rows of a table: counts are positive numbers, keys are unique, ids fit into 64 bits.

Tables in memory and conversions of files use the same checks.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.tables.histograms import Array
from openfield.objectives.tables.rows import Rows

MAX_INT64 = 2**63 - 1
FRACTIONS = "fractional counts: sums are rounded and may depend on the order of rows"
BEYOND_64_BITS = "counts beyond 64 bits: computed as float64"


def check_rows(rows: Rows, name: str) -> tuple[Rows, int, tuple[str, ...]]:
    """Check the counts. Return the rows with positive ones, how many had a count of zero, and notes for the report.

    Raises:
        InvalidInput: A count is negative or not a number; the message names the key.
    """
    rows, notes = check_counts(rows, name)
    positive = rows.counts > 0
    zeros = len(positive) - int(np.count_nonzero(positive))
    return Rows(*(column[positive] for column in rows)) if zeros else rows, zeros, notes


def check_counts(rows: Rows, name: str) -> tuple[Rows, tuple[str, ...]]:
    """Check the counts as `check_rows` does. Return all rows, also those with a count of zero, and the notes."""
    counts, notes = _checked_counts(rows, name)
    with np.errstate(over="ignore"):
        if counts.dtype.kind == "f" and not np.isfinite(counts.sum()):
            raise InvalidInput(f"{name}: the sum of all counts is beyond the range of float64.")
    return rows._replace(counts=counts), notes


def find_repeated(obs: Array, action: Array, next_obs: Array) -> tuple[int, int, int] | None:
    """Return the lowest key that occurs twice, if there is one."""
    order = np.lexsort((action, next_obs, obs))
    columns = [column[order] for column in (obs, action, next_obs)]
    same = np.logical_and.reduce([column[1:] == column[:-1] for column in columns])
    if not same.any():
        return None
    source, taken, then = (int(column[np.argmax(same)]) for column in columns)
    return source, taken, then


def check_single(rows: Rows, name: str) -> None:
    """Check that every key occurs once, also keys with a count of zero.

    Raises:
        InvalidInput: A key occurs twice; the message names it.
    """
    obs, next_obs, ids = rank_ids(rows.obs, rows.next_obs)
    action, _, actions = rank_ids(rows.action, rows.action)
    repeated = find_repeated(obs, action, next_obs)
    if repeated is not None:
        source, taken, then = repeated
        key = ids[source] if ids else source, actions[taken] if actions else taken, ids[then] if ids else then
        raise InvalidInput(f"{name}: key {key} occurs more than once.")


def rank_ids(first: Array, second: Array, more: Iterable[int] = ()) -> tuple[Array, Array, tuple[int, ...] | None]:
    """Replace the ids of two columns by their ranks if some are beyond 64 bits. Return also the id of each rank.

    Further ids in `more` are ranked too.
    """
    if first.dtype != object and second.dtype != object:
        return first, second, None
    every = np.array([*map(int, first), *map(int, second), *more], object)
    ids, ranks = np.unique(every, return_inverse=True)  # by comparing: foreign ids may be chosen to share one hash
    return ranks[: len(first)], ranks[len(first) : len(first) + len(second)], tuple(ids.tolist())


def _checked_counts(rows: Rows, name: str) -> tuple[Array, tuple[str, ...]]:
    """Return counts as int64, or as float64 if there are fractions or the sum is beyond 64 bits."""
    counts = rows.counts
    if not len(counts):
        return counts.astype(np.int64), ()
    if counts.dtype == object and float in set(map(type, counts)):
        counts = _rounded(counts, name)
    wrong = np.asarray(~(counts >= 0) | np.isinf(counts) if counts.dtype.kind == "f" else counts < 0, bool)
    if wrong.any():
        at = int(np.argmax(wrong))
        key = tuple(int(column[at]) for column in rows[:3])
        raise wrong_count(key, counts[at], name)
    if counts.dtype.kind == "f":
        return counts, (FRACTIONS,)
    if counts.dtype == object or _overflows(counts):
        return _rounded(counts, name), (BEYOND_64_BITS,)
    return counts, ()


def wrong_count(key: tuple[int, ...], count: float, name: str) -> InvalidInput:
    """Return the error for a count that is not a positive number."""
    return InvalidInput(f"{name}: the count of key {key} is {count}; counts are positive numbers.")


def _overflows(counts: Array) -> bool:
    """Return True if the sum is beyond 64 bits. Only a sum near that is added up in Python's integers."""
    return float(counts.sum(dtype=np.float64)) > MAX_INT64 / 2 and sum(counts.tolist()) > MAX_INT64


def _rounded(counts: Array, name: str) -> Array:
    try:
        return counts.astype(np.float64)
    except OverflowError:
        raise InvalidInput(f"{name}: a count is beyond the range of float64.") from None


def plain_key(key: Any) -> tuple[int, int, int]:
    """Return a key of a mapping as three plain integers."""
    try:
        obs, action, next_obs = key
        action = bool(action) if isinstance(action, np.bool) else action
        obs, action, next_obs = map(operator.index, (obs, action, next_obs))
    except (TypeError, ValueError):
        raise InvalidInput(f"table: key {key!r} is not a tuple of three integers.") from None
    return obs, action, next_obs


def plain_integers(values: Iterable[Any]) -> list[int]:
    """Return codes or indices as plain integers."""
    try:
        return [operator.index(value) for value in values]
    except TypeError as error:
        raise InvalidInput(f"table: the code book maps integers to integers ({error}).") from None


def plain_count(key: Any, value: Any) -> int | float:
    """Return a count of a mapping as a plain number."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(f"table: the count of key {key} is {value!r}, not a number.")
    return value
