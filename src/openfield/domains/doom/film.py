"""Films of recorded episodes: what the player saw, replayed on an engine that draws pictures for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from openfield.capabilities import Film
from openfield.domains.doom.trials import EpisodeSource
from openfield.domains.doom.world import DoomWorld
from openfield.trial import Trial

EVERY = 2
"""Ticks per picture: an episode of 2,000 ticks fits into a film."""
MILLISECONDS = 60
"""How long a picture is shown: about as fast as the game is."""


def make_film(domain: EpisodeSource, trial: Trial) -> Film:
    """Make a film of a trial: its world on an engine that draws, and every other picture."""
    world = DoomWorld(domain, trial, large=True)
    return Film(world, _Camera(world).pictures, MILLISECONDS)


class _Camera:
    """Takes the pictures of a world."""

    def __init__(self, world: DoomWorld) -> None:
        self._world = world
        self._ticks = 0

    def pictures(self) -> Iterator[Any]:
        """Yield the picture of this tick, if it is one that counts; after an episode's end nothing is drawn."""
        if not self._world.truth.episode_over and not self._ticks % EVERY:
            yield self._world.look("picture")
        self._ticks += 1
