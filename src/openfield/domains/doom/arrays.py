"""Game states as arrays of numbers, for agents that learn from such.

`features` shows the same as a mapping. All ticks of an episode are written into one buffer, of which agents get
copies; what is absent is zero.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from openfield.domains.doom.engine.game_state import ITEMS, Entity, Snapshot

Array = np.ndarray[Any, Any]
MAX_ENEMIES = 4
"""Enemies in an array, and projectiles; further ones are left out."""
MAX_ITEMS = 8
"""Items of each kind."""
_DUEL_BOLTS = 5 + MAX_ENEMIES * 5
_ARENA_ITEMS = 6 + MAX_ENEMIES * 5
ARRAY_SIZES = {"duel": _DUEL_BOLTS + MAX_ENEMIES * 4, "arena": _ARENA_ITEMS + len(ITEMS) * MAX_ITEMS * 3}


# One call writes a row into the buffer's memory: an assignment would make an array of the numbers first.
_write4, _write5, _write6 = (struct.Struct(f"{count}f").pack_into for count in (4, 5, 6))
_BYTES = 4
"""Bytes of a number."""


class DuelArray:
    """Shows an episode of the duel: time left, player, up to four enemies, up to four projectiles."""

    def __init__(self) -> None:
        self._buffer = np.zeros(ARRAY_SIZES["duel"], np.float32)
        self._memory = self._buffer.data

    def show(self, snapshot: Snapshot, remaining: float) -> Array:
        """Return the array of a tick."""
        raw, (player, enemies, bolts), memory = snapshot.raw, snapshot.roster, self._memory
        self._buffer.fill(0.0)
        _write5(memory, 0, remaining, raw[player.x], raw[player.y], raw[player.z], raw[0])
        row = 5 * _BYTES
        for x, y, z, _, roll, _, _ in enemies[:MAX_ENEMIES]:
            _write5(memory, row, 1.0, raw[x], raw[y], raw[z], (raw[roll] + 0.5) // 1)
            row += 5 * _BYTES
        row = _DUEL_BOLTS * _BYTES
        for x, y, z, *_ in bolts[:MAX_ENEMIES]:
            _write4(memory, row, 1.0, raw[x], raw[y], raw[z])
            row += 4 * _BYTES
        return self._buffer.copy()


class ArenaArray:
    """Shows an episode of the arena: time left, player, up to four enemies, then up to eight items of each kind."""

    def __init__(self) -> None:
        self._buffer = np.zeros(ARRAY_SIZES["arena"], np.float32)
        self._memory = self._buffer.data
        self._enemies = 0
        self._items: dict[str, list[Entity]] | None = None

    def show(self, snapshot: Snapshot, remaining: float) -> Array:
        """Return the array of a tick. Items that did not change are not written again."""
        raw, (player, enemies, _), memory = snapshot.raw, snapshot.roster, self._memory
        if snapshot.items is not self._items or len(enemies) != self._enemies:
            self._write_items(snapshot.items, len(enemies))
        _write6(memory, 0, remaining, raw[player.x], raw[player.y], raw[player.angle], raw[0], raw[1])
        row = 6 * _BYTES
        for x, y, _, angle, roll, _, _ in enemies[:MAX_ENEMIES]:
            _write5(memory, row, 1.0, raw[x], raw[y], raw[angle], (raw[roll] + 0.5) // 1)
            row += 5 * _BYTES
        return self._buffer.copy()

    def _write_items(self, items: dict[str, list[Entity]], enemies: int) -> None:
        self._items, self._enemies = items, enemies
        self._buffer.fill(0.0)
        for number, kind in enumerate(ITEMS):
            start = _ARENA_ITEMS + 3 * MAX_ITEMS * number
            for entity in items[kind][:MAX_ITEMS]:
                self._buffer[start : start + 3] = (1.0, entity.x, entity.y)
                start += 3
