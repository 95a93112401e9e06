"""The camera of a film: it frames what happens, and moves smoothly between one frame and the next."""

from __future__ import annotations

import math
from collections.abc import Sequence

from openfield.domains.birds.game.bodies import GROUND
from openfield.domains.birds.game.scene import HEIGHT, WIDTH, Scene, SceneItem, Viewport
from openfield.domains.birds.picture.sprites import Point

MIN_WIDTH = 9.0
"""Units. The camera comes no nearer."""
MARGIN = 1.2
"""Units around the framed objects."""
BELOW = 1.1
"""Units of ground that are always shown."""
RESPONSE = 0.35
"""Seconds in which the camera covers most of the way to where it should be."""
NEAR = 4.0
"""Units. A bird that has touched something is let go when it is farther from everything else."""
RATIO = HEIGHT / WIDTH


class FilmCamera:
    """Follows the bird to its target."""

    def __init__(self, scene: Scene) -> None:
        """Start with all of a level."""
        self._widest = scene.view.width
        self._now = self._aim(scene, whole=True)
        self._speed = (0.0, 0.0, 0.0)

    def follow(self, scene: Scene, seconds: float, whole: bool) -> Viewport:
        """Move for some seconds, and return the view; `whole` frames all of the level instead of the action."""
        goal = self._aim(scene, whole)
        parts = [
            _spring(now, speed, aim, seconds) for now, speed, aim in zip(self._now, self._speed, goal, strict=True)
        ]
        x, y, log_width = (now for now, _ in parts)
        self._now = x, y, log_width
        self._speed = parts[0][1], parts[1][1], parts[2][1]
        return self.view

    @property
    def view(self) -> Viewport:
        """What the camera shows now."""
        x, y, log_width = self._now
        return Viewport(math.exp(log_width), x, y)

    def _aim(self, scene: Scene, whole: bool) -> tuple[float, float, float]:
        """Return the middle and the logarithm of the width that frame what should be seen."""
        points = list(_points(scene, whole))
        left, right = min(x for x, _ in points) - MARGIN, max(x for x, _ in points) + MARGIN
        top = max(y for _, y in points) + MARGIN
        bottom = GROUND - BELOW
        width = min(max(right - left, (top - bottom) / RATIO, MIN_WIDTH), 1.15 * self._widest)
        middle = (left + right) / 2
        return middle, bottom + width * RATIO / 2, math.log(width)


def _points(scene: Scene, whole: bool) -> Sequence[Point]:
    """Return the places that must be in the picture: targets, the bird in the air, or everything."""
    things = [item for item in scene.items if item.rank not in ("wind", "bird")]
    points = [corner for item in things if item.rank != "platform" or whole for corner in _corners(item)]
    out = [item for item in scene.items if item.rank == "bird" and item.turn < 0]
    points += [item.place for item in out if item.stage == 1 or _is_near(item.place, points)]
    if whole or not points:
        x, y = scene.sling_place
        points += [(x - 0.6, y), (x + 0.6, y + 1.2)]
        points += [item.place for item in scene.items if item.rank == "bird" and item.turn >= 0]
    return points


def _is_near(place: Point, points: Sequence[Point]) -> bool:
    """Return whether a place is not far to the left or right of some others."""
    return not points or min(abs(place[0] - x) for x, _ in points) < NEAR


def _corners(item: SceneItem) -> Sequence[Point]:
    (x, y), reach = item.place, max(math.hypot(dx, dy) for dx, dy in item.shape)
    return (x - reach, y - reach), (x + reach, y + reach)


def _spring(now: float, speed: float, goal: float, seconds: float) -> tuple[float, float]:
    """Return place and speed of a critically damped spring after some seconds."""
    rate = 2 / RESPONSE
    away = now - goal
    pace = speed + rate * away
    decay = math.exp(-rate * seconds)
    return goal + (away + pace * seconds) * decay, (speed - rate * pace * seconds) * decay
