"""Recorded episodes as moving pictures: what the player saw, on an engine that draws for people.

Stands behind the record: journal -> replay -> pictures. `openfield show --gif` asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from openfield.capabilities import Film
from openfield.domains.doom.world import DoomWorld
from openfield.trial import Trial

if TYPE_CHECKING:
    from openfield.domains.doom.domain import DoomDomain

EVERY = 2
"""Ticks for one picture: an episode of 2,000 fits into a film."""
MILLISECONDS = 60
"""Per picture: about as fast as it was played."""


def make_film(domain: DoomDomain, trial: Trial) -> Film:
    """A trial's world on an engine that draws, and every other picture of it."""
    world = DoomWorld(domain, trial, large=True)
    return Film(world, _Camera(world).pictures, MILLISECONDS)


class _Camera:
    """Looks at a world tick by tick."""

    def __init__(self, world: DoomWorld) -> None:
        self._world = world
        self._ticks = 0

    def pictures(self) -> Iterator[Any]:
        """The picture of this tick, if it is one that counts; nothing is drawn after an episode's end."""
        if not self._world.truth.episode_over and not self._ticks % EVERY:
            yield self._world.look("picture")
        self._ticks += 1
