"""Paints one picture of a scene: 640 x 480 pixels, from the landscape to the nearest object.

A picture depends only on the scene and the arguments, so the same moment always gives the same pixels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openfield.domains.birds.game.physics import Ring
from openfield.domains.birds.game.scene import Scene, SceneItem, Viewport
from openfield.domains.birds.picture.creatures import bird_sprite, egg_sprite, pig_sprite
from openfield.domains.birds.picture.landscape import draw_landscape
from openfield.domains.birds.picture.objects import (
    BAND,
    FORK,
    block_sprite,
    dot_sprite,
    fan_sprite,
    gust_sprite,
    sling_sprite,
    tnt_sprite,
)
from openfield.domains.birds.picture.particles import Particle
from openfield.domains.birds.picture.sprites import Point, Sprite, load_pillow

if TYPE_CHECKING:
    from PIL.Image import Image

STORM, STORM_SHARE = (90, 90, 100), 0.43
BALL_CORNERS = 40
WIND_STEP = (2.2, 1.25)
"""Units between two gusts of a wind, across and down."""
DOT = 0.055
"""Radius of a dot of a trajectory, in units."""
ORDER = ("platform", "fan", "shape", "rect", "tnt", "pig", "egg", "bird")
"""The parts painted first, which lie behind the others."""


def pixels(scene: Scene, particles: Iterable[Particle] = ()) -> NDArray[np.uint8]:
    """Paint a scene, and return the pixels as an array of rows, from the top."""
    view = scene.view
    picture: Image = draw_landscape(view).copy()
    for item in scene.items:
        if item.rank == "wind":
            _wind(picture, item, view)
    _dots(picture, scene)
    mirrored = scene.sling_place[0] > 0
    for item in sorted(scene.items, key=lambda item: ORDER.index(item.rank) if item.rank in ORDER else -1):
        if item.rank != "wind" and item.turn != 0:
            _item(picture, item, view, mirrored)
    _sling(picture, scene, mirrored)
    for part in particles:
        part.sprite.paste(picture, view.spot(*part.place), view.scale * part.size, part.angle, fade=part.fade)
    if scene.storm:
        veil = load_pillow("Image").new("RGB", picture.size, STORM)
        picture = load_pillow("Image").blend(picture, veil, STORM_SHARE)
    return np.asarray(picture, dtype=np.uint8)


def _item(picture: Image, item: SceneItem, view: Viewport, mirrored: bool) -> None:
    at = view.spot(*item.place)
    like_a_pig = item.look == "pig_dark"  # a novel bird
    if item.rank == "bird" and not like_a_pig:
        centre, (radius, _) = _middle(item.shape)
        sprite = bird_sprite(item.look, radius, centre, item.stage > 1)
        sprite.paste(picture, at, view.scale, item.angle, flip=mirrored)
        return
    shape = _round(item.shape) if _is_ball(item) else item.shape
    sprite = {
        "pig": lambda: pig_sprite(item.look, *reversed(_middle(item.shape)), item.stage),
        "tnt": lambda: tnt_sprite(item.shape, item.stage),
        "fan": lambda: fan_sprite(item.shape),
        "egg": lambda: egg_sprite(*reversed(_middle(item.shape))),
    }.get("pig" if like_a_pig else item.rank, lambda: block_sprite(item.look, shape, item.hollow, item.stage))()
    sprite.paste(picture, at, view.scale, item.angle)


def _is_ball(item: SceneItem) -> bool:
    """Return whether an object is a ball; its contour has a flat base on which it stands until it rolls."""
    return "circle" in item.sprite.lower() or item.sprite.startswith("Magnet")


def _round(shape: Iterable[Point]) -> Ring:
    """Return an ellipse that fills the same box as an outline."""
    (x, y), (across, down) = _middle(shape)
    turns = (math.tau * number / BALL_CORNERS for number in range(BALL_CORNERS))
    return tuple((round(x + across * math.cos(turn), 4), round(y + down * math.sin(turn), 4)) for turn in turns)


def _middle(shape: Iterable[Point]) -> tuple[Point, Point]:
    """Return the middle of an outline, and half its width and height."""
    xs, ys = zip(*shape, strict=True)
    left, right, bottom, top = min(xs), max(xs), min(ys), max(ys)
    return ((left + right) / 2, (bottom + top) / 2), ((right - left) / 2, (top - bottom) / 2)


def _sling(picture: Image, scene: Scene, mirrored: bool) -> None:
    """Paint the slingshot, its band, and between its arms the bird that is ready."""
    view, (x, y) = scene.view, scene.sling_place
    ready = next((item for item in scene.items if item.turn == 0), None)
    at, side = view.spot(x, y), -1 if mirrored else 1
    near, far = [(x + side * dx, y + dy) for dx, dy in FORK]
    sling_sprite(False).paste(picture, at, view.scale, flip=mirrored)
    pouch = None
    if ready is not None:
        centre, (radius, _) = _middle(ready.shape)
        px, py = ready.place[0] + centre[0], ready.place[1] + centre[1]
        away = math.atan2(py - near[1], px - (near[0] + far[0]) / 2)
        stretched = math.hypot(px - (x - 0.15 * side), py - (y + 0.8)) > 0.1
        pouch = (
            (px + 0.9 * radius * math.cos(away), py + 0.9 * radius * math.sin(away)) if stretched else (px, py - 0.05)
        )
        _band(picture, view, far, pouch)
        _item(picture, ready, view, mirrored)
    else:
        _band(picture, view, far, near)
    if pouch is not None:
        _band(picture, view, near, pouch)
    sling_sprite(True).paste(picture, at, view.scale, flip=mirrored)


def _band(picture: Image, view: Viewport, start: Point, end: Point) -> None:
    length = math.dist(start, end)
    if length < 0.01:
        return
    width = max(0.035, 0.085 - 0.02 * length)
    sprite = Sprite(-0.05, -0.06, length + 0.05, 0.06, detail=64)
    sprite.line([(0, 0), (length, 0)], BAND, width)
    sprite.paste(picture, view.spot(*start), view.scale, math.atan2(end[1] - start[1], end[0] - start[0]))


def _dots(picture: Image, scene: Scene) -> None:
    """Paint the path of the last bird: dots of two sizes in turn."""
    for number, place in enumerate(scene.path):
        size = DOT * (1.25 if number % 3 == 0 else 0.85)
        dot_sprite().paste(picture, scene.view.spot(*place), scene.view.scale * size, fade=0.9)


def _wind(picture: Any, item: SceneItem, view: Viewport) -> None:
    """Paint a field of wind as rows of gusts that curl at their ends; the three winds look alike."""
    centre, (across, down) = _middle(item.shape)
    x, y = item.place[0] + centre[0], item.place[1] + centre[1]
    left, top = view.spot(x - across, y + down)
    right, bottom = view.spot(x + across, y - down)
    pen = load_pillow("ImageDraw").Draw(picture, "RGBA")
    pen.rounded_rectangle((left, top, right, bottom), view.scale, fill=(240, 250, 255, 60))
    rows, columns = (max(1, int(2 * half / step)) for half, step in ((down, WIND_STEP[1]), (across, WIND_STEP[0])))
    for row in range(rows):
        for column in range(columns):
            shift = 0.12 * WIND_STEP[0] * (1 if row % 2 else -1)
            at = x + (column + 0.5 - columns / 2) * WIND_STEP[0] + shift, y + (row + 0.5 - rows / 2) * WIND_STEP[1]
            gust_sprite().paste(picture, view.spot(*at), view.scale, fade=0.9)
