"""The queries that read a birds world without changing it; the wire answers most requests with them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from openfield.domains.birds.game.scene import HEIGHT, WIDTH
from openfield.domains.birds.harness import HarnessState
from openfield.domains.birds.novelty import describe_changes
from openfield.errors import UnknownName

if TYPE_CHECKING:
    from openfield.domains.birds.level_in_play import LevelInPlay
    from openfield.domains.birds.world import BirdsWorld


def answer_query(world: BirdsWorld | None, query: str) -> Any:
    """Answer one of `QUERIES`, or one of `LEVEL_QUERIES` about the level in play; None means that there is no game."""
    if query in LEVEL_QUERIES:
        of_level, empty = LEVEL_QUERIES[query]
        if world is not None and world.in_play is not None:
            return of_level(world.in_play)
        width, height = world.settings.screen_size if world is not None else (WIDTH, HEIGHT)
        return np.zeros((height, width, 3), dtype=np.uint8) if empty is _NO_PICTURE else empty
    if query not in QUERIES:
        raise UnknownName("query", query, [*QUERIES, *LEVEL_QUERIES], label="Known")
    of_world, empty = QUERIES[query]
    return empty if world is None else of_world(world)


def _set_facts(world: BirdsWorld) -> dict[str, Any]:
    current = world.harness.current
    return {**current.facts, "testing": current.testing, "informed": world.harness.script.informed}


def _novelty_info(world: BirdsWorld) -> int:
    """Return 1 or 0 for a novel or a normal level; -1 if the trial keeps it secret."""
    if not world.harness.script.informed:
        return -1
    return int(world.in_play is not None and world.in_play.novel)


def _hint(world: BirdsWorld) -> str:
    """Describe the novelty of the level, if the trial reveals that there is one."""
    return describe_changes(world.in_play.game.level) if world.in_play and _novelty_info(world) == 1 else ""


_NO_SET = dict.fromkeys(("levels", "seconds", "interactions", "attempts", "selection", "testing", "informed"), 0)
_NO_TRUTH = [{"type": "FeatureCollection", "features": []}]
_NO_PICTURE = np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8)
QUERIES: dict[str, tuple[Callable[[BirdsWorld], Any], Any]] = {
    "state": (lambda world: world.harness.state, HarnessState.TERMINATED),
    "result": (lambda world: world.result, 0),
    "scores": (lambda world: list(world.harness.current.scores), []),
    "level": (lambda world: world.harness.current.position + 1, 0),
    "levels": (lambda world: len(world.harness.current.scores), 0),
    "set": (_set_facts, _NO_SET),
    "novelty info": (_novelty_info, -1),
    "hint": (_hint, ""),
    "seconds left": (lambda world: world.harness.seconds_left, math.inf),
    "lingers": (lambda world: world.lingers, False),
    "open levels": (lambda world: world.harness.open_levels, []),
    "may restart": (lambda world: world.harness.may_restart, False),
}
"""How to answer each query of a world, and the answer without a game."""
LEVEL_QUERIES: dict[str, tuple[Callable[[LevelInPlay], Any], Any]] = {
    "score": (lambda level: level.game.score, 0),
    "rest": (lambda level: level.rest, (0, 0)),
    "bird ready": (lambda level: level.game.bird_ready, False),
    "moving": (lambda level: level.moving, False),
    "frames": (lambda level: level.frames, []),
    "ground truth": (lambda level: level.ground_truth(not level.settings.dev), _NO_TRUTH),  # exact for developers only
    "noisy ground truth": (lambda level: level.ground_truth(True), _NO_TRUTH),
    "batch": (lambda level: [level.ground_truth(level.settings.noisy_batch)], []),
    "screenshot": (lambda level: level.picture(), _NO_PICTURE),
    "picture": (lambda level: level.picture(), _NO_PICTURE),
    "initial screenshot": (lambda level: level.picture(initial=True), _NO_PICTURE),
}
"""The same for the level in play."""
