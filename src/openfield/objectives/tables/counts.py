"""The five histograms of a table, counted in one pass over rows in the order (input, next input, action).

Whole numbers are added up, so the order of rows and chunks changes no bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np

from openfield.objectives.tables.histograms import Array, Histogram, merge_histograms, tally
from openfield.objectives.tables.rows import Columns

BLOCK = 1 << 16
"""Rows handled at once: their columns and scratch fit the second-level cache."""
PACKED_AT_ONCE = 1 << 15
"""Rows packed at once: intermediate arrays stay in the second-level cache."""
MIN_COUNT_BITS = 4
"""With less room than this most counts would go to the list of large ones."""
PLAIN_ACTIONS = 1 << 10
"""Actions from 0 up to this are counted under their own number; others are ranked first."""
DENSE_ACTIONS = 64
"""Up to this many actions, the scratch of one slot per input and action is cheaper than sorting."""


class Counts(msgspec.Struct, frozen=True):
    """What the objectives need to know of a table: histograms of its sums."""

    inputs: Histogram
    """Of n(o), how often each input was left."""
    pairs: Histogram
    """Of n(o, a)."""
    moves: Histogram
    """Of n(o, p)."""
    triples: Histogram
    """Of n(o, a, p)."""
    branches: Histogram
    """Of k(o, a), the number of distinct next inputs."""

    @property
    def total(self) -> int | float:
        """The number of transitions."""
        return self.inputs.total


def count_columns(columns: Columns, *, ordered: bool = False) -> Counts:
    """Count the histograms of rows in memory.

    Args:
        columns: The rows; a key may occur more than once, its counts are added.
        ordered: Whether rows are known to come in the order (obs, next_obs, action).
    """
    columns = columns._replace(action=small_actions(columns.action))
    packed = None if ordered else pack_rows(columns)
    if packed is not None:
        packed.keys.sort()
        return count_stream(map(Columns._make, packed.blocks(BLOCK)))
    if not ordered:
        order = np.lexsort((columns.action, columns.next_obs, columns.obs))
        columns = Columns(*(column[order] for column in columns))
    return count_stream(columns.part(at, at + BLOCK) for at in range(0, len(columns.obs), BLOCK))


def count_stream(parts: Iterable[Columns]) -> Counts:
    """Count the histograms of rows that arrive in order, a part at a time."""
    return merge_counts(Counts(*map(tally, sum_block(block))) for block in whole_inputs(parts))


def merge_counts(parts: Iterable[Counts]) -> Counts:
    """Add up the histograms of tables that share no source input."""
    found = list(parts)
    return Counts(*(merge_histograms([getattr(part, name) for part in found]) for name in Counts.__struct_fields__))


def whole_inputs(parts: Iterable[Columns]) -> Iterator[Columns]:
    """Yield the same rows, cut only where the input changes."""
    held: list[Columns] = []
    for part in parts:
        if not len(part.obs):
            continue
        start, cut = 0, int(np.searchsorted(part.obs, part.obs[-1]))
        if held and held[-1].obs[-1] == part.obs[0] and cut:
            start = int(np.searchsorted(part.obs, part.obs[0], side="right"))
            held.append(part.part(0, start))
        if held and (cut or held[-1].obs[-1] != part.obs[0]):
            yield _joined(held)
            held = []
        if cut > start:
            yield part.part(start, cut)
        held.append(part.part(max(start, cut), len(part.obs)))
    if held:
        yield _joined(held)


def sum_block(rows: Columns) -> tuple[Array, Array, Array, Array, Array]:
    """Return n(o), n(o, a), n(o, p), n(o, a, p) and k(o, a) of rows in order that hold all rows of their inputs."""
    rows = _distinct(rows._replace(action=small_actions(rows.action)))
    new_input = _changes(rows.obs)
    inputs = np.flatnonzero(new_input)
    moves = np.flatnonzero(new_input | _changes(rows.next_obs))
    by_pair, branches = _pairs(np.cumsum(new_input) - 1, rows)
    by_input, by_move = np.add.reduceat(rows.counts, inputs), np.add.reduceat(rows.counts, moves)
    return by_input, by_pair, by_move, rows.counts, branches


def small_actions(action: Array) -> Array:
    """Return actions numbered from 0; those that are small already stay as they are."""
    if len(action) and (int(action.min()) < 0 or int(action.max()) >= PLAIN_ACTIONS):
        return np.unique(action, return_inverse=True)[1]
    return action


def _joined(parts: list[Columns]) -> Columns:
    return parts[0] if len(parts) == 1 else Columns(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _changes(column: Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return a flag for each value that differs from the one before it; the first always does."""
    changed = np.empty(len(column), bool)
    changed[:1] = True
    np.not_equal(column[1:], column[:-1], out=changed[1:])
    return changed


