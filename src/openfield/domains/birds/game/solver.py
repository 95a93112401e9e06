"""Finds shots that pass a level by trying them in the physics.

Stands beside game: the level generator proves with it that levels can be solved, and an agent chooses shots with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from openfield.domains.birds.game.game import Game
from openfield.domains.birds.game.level import Level, ProfileName

Angles = Iterable[float]
ANGLES = tuple(range(-14, 79, 2))
"""Degrees above the horizon, towards the things of the level."""
Shots = list[tuple[float, float]]


def solve(level: Level, profile: ProfileName | None = None, angles: Angles = ANGLES) -> Shots | None:
    """Launch vectors at full power that pass the level, found greedily, bird by bird; None if there are none."""
    chosen: Shots = []
    for _ in level.birds:
        best: tuple[float, tuple[float, float]] | None = None
        for shot in launches(level, angles):
            game = replay(level, [*chosen, shot], profile)
            if game.state == "won":
                return [*chosen, shot]
            worth = progress(game)
            if best is None or worth > best[0]:
                best = worth, shot
        if best is None:
            return None
        chosen.append(best[1])
    return None


def replay(level: Level, shots: Shots, profile: ProfileName | None = None, tap: float = 0.0) -> Game:
    """The level after some shots, each tapped so many seconds after its release; 0 is never."""
    game = Game(level, profile)
    for dx, dy in shots:
        game.shoot(dx, dy, tap)
        game.settle()
    return game


def launches(level: Level, angles: Angles) -> Iterator[tuple[float, float]]:
    """Launch vectors of full power at some angles, to the side where things are."""
    middle = sum(thing.x for thing in level.objects) / max(1, len(level.objects))
    side = 1 if middle >= level.sling[0] else -1
    for angle in angles:
        yield side * math.cos(math.radians(angle)), math.sin(math.radians(angle))


def progress(game: Game) -> float:
    """How near a level is to being passed: pigs first, then damage to them."""
    hurt = sum(1 - max(body.life, 0.0) / body.full for body in game.bodies if body.kind == "pig")
    return 10.0 * (game.pigs_at_start - game.pigs) + hurt + game.score * 1e-6
