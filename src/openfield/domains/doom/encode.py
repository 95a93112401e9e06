"""Coarse observations for measures that count: exact positions and time stamps never occur twice.

The rule is the same for features and for arrays, so that agents of both kinds can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from openfield.domains.doom.arrays import MAX_ENEMIES

SQUARE = 128.0
"""The side of a square; there are eight along an arena of 1,024 units."""


def coarse_features(observation: dict[str, Any]) -> tuple[Any, ...]:
    """Return squares, eighths of a turn and quarters of health of player and enemies, and count projectiles.

    At most as many projectiles are counted as an array shows.
    """
    enemies = sorted(_coarse(entity) for entity in observation["enemies"])
    bolts = len(observation.get("projectiles", ()))
    return _coarse(observation["player"]), tuple(enemies), min(bolts, MAX_ENEMIES)


def coarse_array(observation: Sequence[float], task: str) -> tuple[Any, ...]:
    """Return the same for an array. In the duel the player does not turn; the arena has no projectiles."""
    values = [float(value) for value in observation]
    duel = task == "duel"
    start = 5 if duel else 6
    entities = [values[at + 1 : at + 5] for at in range(start, start + 5 * MAX_ENEMIES, 5) if values[at]]
    end = start + 5 * MAX_ENEMIES
    bolts = values[end : end + 4 * MAX_ENEMIES : 4] if duel else []
    player, *enemies = (
        _coarse_place(x, y, 0.0 if duel else third, health) for x, y, third, health in (values[1:5], *entities)
    )
    return player, tuple(sorted(enemies)), sum(map(bool, bolts))


def _coarse(entity: dict[str, Any]) -> tuple[int, ...]:
    return _coarse_place(entity["x_position"], entity["y_position"], entity.get("angle", 0.0), entity["health"])


def _coarse_place(x: float, y: float, angle: float, health: float) -> tuple[int, ...]:
    return int(x // SQUARE), int(y // SQUARE), round(angle / 45) % 8, math.ceil(health / 25)
