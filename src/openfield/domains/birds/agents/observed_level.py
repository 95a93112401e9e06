"""A ground truth parsed into the objects an agent works with."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from openfield.domains.birds.game.ground_truth import classify
from openfield.domains.birds.game.viewport import bounds

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
        """True if the last bird was accelerated upwards; None if its path is too short to tell."""
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
