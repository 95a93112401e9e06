"""Scenes as arrays of numbers, for agents that learn from such.

Beside `features`, which shows the same in words. All ticks of an episode are written on one sheet, of which agents get
copies; what is absent is zero.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from openfield.domains.doom.engine.scene import ITEMS, Body
from openfield.domains.doom.engine.state_reader import Seen

Array = np.ndarray[Any, Any]
MOST_ENEMIES = 4
"""In an array, and as many projectiles; further ones are left out."""
MOST_ITEMS = 8
"""Of a kind."""
_DUEL_BOLTS = 5 + MOST_ENEMIES * 5
_ARENA_ITEMS = 6 + MOST_ENEMIES * 5
ARRAY_SIZES = {"duel": _DUEL_BOLTS + MOST_ENEMIES * 4, "arena": _ARENA_ITEMS + len(ITEMS) * MOST_ITEMS * 3}


# Into a sheet's memory, a row a call: an assignment would make an array of the numbers first, one call for all a list.
_write4, _write5, _write6 = (struct.Struct(f"{count}f").pack_into for count in (4, 5, 6))
_BYTES = 4
"""Of a number."""


class DuelArray:
    """Shows an episode of the duel: time left, player, up to four enemies, up to four projectiles."""

    def __init__(self) -> None:
        self._sheet = np.zeros(ARRAY_SIZES["duel"], np.float32)
        self._memory = self._sheet.data

    def show(self, seen: Seen, remaining: float) -> Array:
        """What is seen in a tick."""
        look, (player, enemies, bolts), memory = seen.look, seen.cast, self._memory
        self._sheet.fill(0.0)
        _write5(memory, 0, remaining, look[player.x], look[player.y], look[player.z], look[0])
        row = 5 * _BYTES
        for x, y, z, _, roll, _, _ in enemies[:MOST_ENEMIES]:
            _write5(memory, row, 1.0, look[x], look[y], look[z], (look[roll] + 0.5) // 1)
            row += 5 * _BYTES
        row = _DUEL_BOLTS * _BYTES
        for x, y, z, *_ in bolts[:MOST_ENEMIES]:
            _write4(memory, row, 1.0, look[x], look[y], look[z])
            row += 4 * _BYTES
        return self._sheet.copy()


class ArenaArray:
    """Shows an episode of the arena: time left, player, up to four enemies, then up to eight items of each kind."""

    def __init__(self) -> None:
        self._sheet = np.zeros(ARRAY_SIZES["arena"], np.float32)
        self._memory = self._sheet.data
        self._enemies = 0
        self._items: dict[str, list[Body]] | None = None

    def show(self, seen: Seen, remaining: float) -> Array:
        """What is seen in a tick; items that are the same as in the tick before are not written again."""
        look, (player, enemies, _), memory = seen.look, seen.cast, self._memory
        if seen.items is not self._items or len(enemies) != self._enemies:
            self._start_sheet(seen.items, len(enemies))
        _write6(memory, 0, remaining, look[player.x], look[player.y], look[player.angle], look[0], look[1])
        row = 6 * _BYTES
        for x, y, _, angle, roll, _, _ in enemies[:MOST_ENEMIES]:
            _write5(memory, row, 1.0, look[x], look[y], look[angle], (look[roll] + 0.5) // 1)
            row += 5 * _BYTES
        return self._sheet.copy()

    def _start_sheet(self, items: dict[str, list[Body]], enemies: int) -> None:
        self._items, self._enemies = items, enemies
        self._sheet.fill(0.0)
        for number, kind in enumerate(ITEMS):
            place = _ARENA_ITEMS + 3 * MOST_ITEMS * number
            for body in items[kind][:MOST_ITEMS]:
                self._sheet[place : place + 3] = (1.0, body.x, body.y)
                place += 3
