"""The plain screenshots of release 0.1, in which every object had colours of its ground truth.

Records of that release whose agents saw pictures (`physics=0.1`, `observe=image`) are replayed with them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from openfield.domains.birds.game.scene import HEIGHT, WIDTH, Pixel, Scene, SceneItem, bounds, load_palette
from openfield.domains.birds.picture.sprites import load_pillow

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

SKY_TOP, SKY_LOW = (146, 202, 236), (232, 244, 246)
GRASS, EARTH, HILL = "#86b85a", "#8a6a48", "#b9d9b0"
STORM = (90, 90, 100, 110)
COLOURS = {
    "bird_red": ("#f4c4a0", "#1c1428"),
    "bird_blue": ("#63b5e6", "#235c7c"),
    "pig": ("#7ce35a", "#43a31d"),
    "novel": ("#1c1cbc", "#1c1c6c"),
}
"""Fill and edge of the classes that are painted in other colours today."""


def plain_pixels(scene: Scene) -> NDArray[np.uint8]:
    """Draw a scene, and return its 640 x 480 pixels as an array of rows, from the top."""
    pillow, draw_on = load_pillow("Image"), load_pillow("ImageDraw")
    picture: Image = _landscape(scene.ground).copy()
    pen = draw_on.Draw(picture)
    for item in scene.items:
        if item.look == "wind":
            _wind(pen, item)
    _sling(pen, scene.sling)
    for x, y in scene.dots:
        pen.ellipse((x - 2, y - 2, x + 2, y + 2), fill="white")
    for item in scene.items:
        if item.look != "wind":
            _object(pen, item)
    if scene.storm:
        veil = pillow.new("RGB", picture.size, STORM[:3])
        picture = pillow.blend(picture, veil, STORM[3] / 255)
    return np.asarray(picture, dtype=np.uint8)


@lru_cache(maxsize=8)
def _landscape(ground: int) -> Image:
    """Draw sky, hills and ground; the same for every level with the same horizon."""
    pillow, draw_on = load_pillow("Image"), load_pillow("ImageDraw")
    fade = np.linspace(0, 1, HEIGHT)[:, None, None]
    sky = (1 - fade) * np.array(SKY_TOP) + fade * np.array(SKY_LOW)
    picture: Image = pillow.fromarray(np.repeat(sky, WIDTH, axis=1).astype(np.uint8))
    pen = draw_on.Draw(picture)
    for x, radius in ((90, 150), (330, 210), (560, 170)):
        pen.ellipse((x - radius, ground - radius // 3, x + radius, ground + radius), fill=HILL)
    pen.rectangle((0, ground, WIDTH, HEIGHT), fill=EARTH)
    pen.rectangle((0, ground, WIDTH, ground + 6), fill=GRASS)
    return picture


def _sling(pen: ImageDraw, ring: tuple[Pixel, ...]) -> None:
    (left, bottom), (_, top), (right, _), _ = ring
    look, middle = load_palette()["sling"], (left + right) // 2
    fork = top + (bottom - top) // 3
    pen.line([(middle, bottom), (middle, fork)], fill=look.fill, width=5)
    pen.line([(left, top), (middle, fork), (right, top)], fill=look.fill, width=4, joint="curve")
    pen.line([(left, top), (right, top)], fill=look.edge, width=1)


def _wind(pen: ImageDraw, item: SceneItem) -> None:
    left, top, right, bottom = bounds(item.ring)
    pen.rectangle((left, top, right, bottom), outline=load_palette()["wind"].edge)
    for x in range(left + 8, right - 4, 14):
        for y in range(top + 10, bottom - 6, 22):
            pen.arc((x - 4, y - 6, x + 4, y + 6), 90, 270, fill=load_palette()["wind"].edge)


def _object(pen: ImageDraw, item: SceneItem) -> None:
    fill, edge = _colours(item.look)
    pen.polygon(item.ring, fill=fill, outline=edge)
    if item.hole:
        pen.polygon(item.hole, fill="#dcebf0", outline=edge)
    if item.rank in ("pig", "bird"):
        _face(pen, item)
    if item.rank == "fan":
        left, top, right, bottom = bounds(item.ring)
        pen.line([(left, top), (right, bottom)], fill=edge, width=2)
        pen.line([(left, bottom), (right, top)], fill=edge, width=2)


def _colours(look: str) -> tuple[str, str]:
    palette = load_palette()[look]
    return COLOURS.get(look, (palette.fill, palette.edge))


def _face(pen: ImageDraw, item: SceneItem) -> None:
    """Draw two eyes, and a snout or a beak."""
    left, top, right, bottom = bounds(item.ring)
    x, y, size = (left + right) / 2, (top + bottom) / 2, max(1.0, (right - left) / 8)
    for side in (-1, 1):
        eye = x + side * 1.6 * size
        pen.ellipse((eye - size, y - 2 * size, eye + size, y), fill="white")
        pen.point((round(eye), round(y - size)), fill="black")
    tint = _colours(item.look)[1] if item.rank == "pig" else "#f2a33a"
    pen.ellipse((x - size, y + size * 0.4, x + size, y + size * 1.8), fill=tint)
