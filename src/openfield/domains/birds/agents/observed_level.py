"""A ground truth parsed into the objects an agent works with, and the ballistics of its shots."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from openfield.domains.birds.game.ground_truth import classify
from openfield.domains.birds.game.scene import bounds

Point = tuple[float, float]
SPEED, GRAVITY = 10.0, 0.48 * 9.81
"""Launch speed and gravity, in world units, as agents know them."""
UPWARD_GRAVITY = -0.48 * 6.0
"""Gravity of birds in levels where it points upwards."""
AIM_ROUNDS = 5
PULL = 5.0
"""How far the bird is pulled back at full power."""
TAPS = {"bird_blue": 0.7, "bird_yellow": 0.7, "bird_white": 0.9, "bird_black": 0.95}
"""Default moment of the tap for each bird, as a share of the distance to the target."""
MIN_DOTS = 6
SLING_HEIGHT = 2.015
"""World units. The height of the slingshot gives an agent the scale of its screen."""
REST = (0.335 / 0.705, 0.23 / 2.015)
"""Rest position of a bird in the slingshot's rectangle: from the left in widths, from the top in heights."""


class ObservedObject(msgspec.Struct, frozen=True):
    """An object on the screen, in pixels."""

    look: str
    """Its class, a key of the palette."""
    box: tuple[int, int, int, int]
    """Left, top, right, bottom."""
    ring: tuple[tuple[int, int], ...]

    @property
    def centre(self) -> tuple[float, float]:
        """The centre of its box."""
        left, top, right, bottom = self.box
        return (left + right) / 2, (top + bottom) / 2


class ObservedLevel(msgspec.Struct, frozen=True):
    """A level as an agent sees it, in pixels."""

    scale: float
    """Pixels per world unit."""
    rest: tuple[float, float]
    """The pixel where the bird rests."""
    ground: int
    objects: tuple[ObservedObject, ...]
    dots: tuple[tuple[int, int], ...] = ()
    """The path of the last bird, one dot every 0.1 s."""

    @property
    def rises(self) -> bool | None:
        """True if the last bird was accelerated upwards; None if its path is too short to say."""
        if len(self.dots) < MIN_DOTS:
            return None
        first, middle, last = self.dots[0][1], self.dots[len(self.dots) // 2][1], self.dots[-1][1]
        return first + last < 2 * middle

    @property
    def bird(self) -> ObservedObject | None:
        """The bird nearest to the rest position, which is the next one to fly."""
        birds = (seen for seen in self.objects if seen.look.startswith("bird_"))
        return min(birds, key=lambda seen: math.dist(seen.centre, self.rest), default=None)

    def of(self, *looks: str) -> list[ObservedObject]:
        """Return the objects of the given classes."""
        return [seen for seen in self.objects if seen.look in looks]

    def aim(self, target: Point, high: bool = False, upwards: bool = False) -> Point | None:
        """Return the launch vector that hits a pixel, on the high or the low arc; None if the pixel is out of reach.

        The bird starts where it was pulled to, one unit behind its rest position, so the solution is iterated. The
        vector has length 1 in world units; its second number points up, also where birds rise instead of falling.
        """
        gravity = UPWARD_GRAVITY if upwards else GRAVITY
        x, y = (target[0] - self.rest[0]) / self.scale, (self.rest[1] - target[1]) / self.scale
        launch = _launch(x, y, high, gravity)
        for _ in range(AIM_ROUNDS):
            if launch is None:
                return None
            launch = _launch(x + launch[0], y + launch[1], high, gravity)
        return launch

    def release(self, launch: Point) -> tuple[int, int]:
        """Return the pixel to pull the bird to for a launch at full power."""
        reach = PULL * self.scale
        return round(self.rest[0] - reach * launch[0]), round(self.rest[1] + reach * launch[1])

    def tap_time(self, launch: Point, target: Point, share: float | None = None) -> float:
        """Return the milliseconds until the tap, after a share of the distance to a target; 0 without a power.

        The default share is that of the bird.
        """
        if self.bird is None or self.bird.look not in TAPS:
            return 0.0
        distance = abs(target[0] - self.rest[0]) / self.scale
        return 1000 * (share or TAPS[self.bird.look]) * distance / (SPEED * max(abs(launch[0]), 0.1))


def observe_level(ground_truth: list[dict[str, Any]]) -> ObservedLevel:
    """Parse a ground truth; objects are classified by their colours, as labels may be hidden."""
    objects: list[ObservedObject] = []
    dots: tuple[tuple[int, int], ...] = ()
    ground, sling = 0, (0, 0, 1, 1)
    for feature in ground_truth[0]["features"]:
        label, geometry = feature["properties"]["label"], feature["geometry"]
        if label == "Ground":
            ground = feature["properties"]["yindex"]
        elif label == "Slingshot":
            sling = bounds(geometry["coordinates"][0])
        elif label == "Trajectory":
            dots = tuple((x, y) for x, y in geometry["coordinates"])
        elif geometry.get("type") == "Polygon":
            ring = tuple((x, y) for x, y in geometry["coordinates"][0])
            objects.append(ObservedObject(classify(feature["properties"]["colormap"]), bounds(ring), ring))
    left, top, right, bottom = sling
    rest = (left + REST[0] * (right - left), top + REST[1] * (bottom - top))
    return ObservedLevel((bottom - top) / SLING_HEIGHT, rest, ground, tuple(objects), dots)


def _launch(x: float, y: float, high: bool, gravity: float) -> Point | None:
    """Return the launch vector from the origin to a point; upward gravity is solved in the mirrored world."""
    if gravity < 0:
        mirrored = _launch(x, -y, high, -gravity)
        return None if mirrored is None else (mirrored[0], -mirrored[1])
    side, x = (1 if x >= 0 else -1), max(abs(x), 1e-6)
    root = SPEED**4 - gravity * (gravity * x * x + 2 * y * SPEED**2)
    if root < 0:
        return None
    angle = math.atan2(SPEED**2 + (1 if high else -1) * math.sqrt(root), gravity * x)
    return side * math.cos(angle), math.sin(angle)
