"""The queries that read a birds world without changing it; the wire answers most requests with them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from openfield.domains.birds.evaluation.harness import Harness, HarnessState
from openfield.domains.birds.game.viewport import HEIGHT, WIDTH
from openfield.domains.birds.novelty import describe_changes
from openfield.errors import UnknownName

if TYPE_CHECKING:
    from openfield.domains.birds.level_in_play import LevelInPlay


class QueriedWorld(Protocol):
    """The parts of a birds world that queries read."""

    harness: Harness
    in_play: LevelInPlay | None
    result: int

    @property
    def lingers(self) -> bool:
        """True if a level has ended and the agent has not gone on yet."""
        ...


def answer_query(world: QueriedWorld, query: str) -> Any:
    """Answer one of `QUERIES`, or one of `LEVEL_QUERIES` about the level in play."""
    if query in LEVEL_QUERIES:
        return empty_answer(query) if world.in_play is None else LEVEL_QUERIES[query](world.in_play)
    if query not in QUERIES:
        raise UnknownName("query", query, [*QUERIES, *LEVEL_QUERIES], label="Known")
    return QUERIES[query](world)


def empty_answer(query: str) -> Any:
    """Answer a query when there is no game or no level."""
    return _EMPTY[query]


def _set_facts(world: QueriedWorld) -> dict[str, Any]:
    current = world.harness.current
    return {**current.facts, "testing": current.testing, "informed": world.harness.script.informed}


def _novelty_info(world: QueriedWorld) -> int:
    """Return 1 or 0 for a novel or a normal level; -1 if the trial does not tell."""
    if not world.harness.script.informed:
        return -1
    return int(world.in_play is not None and world.in_play.novel)


def _hint(world: QueriedWorld) -> str:
    """Describe the novelty of the level, if the trial tells that there is one."""
    return describe_changes(world.in_play.game.level) if world.in_play and _novelty_info(world) == 1 else ""


QUERIES: dict[str, Callable[[QueriedWorld], Any]] = {
    "state": lambda world: world.harness.state,
    "result": lambda world: world.result,
    "scores": lambda world: list(world.harness.current.scores),
    "level": lambda world: world.harness.current.position + 1,
    "levels": lambda world: len(world.harness.current.scores),
    "set": _set_facts,
    "novelty info": _novelty_info,
    "hint": _hint,
    "seconds left": lambda world: world.harness.seconds_left,
    "lingers": lambda world: world.lingers,
    "open levels": lambda world: world.harness.open_levels,
    "may restart": lambda world: world.harness.may_restart,
}
LEVEL_QUERIES: dict[str, Callable[[LevelInPlay], Any]] = {
    "score": lambda level: level.game.score,
    "rest": lambda level: level.rest,
    "bird ready": lambda level: level.game.bird_ready,
    "moving": lambda level: level.moving,
    "frames": lambda level: level.frames,
    "ground truth": lambda level: level.ground_truth(not level.settings.dev),  # exact only in developer mode
    "noisy ground truth": lambda level: level.ground_truth(True),
    "screenshot": lambda level: level.picture(),
    "picture": lambda level: level.picture(),
    "initial screenshot": lambda level: level.picture(initial=True),
}
_NO_SET = dict.fromkeys(("levels", "seconds", "interactions", "attempts", "selection", "testing", "informed"), 0)
_NO_TRUTH = [{"type": "FeatureCollection", "features": []}]
_EMPTY: dict[str, Any] = {
    **dict.fromkeys(("result", "level", "levels", "score"), 0),
    **dict.fromkeys(("lingers", "may restart", "bird ready", "moving"), False),
    **dict.fromkeys(("ground truth", "noisy ground truth"), _NO_TRUTH),
    **dict.fromkeys(("screenshot", "picture", "initial screenshot"), np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8)),
    **{"scores": [], "open levels": [], "frames": []},
    **{"state": HarnessState.TERMINATED, "set": _NO_SET, "novelty info": -1, "hint": "", "rest": (0, 0)},
    "seconds left": math.inf,
}
