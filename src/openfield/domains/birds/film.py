"""Levels as moving pictures: a world of birds that has its game drawn while it runs.

Stands after the journal, beside report, which plays a record again in it.
"""

from __future__ import annotations

from typing import Any

from openfield.domains.birds.evaluation.harness import HarnessState
from openfield.domains.birds.game.drawing import pixels
from openfield.domains.birds.game.game import Game
from openfield.domains.birds.game.scene import see
from openfield.domains.birds.game.viewport import zoomed_out
from openfield.domains.birds.world import BirdsWorld

EVERY = 5
"""Steps of the engine between two pictures: ten a second."""
MILLISECONDS = 100


class Camera:
    """Draws the level in play from the moment it is first asked."""

    def __init__(self, world: BirdsWorld) -> None:
        self._world = world
        self._game: Game | None = None  # the one that is watched
        self._taken: list[Any] = []

    def pictures(self) -> list[Any]:
        """The pictures since it was asked last."""
        level = self._world.in_play
        playing = self._world.harness.stage is HarnessState.PLAYING
        if level is not None and playing and level.game is not self._game:
            self._watch(level.game)
        taken, self._taken = self._taken, []
        return taken

    def _watch(self, game: Game) -> None:
        """Has pictures taken from now on, the first at once."""
        self._game = game
        view = zoomed_out(game.level.camera)

        def take() -> None:
            self._taken.append(pixels(see(game, view)))

        take()
        game.watch(EVERY, take)
