"""Feature vectors: what a scene looks like to an agent, in the published formats.

Between scenes and turns. A novelty of representation changes what is shown here and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec

from openfield.domains.doom.engine.scene import Body, Scene
from openfield.domains.doom.maps.scenario import Wall
from openfield.domains.doom.settings import DoomSettings

Features = dict[str, Any]
Items = dict[str, list[Body]]
BUCKET_START, BUCKET_SPAN = -512.0, 1023.9


def duel_features(scene: Scene, stamp: float, last_enemy: Body) -> Features:
    """The duel's vector, key for key as published; `enemies` is an addition for those who meet more than one."""
    enemies = [_alive(body) for body in scene.enemies]
    first = min(scene.enemies, key=lambda body: _distance(body, scene.player), default=None)
    return {
        "time_stamp": stamp,
        "player": _alive(scene.player),
        "enemy": _alive(first or last_enemy),
        "projectiles": [_place(body) for body in scene.bolts],
        "enemies": enemies,
    }


def item_features(items: Items) -> Features:
    """What lies about; the same from tick to tick unless something is taken or moved."""
    return {kind: [_turned(body) for body in bodies] for kind, bodies in items.items()}


def arena_features(scene: Scene, stamp: float, items: Features) -> Features:
    """The arena's vector, key for key as published; health and bullets are whole numbers, unlike the duel's."""
    player = scene.player
    return {
        "enemies": [
            {
                "id": body.id,
                "angle": _angle(body.angle),
                "x_position": _decimals(body.x),
                "y_position": _decimals(body.y),
                "z_position": _decimals(body.z),
                "name": "ZombieMan",
                "health": int(body.health),
            }
            for body in scene.enemies
        ],
        "items": {
            kind: [item.copy() for item in found] for kind, found in items.items()
        },  # the agent may change its own
        "player": {**_turned(player), "health": int(player.health), "ammo": int(scene.ammo)},
        "time_stamp": stamp,
        "image": None,
    }


def first_features(walls: list[Wall], hints: list[dict[str, Any]]) -> Features:
    """What only the first vector of an arena episode has."""
    rounded = [{key: round(float(value), 2) for key, value in msgspec.structs.asdict(wall).items()} for wall in walls]
    return {"walls": rounded, "hint": hints}


def shown(scene: Scene, settings: DoomSettings) -> Scene:
    """The scene as it is seen: exactly, through fog, in buckets, or both."""
    if settings.fog:
        scene = _changed(scene, _in_fog(settings.fog, scene.player))
    return _changed(scene, _in_buckets(settings.buckets)) if settings.buckets else scene


def _changed(scene: Scene, change: Callable[[Body], Body]) -> Scene:
    return Scene(
        change(scene.player),
        scene.ammo,
        [change(body) for body in scene.enemies],
        {kind: [change(body) for body in bodies] for kind, bodies in scene.items.items()},
        [change(body) for body in scene.bolts],
    )


_WHOLE = 1.5 * 2**52
"""Added and taken away again, it leaves a number rounded to a whole one, ties to even."""


def _decimals(value: float) -> float:
    """What `round(value, 4)` gives, at a fifth of the cost: as many decimals as feature vectors carry."""
    return (value * 1e4 + _WHOLE - _WHOLE) / 1e4


def _angle(value: float) -> float:
    return _decimals(value) % 360.0


def _place(body: Body) -> Features:
    return {
        "id": body.id,
        "x_position": _decimals(body.x),
        "y_position": _decimals(body.y),
        "z_position": _decimals(body.z),
    }


def _alive(body: Body) -> Features:
    return {**_place(body), "health": body.health}


def _turned(body: Body) -> Features:
    return {
        "id": body.id,
        "angle": _angle(body.angle),
        "x_position": _decimals(body.x),
        "y_position": _decimals(body.y),
        "z_position": _decimals(body.z),
    }


def _distance(body: Body, other: Body) -> float:
    return math.hypot(body.x - other.x, body.y - other.y)


def _in_buckets(count: int) -> Any:
    """Snaps x and y to the nearest of so many centres, as the published novelty does."""
    step = BUCKET_SPAN / count

    def snap(value: float) -> float:
        index = min(max(round((value - BUCKET_START) / step), 0), count - 1)
        return round(BUCKET_START + index * step, 4)

    return lambda body: msgspec.structs.replace(body, x=snap(body.x), y=snap(body.y))


def _in_fog(reach: float, eye: Body) -> Any:
    """Moves what is farther away than the eye reaches to the edge of the fog, in its direction."""

    def seen(body: Body) -> Body:
        distance = _distance(body, eye)
        if distance <= reach:
            return body
        near = reach / distance
        x, y = eye.x + (body.x - eye.x) * near, eye.y + (body.y - eye.y) * near
        return msgspec.structs.replace(body, x=round(x, 4), y=round(y, 4))

    return seen
