"""Blocks, platforms, explosives, fans and the slingshot as sprites."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from openfield.domains.birds.game.physics import Ring
from openfield.domains.birds.game.scene import SLING_BOX, load_palette
from openfield.domains.birds.picture.sprites import DETAIL, Colour, Point, Sprite, colour, darker, lighter
from openfield.domains.birds.picture.textures import draw_cracks, paint_texture

EDGE = 0.035
"""Width of the dark line around a block, in units."""
MAX_SIDE = 2048
"""Pixels. A sprite that would be longer is painted with less detail."""
FORK = ((-0.39, 0.93), (0.12, 0.93))
"""The tips of the slingshot, where its band is tied."""
BAND = (62, 34, 22)
FAN_BLADE = (46, 96, 150)


@lru_cache(maxsize=512)
def block_sprite(look: str, shape: Ring, hollow: Ring, stage: int) -> Sprite:
    """Paint a block, a platform or anything else that is an outline of one material."""
    appearance = load_palette()[look]
    base, edge = colour(appearance.fill), colour(appearance.edge)
    sprite = _canvas(shape)
    sprite.polygon(shape, edge)
    inner, rim = _shrink(shape, EDGE), _shrink(hollow, -EDGE) if hollow else ()
    sprite.lay(paint_texture(sprite, look, base), sprite.mask(inner, *([rim] if rim else [])))
    _light(sprite, inner, lighter(base, 0.55))
    if stage > 1:
        draw_cracks(sprite, inner, stage, (250, 253, 255) if look == "ice" else darker(edge, 0.5))
    sprite.cut(sprite.mask(shape, *([hollow] if hollow else [])))
    return sprite


@lru_cache(maxsize=8)
def tnt_sprite(shape: Ring, stage: int) -> Sprite:
    """Paint a box of explosives."""
    sprite = block_sprite.__wrapped__("tnt", shape, (), stage)
    half = max(x for x, _ in shape)
    sprite.polygon(
        [(-half, -0.42 * half), (half, -0.42 * half), (half, 0.42 * half), (-half, 0.42 * half)], (250, 236, 200)
    )
    for left, strokes in ((-0.82, _T), (-0.26, _N), (0.3, _T)):
        for stroke in strokes:
            sprite.line(
                [((left + 0.5 * x) * half, (0.6 * y - 0.3) * half) for x, y in stroke], (60, 20, 10), 0.13 * half
            )
    return sprite


_T: Sequence[Sequence[Point]] = (((0, 1), (1, 1)), ((0.5, 1), (0.5, 0)))
_N: Sequence[Sequence[Point]] = (((0.05, 0), (0.05, 1), (0.95, 0), (0.95, 1)),)


@lru_cache(maxsize=4)
def fan_sprite(shape: Ring) -> Sprite:
    """Paint a fan: three blades in a round cage, on a foot."""
    look = load_palette()["fan"]
    base, edge = colour(look.fill), colour(look.edge)
    half = max(x for x, _ in shape)
    sprite = _canvas(shape)
    sprite.line([(0, -0.2 * half), (0, -0.92 * half)], darker(base, 0.45), 0.26 * half)
    sprite.line([(-0.55 * half, -0.92 * half), (0.55 * half, -0.92 * half)], darker(base, 0.45), 0.18 * half)
    up, radius = 0.14 * half, 0.86 * half
    for size, shade in ((1.0, edge), (0.9, lighter(base, 0.85)), (0.8, lighter(base, 0.35))):
        sprite.ellipse(0, up, size * radius, size * radius, shade)
    for number in range(3):
        turn = number * math.tau / 3 + 0.5
        blade = [(0.0, 0.0)]
        for share, lean in ((0.35, -0.45), (0.72, -0.3), (0.78, 0.15), (0.6, 0.55), (0.25, 0.5)):
            blade.append((share * radius * math.cos(turn + lean), share * radius * math.sin(turn + lean)))
        sprite.polygon([(x, y + up) for x, y in blade], FAN_BLADE)
    sprite.ellipse(0, up, 0.22 * radius, 0.22 * radius, edge)
    sprite.ellipse(-0.03 * half, up + 0.03 * half, 0.1 * radius, 0.1 * radius, lighter(base, 0.6))
    return sprite


@lru_cache(maxsize=1)
def gust_sprite() -> Sprite:
    """Paint two lines of a gust of wind, as on a weather map: straight, with a curl at the end."""
    sprite = Sprite(-1.05, -0.6, 1.05, 0.6)
    for left, y, right, size in ((-0.9, 0.04, 0.35, 0.24), (-0.65, -0.22, 0.6, 0.16)):
        way = 1 if y > 0 else -1
        turns = [math.pi * number / 12 for number in range(19)]
        curl = [(right + size * math.sin(turn), y + way * size * (1 - math.cos(turn))) for turn in turns]
        for width, shade in ((0.14, (140, 184, 212, 150)), (0.085, (255, 255, 255, 255))):
            sprite.line([(left, y), (right, y), *curl], shade, width)
    return sprite


@lru_cache(maxsize=2)
def sling_sprite(front: bool) -> Sprite:
    """Paint the slingshot; its front arm is a sprite of its own, as the bird sits between the two."""
    look = load_palette()["sling"]
    base, edge = colour(look.fill), colour(look.edge)
    left, bottom, right, top = SLING_BOX
    sprite = Sprite(left - 0.1, bottom - 0.05, right + 0.15, top + 0.1)
    middle, fork = -0.13, 0.12
    arms = {False: [[(middle, fork), (0.06, 0.45), FORK[1]]], True: [[(middle, fork), (-0.32, 0.45), FORK[0]]]}[front]
    if front:
        arms.append([(middle, bottom), (middle, fork)])
    for width, shade in ((0.17, edge), (0.11, base), (0.035, lighter(base, 0.3))):
        for arm in arms:
            shift = -0.03 if width < 0.1 else 0.0
            sprite.line([(x + shift, y) for x, y in arm], shade, width)
    tip = FORK[0] if front else FORK[1]
    sprite.line([(tip[0] - 0.04, tip[1]), (tip[0] + 0.04, tip[1])], BAND, 0.1)
    return sprite


@lru_cache(maxsize=16)
def chip_sprite(look: str) -> Sprite:
    """Paint a splinter of a material."""
    appearance = load_palette()[look]
    base, edge = colour(appearance.fill), colour(appearance.edge)
    sprite = Sprite(-0.14, -0.08, 0.14, 0.08)
    long = look in ("wood", "novel")
    outline = [(-0.13, -0.02), (0.02, 0.05), (0.13, 0.03), (0.05, -0.05)]
    square = [(-0.08, -0.05), (-0.04, 0.06), (0.07, 0.05), (0.08, -0.06)]
    sprite.polygon(outline if long else square, edge)
    sprite.polygon(_shrink(tuple(outline if long else square), 0.015), lighter(base, 0.15))
    return sprite


@lru_cache(maxsize=16)
def puff_sprite(shade: Colour) -> Sprite:
    """Paint a soft cloud of radius 1, to be pasted faded."""
    import numpy as np

    sprite = Sprite(-1, -1, 1, 1, detail=48)
    x, y = sprite.grid()
    hides = np.clip(1 - np.sqrt(x * x + y * y), 0, 1) ** 1.3 * 255
    colours = np.empty((*x.shape, 4))
    colours[..., :3], colours[..., 3] = shade, hides
    sprite.lay(colours, None)
    return sprite


@lru_cache(maxsize=1)
def dot_sprite() -> Sprite:
    """Paint a white dot of radius 1."""
    sprite = Sprite(-1.2, -1.2, 1.2, 1.2, detail=48)
    sprite.ellipse(0, 0, 1.15, 1.15, (120, 130, 140, 110))
    sprite.ellipse(0, 0, 1.0, 1.0, (255, 255, 255))
    return sprite


def _canvas(shape: Ring) -> Sprite:
    xs, ys = [x for x, _ in shape], [y for _, y in shape]
    longest = max(max(xs) - min(xs), max(ys) - min(ys))
    detail = min(float(DETAIL), MAX_SIDE / (longest + 0.2))
    return Sprite(min(xs) - 0.04, min(ys) - 0.04, max(xs) + 0.04, max(ys) + 0.04, detail)


def _shrink(ring: Ring, by: float) -> Ring:
    """Move the corners of an outline towards its middle, by a distance across and down."""
    if not ring:
        return ()
    xs, ys = [x for x, _ in ring], [y for _, y in ring]
    x, y = (min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2
    half = max(xs) - x, max(ys) - y
    sx, sy = (1 - by / max(side, 2 * abs(by)) for side in half)
    return tuple((x + sx * (px - x), y + sy * (py - y)) for px, py in ring)


def _light(sprite: Sprite, ring: Ring, shade: Colour) -> None:
    """Draw light along the edges that look up and to the left."""
    count = len(ring)
    area = sum(ring[n][0] * ring[(n + 1) % count][1] - ring[(n + 1) % count][0] * ring[n][1] for n in range(count))
    for (ax, ay), (bx, by) in zip(ring, (*ring[1:], ring[0]), strict=True):
        length = math.hypot(bx - ax, by - ay) or 1.0
        out = ((by - ay) / length, -(bx - ax) / length)
        if area < 0:
            out = -out[0], -out[1]
        if out[1] - 0.6 * out[0] > 0.5:
            sprite.line([(ax, ay), (bx, by)], shade, 0.03)
