"""The viewport: world units to pixels and back."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from openfield.domains.birds.game.level import Camera

Pixel = tuple[int, int]
WIDTH, HEIGHT = 640, 480
SLING_BOX = (-0.485, -0.985, 0.22, 1.03)
"""The rectangle of the slingshot relative to its position: left, bottom, right, top."""


class Viewport(msgspec.Struct, frozen=True):
    """The part of the world that is on the screen."""

    width: float
    x: float
    y: float

    @property
    def scale(self) -> float:
        """Pixels per unit."""
        return WIDTH / self.width

    def pixel(self, x: float, y: float) -> tuple[int, int]:
        """Return the pixel of a point; the origin is the top left corner."""
        across, down = self.spot(x, y)
        return round(across), round(down)

    def spot(self, x: float, y: float) -> tuple[float, float]:
        """Return the position of a point on the screen, in fractions of a pixel."""
        return WIDTH / 2 + self.scale * (x - self.x), HEIGHT / 2 - self.scale * (y - self.y)

    def point(self, px: float, py: float) -> tuple[float, float]:
        """Return the point of a pixel."""
        return (px - WIDTH / 2) / self.scale + self.x, (HEIGHT / 2 - py) / self.scale + self.y


def bounds(ring: Sequence[Pixel]) -> tuple[int, int, int, int]:
    """Return the bounding box of some pixels: left, top, right, bottom."""
    xs, ys = [x for x, _ in ring], [y for _, y in ring]
    return min(xs), min(ys), max(xs), max(ys)


def zoomed_out(camera: Camera) -> Viewport:
    """Return the widest viewport of a camera; every level starts with it."""
    return Viewport(camera.widest, 0.0, camera.y)


def zoomed_in(camera: Camera) -> Viewport:
    """Return the narrowest viewport of a camera, at the left edge."""
    return Viewport(camera.narrowest, camera.narrowest / 2 - camera.widest / 2, camera.y)
