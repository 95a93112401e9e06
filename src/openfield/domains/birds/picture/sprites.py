"""Sprites: small pictures with transparency, painted once in world units and pasted turned and scaled.

A sprite is painted large and kept in halved sizes. Pasting takes the size next above twice the wanted one, turns it,
and averages 2 x 2 pixels, so that edges are smooth at every angle and at fractions of a pixel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openfield.lazy import import_extra

if TYPE_CHECKING:
    from PIL.Image import Image

Point = tuple[float, float]
Colour = tuple[int, ...]
DETAIL = 128
"""Pixels per world unit of a sprite as it is painted."""
MIN_SIZE = 4


def load_pillow(name: str) -> Any:
    """Return a module of Pillow, which is imported when the first picture is drawn."""
    return import_extra(f"PIL.{name}", "birds", "Drawing birds")


def colour(text: str) -> tuple[int, int, int]:
    """Return red, green and blue of a colour such as `#d62b2b`."""
    red, green, blue = bytes.fromhex(text[1:])
    return red, green, blue


def mix_colours(first: Colour, second: Colour, share: float) -> tuple[int, int, int]:
    """Return a colour between two, with a share of the second."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(first[:3], second[:3], strict=True))
    return red, green, blue


def darker(shade: Colour, share: float = 0.45) -> tuple[int, int, int]:
    """Return a darker colour."""
    return mix_colours(shade, (0, 0, 0), share)


def lighter(shade: Colour, share: float = 0.4) -> tuple[int, int, int]:
    """Return a lighter colour."""
    return mix_colours(shade, (255, 255, 255), share)


class Sprite:
    """A picture with transparency around a centre, in world units with y upwards."""

    def __init__(self, left: float, bottom: float, right: float, top: float, detail: float = DETAIL) -> None:
        self.left, self.top, self.detail = left, top, detail
        self.right, self.bottom = right, bottom
        size = (max(MIN_SIZE, math.ceil((right - left) * detail)), max(MIN_SIZE, math.ceil((top - bottom) * detail)))
        self.image: Image = load_pillow("Image").new("RGBA", size)
        self._pen = load_pillow("ImageDraw").Draw(self.image)

    def polygon(self, points: Sequence[Point], fill: Colour) -> None:
        """Fill a polygon."""
        self._pen.polygon([self._at(*point) for point in points], fill=fill)

    def ellipse(self, x: float, y: float, across: float, down: float, fill: Colour) -> None:
        """Fill an ellipse around a point; `across` and `down` are its half axes."""
        (left, top), (right, bottom) = self._at(x - across, y + down), self._at(x + across, y - down)
        self._pen.ellipse((left, top, right, bottom), fill=fill)

    def line(self, points: Sequence[Point], fill: Colour, width: float) -> None:
        """Draw a line with round ends."""
        thick = max(1, round(width * self.detail))
        pixels = [self._at(*point) for point in points]
        self._pen.line(pixels, fill=fill, width=thick, joint="curve")
        for x, y in (pixels[0], pixels[-1]):
            self._pen.ellipse((x - thick / 2, y - thick / 2, x + thick / 2, y + thick / 2), fill=fill)

    def mask(self, *rings: Sequence[Point]) -> Any:
        """Return a mask of a polygon without the holes that follow it."""
        mask = load_pillow("Image").new("L", self.image.size)
        pen = load_pillow("ImageDraw").Draw(mask)
        for number, ring in enumerate(rings):
            pen.polygon([self._at(*point) for point in ring], fill=0 if number else 255)
        return mask

    def cut(self, mask: Any) -> None:
        """Clear everything outside a mask."""
        self.image.putalpha(load_pillow("ImageChops").darker(self.image.getchannel("A"), mask))

    def lay(self, colours: NDArray[Any], mask: Any) -> None:
        """Lay colours (height, width and three or four of them) over the sprite where a mask is set."""
        layer = load_pillow("Image").fromarray(np.clip(colours, 0, 255).astype(np.uint8)).convert("RGBA")
        self.image.paste(layer, (0, 0), mask)

    def grid(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return x and y of every pixel, in units."""
        width, height = self.image.size
        x = self.left + (np.arange(width) + 0.5) / self.detail
        y = self.top - (np.arange(height) + 0.5) / self.detail
        return np.meshgrid(x, y)

    def _at(self, x: float, y: float) -> Point:
        return (x - self.left) * self.detail, (self.top - y) * self.detail

    @cached_property
    def sizes(self) -> list[Image]:
        """The sprite in its size and halved again and again."""
        sizes = [self.image]
        while min(sizes[-1].size) >= 2 * MIN_SIZE and len(sizes) < 6:
            sizes.append(sizes[-1].reduce(2))
        return sizes

    def paste(
        self, picture: Image, at: Point, scale: float, angle: float = 0.0, flip: bool = False, fade: float = 1.0
    ) -> None:
        """Paste the sprite onto a picture.

        Args:
            picture: The picture.
            at: The pixel of the sprite's centre; fractions count.
            scale: Pixels per world unit.
            angle: How far it is turned to the left, in radians.
            flip: Mirror it left to right before it is turned.
            fade: From 0 (invisible) to 1.
        """
        cos, sin = math.cos(angle), math.sin(angle)
        side = -1 if flip else 1
        corners = [(side * x, y) for x in (self.left, self.right) for y in (self.bottom, self.top)]
        xs = [at[0] + scale * (cos * x - sin * y) for x, y in corners]
        ys = [at[1] - scale * (sin * x + cos * y) for x, y in corners]
        left, top = math.floor(min(xs)) - 1, math.floor(min(ys)) - 1
        right, bottom = math.ceil(max(xs)) + 1, math.ceil(max(ys)) + 1
        left, top = max(left, 0), max(top, 0)
        right, bottom = min(right, picture.width), min(bottom, picture.height)
        if right <= left or bottom <= top or fade <= 0:
            return
        level = min(max(0, math.floor(math.log2(self.detail / (2 * scale)))), len(self.sizes) - 1)
        source, detail = self.sizes[level], self.detail / 2**level
        # A pixel (X, Y) of the doubled tile is the unit (u, v) of the world, and this the pixel of the source.
        step, u, v = 1 / (2 * scale), (left - at[0]) / scale, (at[1] - top) / scale
        across = (side * cos * step * detail, -side * sin * step * detail)
        down = (sin * step * detail, cos * step * detail)
        start_x = (side * (cos * u + sin * v) - self.left) * detail
        start_y = (self.top - (cos * v - sin * u)) * detail
        image = load_pillow("Image")
        tile = source.transform(
            (2 * (right - left), 2 * (bottom - top)),
            image.Transform.AFFINE,
            (*across, start_x, *down, start_y),
            image.Resampling.BILINEAR,
        ).reduce(2)
        mask = tile.getchannel("A")
        picture.paste(tile, (left, top), mask if fade >= 1 else mask.point(lambda value: value * fade))
