"""The duel: one player, one stationary enemy, both somewhere else every time.

This module has its actions, and how an episode is laid out.
"""

from __future__ import annotations

import random

from openfield.domains.doom.maps.scenario import AMMO, MapLayout, Rectangle
from openfield.domains.doom.settings import DuelSettings
from openfield.errors import InvalidInput

ACTIONS = ("left", "right", "forward", "backward", "shoot", "nothing")
ROOM = Rectangle(-448, -192, 64, 256)
PLAYER_X, ENEMY_X = -384, 0
MIN_Y, MAX_Y = -161, 224
"""The player and the enemy start between these, each on a line of its own."""
ACTOR = ("enemy_health", "enemy_radius", "enemy_stride", "enemy_pause", "enemy_damage", "bolt_speed", "bolt_damage")
"""The settings that make the enemy's actor."""
CLEAR = 1
"""The least gap between enemies, and between enemies and walls, at the start."""


def lay_out(settings: DuelSettings, rng: random.Random) -> MapLayout:
    """Draw where everything is at the start of an episode."""
    player = (PLAYER_X, round(rng.uniform(MIN_Y, MAX_Y), 1))
    packs = [(AMMO, (rng.uniform(-340, -60), rng.uniform(MIN_Y, MAX_Y))) for _ in range(settings.ammo_packs)]
    return MapLayout(
        room=ROOM,
        player=(player, 0),
        enemies=[((min(ENEMY_X, ROOM.right - _room(settings)), y), 180) for y in _spread(settings, rng)],
        items=packs,
        actor=tuple((name, getattr(settings, name)) for name in ACTOR),
    )


def check_room(settings: DuelSettings) -> None:
    """Refuse more or wider enemies than fit side by side, and strides with which they would pass walls."""
    if settings.enemy_stride >= 2 * settings.enemy_radius:
        raise InvalidInput(
            f"Setting 'enemy_stride': an enemy of radius {settings.enemy_radius} that goes {settings.enemy_stride} "
            f"units per tick goes through walls; take at most {2 * settings.enemy_radius - 1}."
        )
    if _slack(settings) < 0:
        raise InvalidInput(
            f"Settings 'enemies' and 'enemy_radius': there is no room for {settings.enemies} enemies "
            f"of radius {settings.enemy_radius}; take fewer or slimmer ones."
        )


def _spread(settings: DuelSettings, rng: random.Random) -> list[float]:
    """Draw heights so far apart that no enemy is stuck; the slack of the line falls between them."""
    slack, (low, _), apart = _slack(settings), _line(settings), 2 * settings.enemy_radius + CLEAR
    shares = sorted(rng.uniform(0, slack) for _ in range(settings.enemies))
    heights = [round(low + share + number * apart, 1) for number, share in enumerate(shares)]
    rng.shuffle(heights)
    return heights


def _slack(settings: DuelSettings) -> float:
    """Return the part of the line that no enemy needs."""
    low, high = _line(settings)
    return high - low - (settings.enemies - 1) * (2 * settings.enemy_radius + CLEAR)


def _line(settings: DuelSettings) -> tuple[float, float]:
    """Return where enemies can stand: not within walls."""
    return max(MIN_Y, ROOM.bottom + _room(settings)), min(MAX_Y, ROOM.top - _room(settings))


def _room(settings: DuelSettings) -> int:
    return settings.enemy_radius + CLEAR
