"""The landscape behind a level: sky, clouds and hills, which move less than the camera, and the ground, which does not.

Both are painted once as wide pictures; a view of them is a part of each, scaled.
"""

from __future__ import annotations

import random
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from openfield.domains.birds.game.bodies import GROUND
from openfield.domains.birds.game.scene import Viewport
from openfield.domains.birds.picture.sprites import load_pillow, mix_colours
from openfield.domains.birds.picture.textures import noise

if TYPE_CHECKING:
    from PIL.Image import Image

SKY = ((92, 168, 224), (178, 216, 240), (232, 244, 248))
"""Colours of the sky from the top to the horizon."""
FAR_SIZE, HORIZON = (1440, 900), 640
"""The far picture, and the row of its horizon."""
FAR_WIDTH = 960
"""Pixels of the far picture that a view of `USUAL_WIDTH` units shows."""
USUAL_WIDTH = 30.0
FAR_SHIFT = 12.0
"""Pixels by which the far picture moves for each unit of the camera."""
HALF_WIDTH, DEPTH, GROUND_DETAIL = 48.0, 20.0, 24
"""The ground: units to each side, units down, and pixels per unit."""
SOIL = 1.5
"""Units of earth below the surface; below it lies the meadow in the foreground."""
GRASS_TOP = 0.12
"""How far grass stands above the ground, in units."""
MEADOW = ((0.0, (104, 152, 62)), (1.1, (90, 138, 56)), (2.6, (78, 124, 50)), (4.6, (66, 108, 46)))
"""How many units below the soil each row of grass begins, and its colour."""
HILLS = (
    ((188, 214, 226), 150, 1.1, 11),
    ((172, 206, 190), 95, 2.0, 5),
    ((158, 200, 150), 48, 3.7, 8),
)
"""Colour, height in pixels, waves and seed of each row of hills, from the farthest to the nearest."""


@lru_cache(maxsize=8)
def draw_landscape(view: Viewport) -> Image:
    """Draw the background of a level; copy the picture before you draw on it."""
    row = view.spot(0, GROUND)[1]
    picture = _far_part(view, row)
    _lay_ground(picture, view, row)
    return picture


def _far_part(view: Viewport, row: float) -> Image:
    """Return the part of the far picture that a view shows, with the horizon at a row of the screen."""
    image = load_pillow("Image")
    width = min(FAR_WIDTH * (view.width / USUAL_WIDTH) ** 0.5, FAR_SIZE[0])
    across, down = view.screen
    scale = width / across
    left = min(max(0.0, FAR_SIZE[0] / 2 + FAR_SHIFT * view.x - width / 2), FAR_SIZE[0] - width)
    top = HORIZON - row * scale
    height = down * scale
    top = min(max(0.0, top), FAR_SIZE[1] - height)
    box = (left, top, left + width, top + height)
    part: Image = _far().resize(view.screen, image.Resampling.BILINEAR, box)
    return part


def _lay_ground(picture: Image, view: Viewport, row: float) -> None:
    image = load_pillow("Image")
    top = max(0, int(row - GRASS_TOP * view.scale))
    width, height = view.screen
    if top >= height:
        return
    left, upper = view.point(0, top)
    right, lower = view.point(width, height)
    ground, mask = _ground()
    sides = (max(left, -HALF_WIDTH) + HALF_WIDTH, min(right, HALF_WIDTH) + HALF_WIDTH)
    rows = (max(0.0, GROUND + GRASS_TOP - upper), min(GROUND + GRASS_TOP - lower, DEPTH))
    box = sides[0] * GROUND_DETAIL, rows[0] * GROUND_DETAIL, sides[1] * GROUND_DETAIL, rows[1] * GROUND_DETAIL
    if box[2] - box[0] < 1 or box[3] - box[1] < 1:
        return
    size = (width, height - top)
    part, hides = (each.resize(size, image.Resampling.BILINEAR, box) for each in (ground, mask))
    picture.paste(part, (0, top), hides)


@lru_cache(maxsize=1)
def _far() -> Image:
    """Paint sky, clouds and hills."""
    image = load_pillow("Image")
    width, height = FAR_SIZE
    stops = np.array(SKY, dtype=float)
    at = np.clip(np.arange(height) / HORIZON, 0, 1) * (len(SKY) - 1)
    index = np.minimum(at.astype(int), len(SKY) - 2)
    sky = stops[index] + (at - index)[:, None] * (stops[index + 1] - stops[index])
    picture: Image = image.fromarray(np.repeat(sky.astype(np.uint8)[:, None], width, axis=1))
    _lay_clouds(picture)
    x = np.arange(width)
    for shade, tall, waves, seed in HILLS:
        rng = np.random.default_rng(seed)
        shape = noise((2, width), (1, round(4 * waves)), rng)[0] + 0.5 * np.sin(2 * np.pi * waves * x / width + seed)
        crest = HORIZON - tall * (0.75 + 0.35 * shape)
        top = int(crest.min())
        below = np.arange(top, height)[:, None] - crest
        fade = np.clip(below / 160, 0, 1)
        hill = np.empty((*fade.shape, 3), np.uint8)  # colour by colour: all at once took five times as long
        for place, (near, far) in enumerate(zip(shade, mix_colours(shade, SKY[2], 0.55), strict=True)):
            hill[..., place] = near + fade * (far - near)
        picture.paste(image.fromarray(hill), (0, top), image.fromarray((below > 0).view(np.uint8) * np.uint8(255)))
    return picture


