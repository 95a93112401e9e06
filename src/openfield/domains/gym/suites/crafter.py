"""Crafter as an environment of Gymnasium that replays: importing this module registers it.

Crafter keeps the objects of a part of its map in a set. Sets of objects are ordered by their addresses in memory, and
Crafter draws by this order which creature vanishes. Here the objects of a part stay in the order in which they came.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np

from openfield.lazy import import_extra


def _import_crafter(module: str) -> Any:
    """Import a module of Crafter without the old package `gym`, which it takes spaces from if it finds one."""
    kept = sys.modules.get("gym")
    sys.modules["gym"] = None  # type: ignore[assignment]
    try:
        return import_extra(module, "crafter", "Crafter")
    finally:
        del sys.modules["gym"]
        if kept is not None:
            sys.modules["gym"] = kept


crafter = _import_crafter("crafter.env")
engine, objects = _import_crafter("crafter.engine"), _import_crafter("crafter.objects")

MAX_STEPS = 10_000
"""Steps of an episode, as published."""


class OrderedObjects(dict[Any, None]):
    """A set of objects that keeps the order in which they were added."""

    add = dict.setdefault

    def remove(self, item: Any) -> None:
        """Remove an object."""
        del self[item]


class OrderedWorld(engine.World):  # type: ignore[misc, name-defined]
    """The map of Crafter, with its objects in an order."""

    def reset(self, seed: int | None = None) -> None:
        """Clear the map."""
        super().reset(seed)
        self._chunks: dict[Any, OrderedObjects] = defaultdict(OrderedObjects)


class CrafterGame(crafter.Env):  # type: ignore[misc, name-defined]
    """Crafter with a map that keeps its order, and rules that can change."""

    daylight: float | None = None
    """How light it is all the time, from 0 to 1; None lets days and nights change."""
    zombies = 1.0
    """How many times as many zombies come as usual."""

    def __init__(self, *arguments: Any) -> None:
        """Make a game; the arguments are those of Crafter."""
        super().__init__(*arguments)
        self._world.__class__ = OrderedWorld

    def start(self, seed: int, health: int) -> Any:
        """Start an episode on the map of a seed, and return the first observation."""
        self._seed, self._episode = seed, 0
        seen = self.reset()
        if health == self._player.health:
            return seen
        self._player.health = self._last_health = health
        return self.render()

    def _update_time(self) -> None:
        super()._update_time()
        if self.daylight is not None:
            self._world.daylight = self.daylight

    def _balance_object(self, chunk: Any, objs: Any, cls: Any, *rules: Any) -> None:
        if cls is objects.Zombie and self.zombies != 1:
            *places, spawn, despawn, make, target = rules
            rules = (*places, min(1.0, spawn * self.zombies), despawn, make, partial(self._crowd, target))
        super()._balance_object(chunk, objs, cls, *rules)

    def _crowd(self, target: Callable[[int, int], tuple[float, float]], count: int, space: int) -> tuple[float, float]:
        """Return how many zombies there shall be in a part of the map, at least and at most."""
        least, most = target(count, space)
        return least * self.zombies, most * self.zombies


class CrafterEnv(gymnasium.Env[Any, Any]):
    """Crafter for one episode after the other, each with a seed of its own."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    daylight: float | None = None
    zombies: float = 1.0
    health: int = 9
    """The supply at the start of an episode, from 1 to 9."""

    def __init__(
        self,
        area: tuple[int, int] = (64, 64),
        view: tuple[int, int] = (9, 9),
        size: tuple[int, int] = (64, 64),
        reward: bool = True,
        render_mode: str | None = None,
    ) -> None:
        """Make it.

        Args:
            area: Squares of the map.
            view: Squares that are seen, with those that show what the player has.
            size: Points of the picture.
            reward: Whether achievements are paid.
            render_mode: `rgb_array` or None.
        """
        self.render_mode = render_mode
        self._game = CrafterGame(tuple(area), tuple(view), tuple(size), reward, MAX_STEPS, 0)
        self.action_space = gymnasium.spaces.Discrete(len(self._game.action_names))
        self.observation_space = gymnasium.spaces.Box(0, 255, (size[1], size[0], 3), np.uint8)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode on a new map."""
        super().reset(seed=seed)
        self._game.daylight, self._game.zombies = self.daylight, self.zombies
        return self._game.start(int(self.np_random.integers(2**31 - 1)), self.health), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step."""
        seen, reward, done, info = self._game.step(action)
        dead = info["discount"] == 0
        return seen, float(reward), dead, bool(done) and not dead, info

    def render(self) -> Any:
        """Return a picture of what the player sees."""
        return self._game.render()


for _name, _paid in (("CrafterReward-v1", True), ("CrafterNoReward-v1", False)):
    gymnasium.register(
        _name, f"{__name__}:CrafterEnv", max_episode_steps=MAX_STEPS, kwargs={"reward": _paid}, disable_env_checker=True
    )
