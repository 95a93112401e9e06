"""Rows of a table as single 64-bit numbers, so that sorting them moves one array instead of four."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np

Array = np.ndarray[Any, Any]

BLOCK = 1 << 15
"""Rows packed at once: what is made on the way stays in the second-level cache."""
MIN_COUNT_BITS = 4
"""With less room than this most counts would go to the list of large ones."""


class KeyLayout(NamedTuple):
    """How many bits each part of a packed row has, from the highest to the lowest, and what was taken off the ids."""

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
        """Yield input, next input, action and count of sorted rows, so many at a time. Ids count from the lowest."""
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


def pack(columns: tuple[Array, Array, Array, Array]) -> Packed | None:
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
    for at in range(0, len(keys), BLOCK):
        _pack_block([column[at : at + BLOCK] for column in columns], layout, keys[at : at + BLOCK])
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
