"""Small pictures for learners: 84 x 84 pixels, painted directly as flat shapes instead of scaled down."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openfield.domains.birds.game.scene import Pixel, Scene, load_palette
from openfield.domains.birds.picture.sprites import colour, load_pillow, mix_colours

if TYPE_CHECKING:
    from PIL.Image import Image

SIDE = 84
FINE = 2
"""It is painted this many times as large and averaged, so that edges are smooth."""
SKY, EARTH, STORM = (190, 222, 242), (112, 160, 66), (90, 90, 100)
LARGEST = ("wind", "platform", "fan", "shape", "rect", "tnt", "pig", "egg", "bird")
"""The parts painted first, which lie behind the others."""


def thumbnail(scene: Scene) -> NDArray[np.uint8]:
    """Paint all of a scene small; the screen is squeezed into a square."""
    width, height = scene.view.screen
    across, down = FINE * SIDE / width, FINE * SIDE / height
    sky, earth = (mix_colours(shade, STORM, 0.43) if scene.storm else shade for shade in (SKY, EARTH))
    image: Image = load_pillow("Image").new("RGB", (FINE * SIDE, FINE * SIDE), sky)
    pen = load_pillow("ImageDraw").Draw(image)

    def fill(ring: Iterable[Pixel], shade: Any) -> None:
        pen.polygon([(x * across, y * down) for x, y in ring], fill=shade)

    pen.rectangle((0, scene.ground * down, FINE * SIDE, FINE * SIDE), fill=earth)
    fill(scene.sling, _shade("sling"))
    for item in sorted(scene.items, key=lambda item: LARGEST.index(item.rank)):
        fill(item.ring, _shade(item.look))
        if item.hole:
            fill(item.hole, sky)
    return np.asarray(image.reduce(FINE), dtype=np.uint8)


@lru_cache(maxsize=64)
def _shade(look: str) -> tuple[int, int, int]:
    return colour(load_palette()[look].fill)
