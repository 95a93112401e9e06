"""Game states as arrays of numbers, for agents that learn from such.

`features` shows the same as a mapping. All ticks of an episode are written into one buffer, of which agents get
copies; what is absent is zero.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from openfield.domains.doom.engine.game_state import ITEMS, Entity, Snapshot
from openfield.domains.doom.maps.arena import MAPS
from openfield.domains.doom.maps.scenario import CEILING, Wall
from openfield.spaces import Box

Array = np.ndarray[Any, Any]
MAX_ENEMIES = 4
"""Enemies in an array, and projectiles; further ones are left out."""
MAX_ITEMS = 8
"""Items of each kind."""
WALLS = {"duel": 4, **{name: len(arena.walls()) for name, arena in MAPS.items()}}
"""How many walls the duel and each map of the arena have. They are at the end of the array."""
_DUEL_BOLTS = 5 + MAX_ENEMIES * 5
_ARENA_ITEMS = 6 + MAX_ENEMIES * 5
_DUEL_WALLS = _DUEL_BOLTS + MAX_ENEMIES * 4
_ARENA_WALLS = _ARENA_ITEMS + len(ITEMS) * MAX_ITEMS * 3
ARRAY_SIZES = {name: 4 * count + (_DUEL_WALLS if name == "duel" else _ARENA_WALLS) for name, count in WALLS.items()}
"""The numbers in an array, by the names of `WALLS`."""
_PLACE, _HEIGHT, _ANGLE, _AMOUNT, _THERE = (-512.0, 512.0), (0.0, CEILING), (0.0, 360.0), (0.0, 200.0), (0.0, 1.0)


def array_space(walls_of: str, limit: int) -> Box:
    """Return the space of arrays with these walls: the bounds of every number, given the ticks of an episode."""
    time, walls = (0.0, float(limit)), [_PLACE] * (4 * WALLS[walls_of])
    if walls_of == "duel":
        enemies = [_THERE, _PLACE, _PLACE, _HEIGHT, _AMOUNT] * MAX_ENEMIES
        bolts = [_THERE, _PLACE, _PLACE, _HEIGHT] * MAX_ENEMIES
        bounds = [time, _PLACE, _PLACE, _HEIGHT, _AMOUNT, *enemies, *bolts, *walls]
    else:
        enemies = [_THERE, _PLACE, _PLACE, _ANGLE, _AMOUNT] * MAX_ENEMIES
        items = [_THERE, _PLACE, _PLACE] * (MAX_ITEMS * len(ITEMS))
        bounds = [time, _PLACE, _PLACE, _ANGLE, _AMOUNT, _AMOUNT, *enemies, *items, *walls]
    return Box(tuple(low for low, _ in bounds), tuple(high for _, high in bounds), (len(bounds),))


def normalised_space(space: Box) -> Box:
    """Return the space of arrays that are divided by their highest bounds."""
    lows, highs = space.bounds
    return Box(tuple((lows / highs).tolist()), tuple((highs / highs).tolist()), space.shape)


# One call writes a row into the buffer's memory: an assignment would make an array of the numbers first.
_write4, _write5, _write6 = (struct.Struct(f"{count}f").pack_into for count in (4, 5, 6))
_BYTES = 4
"""Bytes of a number."""


class DuelArray:
    """Shows an episode of the duel: time left, player, up to four enemies, up to four projectiles, the walls."""

    def __init__(self, walls: Sequence[Wall] = ()) -> None:
        self._buffer = np.zeros(ARRAY_SIZES["duel"], np.float32)
        self._moving = self._buffer[:_DUEL_WALLS]
        self._memory = self._buffer.data
        _write_walls(self._buffer[_DUEL_WALLS:], walls)

    def show(self, snapshot: Snapshot, remaining: float) -> Array:
        """Return the array of a tick."""
        raw, (player, enemies, bolts), memory = snapshot.raw, snapshot.roster, self._memory
        self._moving.fill(0.0)
        _write5(memory, 0, remaining, raw[player.x], raw[player.y], raw[player.z], max(raw[0], 0.0))
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
    """Shows an episode of the arena: time left, player, up to four enemies, up to eight items of each kind, walls."""

    def __init__(self, walls: Sequence[Wall] = ()) -> None:
        self._buffer = np.zeros(_ARENA_WALLS + 4 * len(walls), np.float32)
        self._moving = self._buffer[:_ARENA_WALLS]
        self._memory = self._buffer.data
        _write_walls(self._buffer[_ARENA_WALLS:], walls)
        self._enemies = 0
        self._items: dict[str, list[Entity]] | None = None

    def show(self, snapshot: Snapshot, remaining: float) -> Array:
        """Return the array of a tick. Items that did not change are not written again."""
        raw, (player, enemies, _), memory = snapshot.raw, snapshot.roster, self._memory
        if snapshot.items is not self._items or len(enemies) != self._enemies:
            self._write_items(snapshot.items, len(enemies))
        _write6(memory, 0, remaining, raw[player.x], raw[player.y], raw[player.angle], max(raw[0], 0.0), raw[1])
        row = 6 * _BYTES
        for x, y, _, angle, roll, _, _ in enemies[:MAX_ENEMIES]:
            _write5(memory, row, 1.0, raw[x], raw[y], raw[angle], (raw[roll] + 0.5) // 1)
            row += 5 * _BYTES
        return self._buffer.copy()

    def _write_items(self, items: dict[str, list[Entity]], enemies: int) -> None:
        self._items, self._enemies = items, enemies
        self._moving.fill(0.0)
        for number, kind in enumerate(ITEMS):
            start = _ARENA_ITEMS + 3 * MAX_ITEMS * number
            for entity in items[kind][:MAX_ITEMS]:
                self._buffer[start : start + 3] = (1.0, entity.x, entity.y)
                start += 3


def _write_walls(buffer: Array, walls: Sequence[Wall]) -> None:
    """Write x1, x2, y1 and y2 of each wall, as the first feature vector of an arena has them."""
    for number, wall in enumerate(walls):
        buffer[4 * number : 4 * number + 4] = msgspec.structs.astuple(wall)
