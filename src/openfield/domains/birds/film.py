"""The film of a birds trial: draws the level in play while a world runs."""

from __future__ import annotations

from typing import Any

from openfield.domains.birds.evaluation.harness import HarnessState
from openfield.domains.birds.game.drawing import pixels
from openfield.domains.birds.game.game import Game
from openfield.domains.birds.game.scene import see
from openfield.domains.birds.game.viewport import zoomed_out
from openfield.domains.birds.world import BirdsWorld

EVERY = 5
"""Engine steps between two pictures: ten pictures a second."""
MILLISECONDS = 100


class FilmCamera:
    """Draws the level in play, from the first call of `pictures` on."""

    def __init__(self, world: BirdsWorld) -> None:
        self._world = world
        self._game: Game | None = None  # the one that is watched
        self._taken: list[Any] = []

    def pictures(self) -> list[Any]:
        """Return the pictures since the last call."""
        level = self._world.in_play
        playing = self._world.harness.stage is HarnessState.PLAYING
        if level is not None and playing and level.game is not self._game:
            self._watch(level.game)
        taken, self._taken = self._taken, []
        return taken

    def _watch(self, game: Game) -> None:
        """Take a picture now, and then every few steps."""
        self._game = game
        view = zoomed_out(game.level.camera)

        def take() -> None:
            self._taken.append(pixels(see(game, view)))

        take()
        game.watch(EVERY, take)
