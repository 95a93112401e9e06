"""A solver that finds shots which pass a level by trying them in the simulation."""

from __future__ import annotations

import math

from openfield.domains.birds.game.game import Game
from openfield.domains.birds.game.level import Level, ProfileName

ANGLES = tuple(range(-14, 79, 2))
"""Degrees above the horizon, towards the objects of the level."""
Shots = list[tuple[float, float]]


def solve(level: Level, profile: ProfileName | None = None) -> Shots | None:
    """Return launch vectors at full power that pass a level, found greedily bird by bird; None if there are none."""
    middle = sum(placed.x for placed in level.objects) / max(1, len(level.objects))
    side = 1 if middle >= level.sling[0] else -1
    launches = [(side * math.cos(math.radians(angle)), math.sin(math.radians(angle))) for angle in ANGLES]
    chosen: Shots = []
    for _ in level.birds:
        worth: dict[tuple[float, float], float] = {}
        for shot in launches:
            game = replay(level, [*chosen, shot], profile)
            if game.state == "won":
                return [*chosen, shot]
            worth[shot] = progress(game)
        chosen.append(max(launches, key=lambda shot: worth[shot]))
    return None


def replay(level: Level, shots: Shots, profile: ProfileName | None = None, tap: float = 0.0) -> Game:
    """Play launch vectors and return the game; a tap is so many seconds after each release, 0 means never."""
    game = Game(level, profile)
    for dx, dy in shots:
        game.shoot(dx, dy, tap)
        game.settle()
    return game


def progress(game: Game) -> float:
    """Return how near a level is to being passed: killed pigs first, then damage to the others."""
    hurt = sum(1 - max(body.life, 0.0) / body.full for body in game.bodies if body.kind == "pig")
    return 10.0 * (game.pigs_at_start - game.pigs) + hurt + game.score * 1e-6
