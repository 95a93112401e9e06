"""What can be read off a birds world without changing it.

Stands beside world; the wire answers most requests with these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from openfield.domains.birds.evaluation.harness import HarnessState
from openfield.domains.birds.game.viewport import HEIGHT, WIDTH
from openfield.domains.birds.novelty import describe_changes

if TYPE_CHECKING:
    from openfield.domains.birds.world import BirdsWorld

NO_TRUTH = [{"type": "FeatureCollection", "features": []}]


def _ground_truth(world: BirdsWorld, noisy: bool) -> Any:
    """Without developer mode it is always noisy."""
    if world.arena is None:
        return NO_TRUTH
    return world.arena.ground_truth(noisy or not world.settings.dev)


def _picture(world: BirdsWorld, initial: bool) -> Any:
    if world.arena is None:
        return empty_looks()["screenshot"]
    return world.arena.picture(initial)


def _set_facts(world: BirdsWorld) -> dict[str, Any]:
    current = world.harness.current
    return {**current.facts, "testing": current.testing, "informed": world.harness.script.informed}


def _novelty_info(world: BirdsWorld) -> int:
    if not world.harness.script.informed:
        return -1
    return int(world.place is not None and world.place.novel)


def _hint(world: BirdsWorld) -> str:
    """What is novel about the level, where the agent may be told that something is."""
    return describe_changes(world.arena.game.level) if _novelty_info(world) == 1 and world.arena is not None else ""


@cache
def empty_looks() -> dict[str, Any]:
    """What the queries give where no game is on: the evaluation has ended, and there is no level."""
    limits = dict.fromkeys(("seconds", "interactions", "levels", "attempts"), 0)
    picture = np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8)
    return {
        "state": HarnessState.TERMINATED,
        **dict.fromkeys(("result", "score", "level", "levels"), 0),
        **{
            "scores": [],
            "frames": [],
            "rest": (0, 0),
            "moving": False,
            "lingers": False,
            "bird ready": False,
            "novelty info": -1,
        },
        **{"seconds left": math.inf, "hint": "", "open levels": [], "may restart": False},
        "set": {**limits, **dict.fromkeys(("testing", "selection", "informed"), False)},
        **dict.fromkeys(("ground truth", "noisy ground truth"), NO_TRUTH),
        **dict.fromkeys(("screenshot", "picture", "initial screenshot"), picture),
    }


LOOKS: dict[str, Callable[[BirdsWorld], Any]] = {
    "state": lambda world: world.harness.state,
    "result": lambda world: world.result,
    "score": lambda world: 0 if world.arena is None else world.arena.game.score,
    "scores": lambda world: list(world.harness.current.scores),
    "level": lambda world: world.harness.current.position + 1,
    "levels": lambda world: len(world.harness.current.scores),
    "set": _set_facts,
    "novelty info": _novelty_info,
    "hint": _hint,
    "rest": lambda world: (0, 0) if world.arena is None else world.arena.rest,
    "seconds left": lambda world: world.harness.seconds_left,
    "lingers": lambda world: world.lingers,
    "bird ready": lambda world: world.arena is not None and world.arena.game.bird_ready,
    "open levels": lambda world: world.harness.open_levels,
    "may restart": lambda world: world.harness.may_restart,
    "moving": lambda world: world.arena is not None and world.arena.moving,
    "frames": lambda world: [] if world.arena is None else world.arena.frames,
    "ground truth": lambda world: _ground_truth(world, False),
    "noisy ground truth": lambda world: _ground_truth(world, True),
    "screenshot": lambda world: _picture(world, False),
    "picture": lambda world: _picture(world, False),
    "initial screenshot": lambda world: _picture(world, True),
}
LEVEL_LOOKS = ("score", "ground truth", "noisy ground truth", "screenshot", "initial screenshot")
"""What is read off the level alone."""