def _distinct(rows: Columns) -> Columns:
    """Return the rows with the counts of equal keys added up, in 64 bits."""
    rows = rows._replace(counts=rows.counts.astype(np.float64 if rows.counts.dtype.kind == "f" else np.int64))
    new = _changes(rows.obs) | _changes(rows.next_obs) | _changes(rows.action)
    if new.all():
        return rows
    at = np.flatnonzero(new)
    return Columns(rows.obs[at], rows.next_obs[at], rows.action[at], np.add.reduceat(rows.counts, at))


def _pairs(number: Array, rows: Columns) -> tuple[Array, Array]:
    """Return n(o, a) and k(o, a) for every pair seen; `number` numbers the inputs from 0."""
    actions = int(rows.action.max()) + 1
    exact = rows.counts.dtype.kind != "f" and int(rows.counts.max()) * len(rows.counts) < 2**53
    if actions > DENSE_ACTIONS or not exact:
        order = np.lexsort((rows.action, number))
        at = np.flatnonzero(_changes(number[order]) | _changes(rows.action[order]))
        return np.add.reduceat(rows.counts[order], at), np.diff(at, append=len(order))
    slot = number * actions + rows.action
    branches = np.bincount(slot)
    seen = np.flatnonzero(branches)
    return np.bincount(slot, rows.counts)[seen].astype(np.int64), branches[seen]


class KeyLayout(NamedTuple):
    """How many bits each part of a packed row has, from the highest to the lowest, and the offsets of the ids."""

    obs: int
    next_obs: int
    action: int
    counts: int
    low_obs: int
    low_next: int


class Packed(msgspec.Struct, frozen=True, eq=False):
    """Packed rows. A count of 0 stands for one that is too large: the next of `large`, which follow the keys' order."""

    keys: Array
    layout: KeyLayout
    large: Array

    def blocks(self, size: int) -> Iterator[tuple[Array, Array, Array, Array]]:
        """Yield input, next input, action and count of sorted rows, some at a time. Ids count from the lowest."""
        used = 0
        for at in range(0, len(self.keys), size):
            obs, next_obs, action, count = self._unpack(self.keys[at : at + size])
            absent = np.flatnonzero(count == 0)
            count[absent] = self.large[used : used + len(absent)]
            used += len(absent)
            yield obs, next_obs, action, count

    def _unpack(self, keys: Array) -> tuple[Array, Array, Array, Array]:
        layout, parts = self.layout, []
        for bits in (layout.counts, layout.action, layout.next_obs, layout.obs):
            parts.append((keys & _mask(bits)).astype(np.int64))
            keys = keys >> np.uint64(bits)
        return parts[3], parts[2], parts[1], parts[0]


def pack_rows(columns: tuple[Array, Array, Array, Array]) -> Packed | None:
    """Pack rows of (obs, next_obs, action, count) into one array, not yet sorted. Return None if they do not fit."""
    obs, next_obs, action, counts = columns
    if counts.dtype.kind == "f" or not len(obs):
        return None
    layout = _layout(obs, next_obs, action)
    if layout is None:
        return None
    keys, limit = _pack_keys(columns, layout), int(_mask(layout.counts))
    if int(counts.max()) <= limit:
        return Packed(keys, layout, np.empty(0, np.int64))
    large = counts > limit
    order = np.argsort(keys[large], kind="stable")
    return Packed(keys, layout, counts[large][order].astype(np.int64))


def _pack_keys(columns: tuple[Array, Array, Array, Array], layout: KeyLayout) -> Array:
    """Return the packed rows, made a block at a time."""
    keys = np.empty(len(columns[0]), np.int64)
    for at in range(0, len(keys), PACKED_AT_ONCE):
        _pack_block([column[at : at + PACKED_AT_ONCE] for column in columns], layout, keys[at : at + PACKED_AT_ONCE])
    return keys.view(np.uint64)


def _pack_block(columns: list[Array], layout: KeyLayout, keys: Array) -> None:
    """Fill in the keys of some rows; a count that does not fit becomes 0."""
    obs, next_obs, action, counts = columns
    np.subtract(obs, layout.low_obs, out=keys, dtype=np.int64)
    keys <<= layout.next_obs
    keys |= np.subtract(next_obs, layout.low_next, dtype=np.int64)
    keys <<= layout.action
    keys |= action
    keys <<= layout.counts
    limit = int(_mask(layout.counts))
    keys |= counts if int(counts.max()) <= limit else np.where(counts > limit, 0, counts)


def _layout(obs: Array, next_obs: Array, action: Array) -> KeyLayout | None:
    low_obs, low_next = int(obs.min()), int(next_obs.min())
    bits = [(int(top) - low).bit_length() for top, low in ((obs.max(), low_obs), (next_obs.max(), low_next))]
    bits.append(int(action.max()).bit_length())
    left = 64 - sum(bits)
    if left < MIN_COUNT_BITS:
        return None
    return KeyLayout(bits[0], bits[1], bits[2], min(left, 32), low_obs, low_next)


def _mask(bits: int) -> np.uint64:
    return np.uint64((1 << bits) - 1)
