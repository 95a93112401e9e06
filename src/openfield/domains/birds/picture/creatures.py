"""Birds, their eggs and feathers, and pigs as sprites. They look to the right; pasting may mirror a sprite."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from openfield.domains.birds.game.scene import load_palette
from openfield.domains.birds.picture.sprites import (
    Colour,
    Point,
    Sprite,
    colour,
    darker,
    lighter,
    load_pillow,
    mix_colours,
)

INK, WHITE = (24, 18, 20), (255, 255, 255)
BELLIES = {"bird_red": "#f3dfc4", "bird_blue": "#dcedf6", "bird_yellow": "#fdf3c0", "bird_black": "#8d8b93"}
CRESTS = {"bird_red": 2, "bird_blue": 3, "bird_yellow": 4, "bird_black": 1, "bird_white": 2}
"""How many feathers a bird has on its head."""
BIRD_SIZE, PIG_SIZE = 1.15, 1.06
"""They are drawn a little larger than the outline that touches things: they have feathers and ears."""


@lru_cache(maxsize=64)
def bird_sprite(look: str, radius: float, centre: Point, hurt: bool) -> Sprite:
    """Paint a bird of a colour; one that has touched something squints."""
    size, (x, y) = radius * BIRD_SIZE, centre
    body = colour(load_palette()[look].fill)
    edge = darker(body, 0.4)
    sprite = Sprite(x - 1.6 * size, y - 1.25 * size, x + 1.6 * size, y + 1.75 * size)

    def spot(*points: Point) -> list[Point]:
        return [(x + size * px, y + size * py) for px, py in points]

    for turn in (0.35, 0.0, -0.35):  # the tail
        tip = (-1.5 * math.cos(turn), 1.5 * math.sin(turn) - 0.1)
        sprite.polygon(spot((-0.75, 0.2), tip, (-0.75, -0.3)), edge)
    for number in range(CRESTS.get(look, 2)):
        lean = -0.15 - 0.28 * number
        sprite.polygon(spot((0.12, 0.85), (lean, 1.62 - 0.12 * number), (-0.28, 0.8)), edge)
        sprite.polygon(spot((0.02, 0.85), (lean, 1.45 - 0.12 * number), (-0.18, 0.8)), body)
    _ball(sprite, (x, y), (size, size), edge, body)
    belly = colour(BELLIES.get(look, "#ffffff"))
    _patch(sprite, (x, y), 0.92 * size, (x + 0.15 * size, y - 0.86 * size), (0.75 * size, 0.45 * size), belly)
    _bird_face(sprite, spot, size, hurt)
    return sprite


@lru_cache(maxsize=64)
def pig_sprite(look: str, size: Point, centre: Point, stage: int) -> Sprite:
    """Paint a pig of half a width and half a height, more bruised in each stage."""
    size = size[0] * PIG_SIZE, size[1] * PIG_SIZE
    (across, down), (x, y) = size, centre
    body = colour(load_palette()[look].fill)
    edge = darker(body, 0.5)
    sprite = Sprite(x - 1.15 * across, y - 1.1 * down, x + 1.15 * across, y + 1.4 * down)

    def oval(dx: float, dy: float, rx: float, ry: float, fill: Colour) -> None:
        sprite.ellipse(x + across * dx, y + down * dy, across * rx, down * ry, fill)

    for side in (-1, 1):  # the ears
        oval(side * 0.55, 0.92, 0.25, 0.3, edge)
        oval(side * 0.55, 0.9, 0.17, 0.21, body)
        oval(side * 0.55, 0.88, 0.09, 0.12, mix_colours(body, (60, 90, 20), 0.5))
    _ball(sprite, centre, size, edge, body)
    for side in (-1, 1):
        if stage >= 2 and side < 0:
            oval(side * 0.5, 0.28, 0.36, 0.38, mix_colours(body, (80, 40, 110), 0.55))  # a black eye
        _pig_eye(sprite, (x + side * 0.5 * across, y + 0.28 * down), size, shut=stage >= 4 or (stage == 3 and side < 0))
    oval(0.0, -0.18, 0.44, 0.36, edge)
    oval(0.0, -0.18, 0.38, 0.30, lighter(body, 0.35))
    for side in (-1, 1):
        oval(side * 0.15, -0.18, 0.085, 0.13, darker(body, 0.75))
    mouth = [(x + across * px, y + down * py) for px, py in ((-0.3, -0.66), (0.0, -0.72 - 0.02 * stage), (0.3, -0.66))]
    sprite.line(mouth, darker(body, 0.7), 0.05 * across)
    return sprite


@lru_cache(maxsize=4)
def egg_sprite(size: Point, centre: Point) -> Sprite:
    """Paint the egg of a white bird, narrower at its top."""
    (across, down), (x, y) = size, centre
    shell = colour("#fbf3e2")
    sprite = Sprite(x - 1.2 * across, y - 1.1 * down, x + 1.2 * across, y + 1.1 * down)
    turns = [number * math.pi / 24 for number in range(48)]
    for share, shade in ((1.0, darker(shell)), (0.84, mix_colours(shell, (170, 140, 90), 0.25)), (0.7, shell)):
        rim = [(math.cos(turn) * (1 - 0.2 * math.sin(turn)), math.sin(turn)) for turn in turns]
        sprite.polygon([(x + share * across * px, y + share * down * py) for px, py in rim], shade)
    sprite.ellipse(x - 0.22 * across, y + 0.3 * down, 0.16 * across, 0.2 * down, WHITE)
    return sprite


@lru_cache(maxsize=16)
def feather_sprite(look: str) -> Sprite:
    """Paint a loose feather of a bird."""
    shade = colour(load_palette()[look].fill)
    sprite = Sprite(-0.16, -0.06, 0.16, 0.06)
    sprite.polygon(
        [(-0.15, 0), (-0.05, 0.055), (0.1, 0.04), (0.15, 0), (0.1, -0.04), (-0.05, -0.055)], darker(shade, 0.3)
    )
    sprite.polygon([(-0.12, 0), (-0.05, 0.035), (0.09, 0.025), (0.13, 0), (0.09, -0.025), (-0.05, -0.035)], shade)
    sprite.line([(-0.15, 0), (0.1, 0)], lighter(shade), 0.015)
    return sprite


def _ball(sprite: Sprite, centre: Point, size: Point, edge: Colour, body: Colour) -> None:
    """Fill an ellipse that is lit from above, with a dark edge."""
    sprite.ellipse(*centre, *size, edge)
    x, y = sprite.grid()
    u, v = (x - centre[0]) / size[0], (y - centre[1]) / size[1]
    light = np.clip(0.1 + 0.55 * (v - 0.45 * u), -1, 1)[..., None]
    base, dark, bright = (np.array(shade) for shade in (body, darker(body, 0.4), lighter(body, 0.4)))
    colours = base + np.clip(-light, 0, 1) * (dark - base) + np.clip(light, 0, 1) * (bright - base)
    sprite.lay(colours, _mask(u * u + v * v < 0.93**2))


def _patch(sprite: Sprite, ball: Point, radius: float, centre: Point, size: Point, shade: Colour) -> None:
    """Fill an ellipse where it lies on a ball."""
    x, y = sprite.grid()
    inside = (x - ball[0]) ** 2 + (y - ball[1]) ** 2 < (0.95 * radius) ** 2
    patch = ((x - centre[0]) / size[0]) ** 2 + ((y - centre[1]) / size[1]) ** 2 < 1
    sprite.lay(np.broadcast_to(np.array(shade), (*x.shape, 3)), _mask(inside & patch))


def _mask(inside: Any) -> Any:
    return load_pillow("Image").fromarray((inside * np.uint8(255)).astype(np.uint8))


def _bird_face(sprite: Sprite, spot: Any, size: float, hurt: bool) -> None:
    for px in (0.26, 0.66):
        ((x, y),) = spot((px, 0.2))
        sprite.ellipse(x, y, 0.25 * size, 0.26 * size, INK)
        sprite.ellipse(x, y, 0.21 * size, 0.22 * size, WHITE)
        if hurt:
            sprite.line([(x - 0.17 * size, y), (x + 0.17 * size, y)], INK, 0.1 * size)
        else:
            sprite.ellipse(x + 0.07 * size, y - 0.02 * size, 0.1 * size, 0.11 * size, INK)
    sprite.polygon(spot((0.32, 0.0), (1.32, -0.22), (0.3, -0.42)), darker((240, 170, 40), 0.5))
    sprite.polygon(spot((0.38, -0.05), (1.2, -0.21), (0.38, -0.2)), (250, 190, 50))
    sprite.polygon(spot((0.38, -0.23), (1.0, -0.24), (0.36, -0.36)), (226, 142, 30))
    sprite.line(spot((-0.12, 0.62), (0.44, 0.42)), INK, 0.12 * size)  # the brows
    sprite.line(spot((0.95, 0.58), (0.44, 0.42)), INK, 0.12 * size)


def _pig_eye(sprite: Sprite, at: Point, size: Point, shut: bool) -> None:
    x, y = at
    across, down = size
    if shut:
        sprite.line([(x - 0.2 * across, y), (x + 0.2 * across, y)], INK, 0.09 * across)
        return
    sprite.ellipse(x, y, 0.26 * across, 0.27 * down, INK)
    sprite.ellipse(x, y, 0.21 * across, 0.22 * down, WHITE)
    sprite.ellipse(x - 0.04 * across, y, 0.1 * across, 0.11 * down, INK)