def _lay_clouds(picture: Any) -> None:
    image, draw = load_pillow("Image"), load_pillow("ImageDraw")
    mask = image.new("L", FAR_SIZE)
    pen = draw.Draw(mask)
    rng = random.Random("clouds")
    for _ in range(9):
        x, y, size = rng.uniform(0, FAR_SIZE[0]), rng.uniform(60, 400), rng.uniform(26, 52)
        for part in range(5):
            radius = size * (1 - 0.18 * abs(part - 2)) * rng.uniform(0.8, 1.1)
            middle = x + (part - 2) * size * 0.8
            pen.ellipse((middle - radius, y - radius * 0.62, middle + radius, y + radius * 0.5), fill=190)
    mask = mask.filter(load_pillow("ImageFilter").GaussianBlur(5))
    picture.paste((255, 255, 255), (0, 0), mask)


@lru_cache(maxsize=1)
def _ground() -> tuple[Image, Image]:
    """Paint grass, earth and the stones in it, and a mask that is clear between the blades of grass."""
    image, draw = load_pillow("Image"), load_pillow("ImageDraw")
    width, height = round(2 * HALF_WIDTH * GROUND_DETAIL), round(DEPTH * GROUND_DETAIL)
    rng = np.random.default_rng(3)
    surface = GRASS_TOP * GROUND_DETAIL
    deep = np.clip(np.arange(height) / (0.5 * height), 0, 1)[:, None, None]
    earth = (1 - deep) * np.array((150, 112, 74)) + deep * np.array((104, 76, 52))
    rough = noise((height, width), (14, 60), rng)[..., None]
    picture: Image = image.fromarray(np.clip(earth + 9 * rough, 0, 255).astype(np.uint8))
    mask: Image = image.new("L", picture.size, 255)
    pen, clear = draw.Draw(picture), draw.Draw(mask)
    dice = random.Random("stones")
    for _ in range(420):
        x, y, size = dice.uniform(0, width), dice.uniform(24, height), dice.uniform(2, 8)
        shade = dice.choice(((128, 98, 68), (118, 88, 62), (166, 132, 96)))
        pen.ellipse((x - size, y - 0.6 * size, x + size, y + 0.6 * size), fill=shade)
    _lay_meadow(pen, width, height, rng)
    pen.rectangle((0, 0, width, int(surface)), fill=(128, 186, 74))
    clear.rectangle((0, 0, width, int(surface)), fill=0)
    turf = surface + 7 + 2.5 * noise((2, width), (1, 380), rng)[0]
    for x in range(width):
        pen.line((x, surface, x, turf[x]), fill=(112, 172, 66))
    pen.line((0, surface, width, surface), fill=(140, 198, 84), width=2)
    for x in range(0, width, 4):  # blades
        tall = dice.uniform(0.2, 1.0) * surface
        lean = dice.uniform(-2, 2)
        shade = dice.choice(((104, 164, 60), (128, 186, 74), (146, 200, 90)))
        pen.line((x, surface + 2, x + lean, surface - tall), fill=shade, width=1)
        clear.line((x, surface, x + lean, surface - tall), fill=255, width=1)
    return picture, mask


def _lay_meadow(pen: Any, width: int, height: int, rng: np.random.Generator) -> None:
    """Paint the meadow in front of the cut through the ground: rows of grass, the nearer the darker."""
    dice = random.Random("meadow")
    for row, (deep, shade) in enumerate(MEADOW):
        edge = (SOIL + deep + 0.16 * noise((2, width), (1, 150 - 30 * row), rng)[0]) * GROUND_DETAIL
        for x in range(width):
            pen.line((x, edge[x], x, height), fill=shade)
        for x in range(0, width, 3):  # tufts
            tall, lean = dice.uniform(0.1, 0.34) * GROUND_DETAIL, dice.uniform(-3, 3)
            pen.line(
                (x, edge[x] + 2, x + lean, edge[x] - tall),
                fill=mix_colours(shade, (196, 224, 120), dice.random() * 0.35),
            )
    for _ in range(260):  # flowers
        across, down = dice.uniform(0, width), dice.uniform(SOIL + 0.5, DEPTH) * GROUND_DETAIL
        petal = dice.choice(((250, 246, 236), (248, 214, 92), (232, 150, 170)))
        pen.ellipse((across - 2, down - 1.5, across + 2, down + 1.5), fill=petal)
