"""The film of a birds trial: draws the level in play while a world runs."""

from __future__ import annotations

from typing import Any

from openfield.capabilities import Film
from openfield.domains.birds.game.drawing import pixels
from openfield.domains.birds.game.game import Game
from openfield.domains.birds.game.scene import see
from openfield.domains.birds.game.viewport import zoomed_out
from openfield.domains.birds.harness import HarnessState
from openfield.domains.birds.world import BirdsWorld

EVERY = 5
"""Engine steps between two pictures: ten pictures a second."""


def film_world(world: BirdsWorld) -> Film:
    """Make a film of a world, from the first call of `pictures` on."""
    watched: Game | None = None
    taken: list[Any] = []

    def pictures() -> list[Any]:
        nonlocal watched, taken
        level, playing = world.in_play, world.harness.stage is HarnessState.PLAYING
        if level is not None and playing and level.game is not watched:
            watched = game = level.game
            take(game)
            game.watch(EVERY, lambda: take(game))
        found, taken = taken, []
        return found

    def take(game: Game) -> None:
        taken.append(pixels(see(game, zoomed_out(game.level.camera))))

    return Film(world, pictures, 100)
