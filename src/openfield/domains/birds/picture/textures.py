"""Textures of wood, ice, stone and other materials, computed from seeded noise, and the cracks of damaged blocks."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openfield.domains.birds.picture.sprites import Colour, Point, Sprite, darker, lighter

CRACKS = (0, 2, 4, 7)
"""How many cracks a block has in each stage of damage."""
Texture = NDArray[Any]


def paint_texture(sprite: Sprite, look: str, base: Colour) -> Texture:
    """Return the colours of a material for every pixel of a sprite: red, green, blue and how much they hide."""
    rng = np.random.default_rng(sum(look.encode()))
    x, y = sprite.grid()
    if sprite.image.height > sprite.image.width:
        x, y = y, x
    paint = {"wood": _wood, "ice": _ice, "stone": _stone, "platform": _slate}.get(look, _plain)
    shade = paint(x, y, rng)
    colours = np.empty((*shade.shape, 4))
    dark, light = np.array(darker(base, 0.35)), np.array(lighter(base, 0.45))
    middle = np.array(base[:3])
    below, above = np.clip(-shade, 0, 1)[..., None], np.clip(shade, 0, 1)[..., None]
    colours[..., :3] = middle + below * (dark - middle) + above * (light - middle)
    colours[..., 3] = 225 if look == "ice" else 255
    return colours


def draw_cracks(sprite: Sprite, ring: Sequence[Point], stage: int, ink: Colour) -> None:
    """Draw the cracks of a stage of damage across a block; those of an earlier stage stay where they are."""
    rng = random.Random(f"cracks {len(ring)} {ring[0]}")
    xs, ys = [x for x, _ in ring], [y for _, y in ring]
    low, high = (min(xs), min(ys)), (max(xs), max(ys))
    along = int(high[1] - low[1] > high[0] - low[0])  # the longer side: 0 is x, 1 is y
    across = 1 - along
    thick = high[across] - low[across]
    for _ in range(CRACKS[stage - 1]):
        way, deep = rng.choice((-1, 1)), rng.uniform(0.55, 1.0) * thick
        start = low[across] if way > 0 else high[across]
        at, points = rng.uniform(low[along], high[along]), []
        for share in (0.0, 0.3, 0.55, 0.8, 1.0):
            spot = (at, start + way * deep * share)
            points.append((spot[along], spot[across]))
            at += rng.uniform(-0.3, 0.3) * min(thick, 0.5)
        sprite.line(points, ink, 0.018 + 0.006 * stage)


def noise(shape: tuple[int, int], cells: tuple[int, int], rng: np.random.Generator) -> Texture:
    """Return smooth noise from -1 to 1 with a number of cells down and across."""
    grid = rng.uniform(-1, 1, (cells[0] + 2, cells[1] + 2))
    down, across = (np.linspace(0, count, size) for count, size in zip(cells, shape, strict=True))
    row, column = down.astype(int), across.astype(int)
    v, u = (_ease(part)[..., None] for part in (down - row, across - column))
    upper = grid[row][:, column] * (1 - u.T) + grid[row][:, column + 1] * u.T
    lower = grid[row + 1][:, column] * (1 - u.T) + grid[row + 1][:, column + 1] * u.T
    mixed: Texture = upper * (1 - v) + lower * v
    return mixed


def _ease(share: Texture) -> Texture:
    eased: Texture = share * share * (3 - 2 * share)
    return eased


def _cells(x: Texture, y: Texture, across: float, down: float) -> tuple[int, int]:
    return max(1, round(float(np.ptp(y)) * down)), max(1, round(float(np.ptp(x)) * across))


def _wood(x: Texture, y: Texture, rng: np.random.Generator) -> Texture:
    """Return grain along x: waves across, bent by noise."""
    bend = noise(x.shape, _cells(x, y, 1.5, 3.0), rng)
    fine = noise(x.shape, _cells(x, y, 3.0, 40.0), rng)
    rings = np.sin(2 * np.pi * (y * 7 + 0.55 * bend + 0.1 * x))
    grain: Texture = 0.32 * rings + 0.3 * fine
    return grain


def _ice(x: Texture, y: Texture, rng: np.random.Generator) -> Texture:
    """Return light and dark bands that run diagonally, as in a clear block."""
    slant = x + y
    bands: Texture = 0.45 * np.sin(2 * np.pi * slant * 1.3) ** 3 + 0.35 * (np.sin(2 * np.pi * slant * 3.1 + 1) > 0.93)
    return bands + 0.15 * noise(x.shape, _cells(x, y, 6.0, 6.0), rng)


def _stone(x: Texture, y: Texture, rng: np.random.Generator) -> Texture:
    """Return blotches and speckles."""
    blotches = noise(x.shape, _cells(x, y, 4.0, 4.0), rng)
    speckles = noise(x.shape, _cells(x, y, 22.0, 22.0), rng)
    mixed: Texture = 0.35 * blotches + 0.45 * np.where(np.abs(speckles) > 0.45, speckles, 0)
    return mixed


def _slate(x: Texture, y: Texture, rng: np.random.Generator) -> Texture:
    """Return dark plates with light joints."""
    joints = ((x % 0.64) < 0.025) | ((x % 0.64) > 0.62)
    mixed: Texture = 0.25 * noise(x.shape, _cells(x, y, 9.0, 9.0), rng) + 0.3 * joints
    return mixed


def _plain(x: Texture, y: Texture, rng: np.random.Generator) -> Texture:
    """Return faint dots in rows, which no usual material has."""
    dots: Texture = (((x * 8) % 1 - 0.5) ** 2 + ((y * 8) % 1 - 0.5) ** 2 < 0.06) * 0.6
    return dots + 0.1 * noise(x.shape, _cells(x, y, 4.0, 4.0), rng)
