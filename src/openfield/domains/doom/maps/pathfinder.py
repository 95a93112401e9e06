"""Find the way to a goal in the arena: around walls and pillars, and past each other.

`rules` uses it for enemies that walk to a goal: it returns in which of the eight directions the next step goes.
"""

from __future__ import annotations

import functools
import heapq
import math
import random
from collections.abc import Iterable, Sequence

from openfield.domains.doom.maps.arena import ArenaMap
from openfield.domains.doom.maps.scenario import ENEMY_HALF, Point

GRID = 32
"""Units between the grid points whose distance from the goal is computed."""
CLEAR = 4.0
"""The extra distance of these points from walls and pillars."""
DIRECTIONS = range(0, 360, 45)
DETOUR = 6
"""Steps in a random direction for an enemy that is held up."""


class Pathfinder:
    """Leads all enemies to one goal."""

    def __init__(
        self,
        arena: ArenaMap,
        goal: Point,
        stride: float,
        pillars: Iterable[tuple[Point, float]],
        rng: random.Random,
    ) -> None:
        """Prepare the way to the goal.

        Args:
            arena: The walls.
            goal: Where enemies go.
            stride: Units they go in a step.
            pillars: Position and half the width of each.
            rng: Draws detours.
        """
        self._arena = arena
        self._goal = goal
        self._stride = stride
        self._pillars = list(pillars)
        self._rng = rng
        self._last: dict[int, Point] = {}
        self._detours: dict[int, list[int]] = {}

    def direction(self, who: int, here: Point, others: Sequence[tuple[Point, float]]) -> int:
        """Return the direction of an enemy's next step, in degrees, by its tag and position.

        The other enemies and the player are given by position and half the width.
        """
        held_up, self._last[who] = self._last.get(who) == here, here
        if held_up and not self._detours.get(who):
            self._detours[who] = [self._rng.choice(DIRECTIONS)] * DETOUR
        if self._detours.get(who):
            return self._detours[who].pop()
        x, y, stride = *here, self._stride
        angles = {way: math.radians(way) for way in DIRECTIONS}
        steps = {way: (x + stride * math.cos(a), y + stride * math.sin(a)) for way, a in angles.items()}
        free = [way for way, there in steps.items() if self._is_free(there, 0.0, others)] or list(DIRECTIONS)
        best = min(free, key=lambda way: self._distance(steps[way]))
        return best if self._distance(steps[best]) < self._distance(here) else self._rng.choice(free)

    def forget(self, who: int) -> None:
        """Note that an enemy did something else than walk."""
        self._last.pop(who, None)

    def _distance(self, here: Point) -> float:
        """Return how far it is to the goal on foot."""
        left, bottom = (math.floor(part / GRID) * GRID for part in here)
        around = [(x, y) for x in (left, left + GRID) for y in (bottom, bottom + GRID)]
        known = [self._far[place] + math.dist(here, place) for place in around if place in self._far]
        straight = math.dist(here, self._goal)
        return straight if straight < 2 * GRID else min(known, default=1e9 + straight)

    @functools.cached_property
    def _far(self) -> dict[Point, float]:
        """The distance of every place on the grid from the goal."""
        far: dict[Point, float] = {}
        queue = [(0.0, (round(self._goal[0] / GRID) * GRID, round(self._goal[1] / GRID) * GRID))]
        while queue:
            distance, place = heapq.heappop(queue)
            if place in far:
                continue
            far[place] = distance
            for x, y in ((x, y) for x in (-GRID, 0, GRID) for y in (-GRID, 0, GRID)):
                there = place[0] + x, place[1] + y
                if there not in far and self._is_free(there, CLEAR, ()):
                    heapq.heappush(queue, (distance + math.hypot(x, y), there))
        return far

    def _is_free(self, there: Point, clear: float, others: Iterable[tuple[Point, float]]) -> bool:
        """Check whether an enemy can stand there; things are as wide along both axes, as in the engine."""
        x, y = there
        room = ENEMY_HALF + clear
        return self._arena.fits_square(x, y, room) and not any(
            max(abs(x - at[0]), abs(y - at[1])) < room + half for at, half in (*self._pillars, *others)
        )
