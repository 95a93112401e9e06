"""Ballistics in pixels, from nothing but what an agent sees.

Stands beside agents: ground truth -> where the sling is, what there is, and which pull hits a point.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from openfield.domains.birds.game.ground_truth import classify

SPEED, GRAVITY = 10.0, 0.48 * 9.81
"""Launch speed and gravity, in units, as agents know them."""
ROUNDS = 5
MIN_DOTS = 6
SLING_HEIGHT = 2.015
"""Units; the height of the slingshot is how an agent measures its screen."""
REST = (0.335 / 0.705, 0.23 / 2.015)
"""Where a bird rests in the slingshot's rectangle: from its left in widths, from its top in heights."""


class ObservedObject(msgspec.Struct, frozen=True):
    """An object on the screen."""

    look: str
    box: tuple[int, int, int, int]
    """Left, top, right, bottom."""
    ring: tuple[tuple[int, int], ...]

    @property
    def centre(self) -> tuple[float, float]:
        """Its middle."""
        left, top, right, bottom = self.box
        return (left + right) / 2, (top + bottom) / 2


class ObservedLevel(msgspec.Struct, frozen=True):
    """A ground truth, read."""

    scale: float
    """Pixels per unit."""
    rest: tuple[float, float]
    """The pixel where the bird rests."""
    ground: int
    objects: tuple[ObservedObject, ...]
    dots: tuple[tuple[int, int], ...] = ()
    """The path of the last bird, every tenth of a second."""

    @property
    def rises(self) -> bool | None:
        """Whether the last bird was drawn upwards; None if its path is too short to say."""
        if len(self.dots) < MIN_DOTS:
            return None
        first, middle, last = self.dots[0][1], self.dots[len(self.dots) // 2][1], self.dots[-1][1]
        return first + last < 2 * middle

    def of(self, *looks: str) -> list[ObservedObject]:
        """The objects of some classes."""
        return [seen for seen in self.objects if seen.look in looks]


def observe_level(ground_truth: list[dict[str, Any]]) -> ObservedLevel:
    """What an agent can make of a ground truth."""
    objects: list[ObservedObject] = []
    dots: tuple[tuple[int, int], ...] = ()
    ground, sling = 0, (0, 0, 1, 1)
    for feature in ground_truth[0]["features"]:
        label, geometry = feature["properties"]["label"], feature["geometry"]
        if label == "Ground":
            ground = feature["properties"]["yindex"]
        elif label == "Slingshot":
            sling = _box(geometry["coordinates"][0])
        elif label == "Trajectory":
            dots = tuple((x, y) for x, y in geometry["coordinates"])
        elif geometry.get("type") == "Polygon":
            ring = tuple((x, y) for x, y in geometry["coordinates"][0])
            objects.append(ObservedObject(classify(feature["properties"]["colormap"]), _box(ring), ring))
    left, top, right, bottom = sling
    rest = (left + REST[0] * (right - left), top + REST[1] * (bottom - top))
    return ObservedLevel((bottom - top) / SLING_HEIGHT, rest, ground, tuple(objects), dots)


def aim(
    sight: ObservedLevel, target: tuple[float, float], high: bool = False, gravity: float = GRAVITY
) -> tuple[float, float] | None:
    """The launch vector, in units and upwards, that meets a pixel on the low or the high way; None if out of reach.

    The bird starts where it was pulled to, one unit behind its rest, so the way is found by going round a few times.
    """
    x, y = (target[0] - sight.rest[0]) / sight.scale, (sight.rest[1] - target[1]) / sight.scale
    launch = _launch(x, y, high, gravity)
    for _ in range(ROUNDS):
        if launch is None:
            return None
        launch = _launch(x + launch[0], y + launch[1], high, gravity)
    return launch


def release(sight: ObservedLevel, launch: tuple[float, float], pull: float = 5.0) -> tuple[int, int]:
    """The pixel to pull the bird to for a launch of full power."""
    reach = pull * sight.scale
    return round(sight.rest[0] - reach * launch[0]), round(sight.rest[1] + reach * launch[1])


def _launch(x: float, y: float, high: bool, gravity: float) -> tuple[float, float] | None:
    """The launch vector from the origin that meets a point; where birds rise, that of the mirrored world."""
    if gravity < 0:
        mirrored = _launch(x, -y, high, -gravity)
        return None if mirrored is None else (mirrored[0], -mirrored[1])
    side, x = (1 if x >= 0 else -1), max(abs(x), 1e-6)
    root = SPEED**4 - gravity * (gravity * x * x + 2 * y * SPEED**2)
    if root < 0:
        return None
    angle = math.atan2(SPEED**2 + (1 if high else -1) * math.sqrt(root), gravity * x)
    return side * math.cos(angle), math.sin(angle)


def _box(ring: Any) -> tuple[int, int, int, int]:
    xs, ys = [x for x, _ in ring], [y for _, y in ring]
    return min(xs), min(ys), max(xs), max(ys)
