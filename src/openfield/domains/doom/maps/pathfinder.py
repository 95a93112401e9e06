"""The way to a goal through the arena: around walls and pillars, and past each other.

Used by `rules` for enemies that walk somewhere: it says in which of the eight directions the next step goes.
"""

from __future__ import annotations

import functools
import heapq
import math
import random
from collections.abc import Iterable

from openfield.domains.doom.maps import arena
from openfield.domains.doom.maps.scenario import ENEMY_HALF
from openfield.domains.doom.maps.udmf import Point

GRID = 32
"""Between the places whose distance from the goal is known."""
CLEAR = 4.0
"""How far from walls and pillars the known places keep, beyond what is needed."""
DIRECTIONS = range(0, 360, 45)
DETOUR = 6
"""Steps somebody who is held up goes anywhere before the way is looked for again."""


class Pathfinder:
    """Leads everybody to one goal."""

    def __init__(self, goal: Point, stride: float, pillars: Iterable[tuple[Point, float]], rng: random.Random) -> None:
        """Measures the ways of an arena.

        Args:
            goal: Where they lead.
            stride: How far a step goes.
            pillars: What stands in the way for good: where, and half its width.
            rng: For whoever is held up.
        """
        self._goal = goal
        self._stride = stride
        self._pillars = list(pillars)
        self._rng = rng
        self._last: dict[int, Point] = {}
        self._detours: dict[int, list[int]] = {}

    def direction(self, who: int, here: Point, bodies: Iterable[tuple[Point, float]]) -> int:
        """Which way the next step of somebody goes, in degrees.

        Args:
            who: A number that stands for somebody.
            here: Where that is.
            bodies: Whoever else is there: where, and half the width.
        """
        held_up, self._last[who] = self._last.get(who) == here, here
        if held_up and not self._detours.get(who):
            self._detours[who] = [self._rng.choice(DIRECTIONS)] * DETOUR
        if self._detours.get(who):
            return self._detours[who].pop()
        others = list(bodies)
        steps = {way: _moved(here, way, self._stride) for way in DIRECTIONS}
        free = [way for way, there in steps.items() if self._is_free(there, 0.0, others)] or list(DIRECTIONS)
        best = min(free, key=lambda way: self._distance(steps[way]))
        return best if self._distance(steps[best]) < self._distance(here) else self._rng.choice(free)

    def forget(self, who: int) -> None:
        """Takes note that somebody did something else than walk."""
        self._last.pop(who, None)

    def _distance(self, here: Point) -> float:
        """How far it is to the goal on foot."""
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
        """Whether somebody can stand there; everything is as wide along the axes as the engine has it."""
        x, y = there
        room = ENEMY_HALF + clear
        return arena.fits_square(x, y, room) and not any(
            max(abs(x - at[0]), abs(y - at[1])) < room + half for at, half in (*self._pillars, *others)
        )


def _moved(here: Point, way: float, distance: float) -> Point:
    angle = math.radians(way)
    return here[0] + distance * math.cos(angle), here[1] + distance * math.sin(angle)
