"""What can be read off a birds world without changing it.

Stands beside world; the wire answers most requests with these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from openfield.domains.birds.camera import HEIGHT, WIDTH

if TYPE_CHECKING:
    from openfield.domains.birds.world import BirdsWorld


def _ground_truth(world: BirdsWorld, noisy: bool) -> Any:
    """Without developer mode it is always noisy."""
    if world.arena is None:
        return [{"type": "FeatureCollection", "features": []}]
    return world.arena.ground_truth(noisy or not world.settings.dev)


def _picture(world: BirdsWorld, initial: bool) -> Any:
    if world.arena is None:
        return np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8)
    return world.arena.picture(initial)


def _set_facts(world: BirdsWorld) -> dict[str, Any]:
    current, levels = world.harness.current, world.harness.current.set
    return {
        "seconds": levels.seconds,
        "interactions": levels.interactions,
        "levels": len(levels.levels),
        "attempts": levels.attempts,
        "testing": current.testing,
        "selection": levels.selection,
        "informed": world.harness.script.informed,
    }


def _novelty_info(world: BirdsWorld) -> int:
    if not world.harness.script.informed:
        return -1
    return int(world.place is not None and world.place.novel)


LOOKS: dict[str, Callable[[BirdsWorld], Any]] = {
    "state": lambda world: world.harness.state,
    "result": lambda world: world.result,
    "score": lambda world: 0 if world.arena is None else world.arena.game.score,
    "scores": lambda world: list(world.harness.current.scores),
    "level": lambda world: world.harness.current.position + 1,
    "levels": lambda world: len(world.harness.current.scores),
    "set": _set_facts,
    "novelty info": _novelty_info,
    "rest": lambda world: (0, 0) if world.arena is None else world.arena.rest,
    "moving": lambda world: world.arena is not None and world.arena.game.moving,
    "frames": lambda world: [] if world.arena is None else world.arena.frames,
    "ground truth": lambda world: _ground_truth(world, False),
    "noisy ground truth": lambda world: _ground_truth(world, True),
    "screenshot": lambda world: _picture(world, False),
    "initial screenshot": lambda world: _picture(world, True),
}
