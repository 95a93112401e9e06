"""The duel: one player, one stationary enemy, both somewhere else every time.

A task for `play`: how an episode is laid out and which actions there are.
"""

from __future__ import annotations

import random

from openfield.domains.doom.scenario import AMMO, Layout, Rectangle
from openfield.domains.doom.settings import DuelSettings

ACTIONS = ("left", "right", "forward", "backward", "shoot", "nothing")
ROOM = Rectangle(-448, -192, 64, 256)
PLAYER_X, ENEMY_X = -384, 0
LOWEST, HIGHEST = -161, 224
"""Between these the player and the enemy start, each on a line of its own."""


def lay_out(settings: DuelSettings, rng: random.Random) -> Layout:
    """Where everything is at the start of an episode."""
    player = (PLAYER_X, round(rng.uniform(LOWEST, HIGHEST), 1))
    packs = [(AMMO, (rng.uniform(-340, -60), rng.uniform(LOWEST, HIGHEST))) for _ in range(settings.ammo_packs)]
    return Layout(
        room=ROOM,
        player=(player, 0),
        enemies=[((ENEMY_X, y), 180) for y in _spread(settings, rng)],
        items=packs,
        actor=tuple(
            (name, getattr(settings, name))
            for name in (
                "enemy_health",
                "enemy_radius",
                "enemy_stride",
                "enemy_pause",
                "enemy_damage",
                "bolt_speed",
                "bolt_damage",
            )
        ),
    )


def _spread(settings: DuelSettings, rng: random.Random) -> list[float]:
    """Heights far enough from each other that nobody is stuck."""
    while True:
        heights = [round(rng.uniform(LOWEST, HIGHEST), 1) for _ in range(settings.enemies)]
        gaps = [abs(a - b) for number, a in enumerate(heights) for b in heights[:number]]
        if min(gaps, default=1e9) > 2 * settings.enemy_radius:
            return heights
