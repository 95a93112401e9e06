"""Feature vectors: what a scene looks like to an agent, in the published formats and as arrays.

Between scenes and turns. A novelty of representation changes what is shown here and nothing else.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from openfield.domains.doom.reader import Seen
from openfield.domains.doom.scenario import Wall
from openfield.domains.doom.scene import ITEMS, Body, Scene
from openfield.domains.doom.settings import DoomSettings

Features = dict[str, Any]
Items = dict[str, list[Body]]
MOST_ENEMIES = 4
MOST_ITEMS = 8
"""Of a kind in an array; further ones are left out."""
_HEAD = 6 + MOST_ENEMIES * 5
ARRAY_SIZES = {"duel": 5 + MOST_ENEMIES * 5 + MOST_ENEMIES * 4, "arena": _HEAD + 4 * MOST_ITEMS * 3}
SQUARE = 128.0
"""Side of the squares in which measures that count see positions: eight along an arena of 1,024 units."""
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


def duel_array(seen: Seen, remaining: float) -> np.ndarray[Any, Any]:
    """The duel's scene as numbers: time left, player, up to four enemies and projectiles, zeros for absent ones."""
    look, (player, enemies, bolts) = seen.look, seen.cast
    values = [remaining, look[player.x], look[player.y], look[player.z], look[0]]
    for x, y, z, _, roll, _, _ in enemies[:MOST_ENEMIES]:
        values += (1.0, look[x], look[y], look[z], (look[roll] + 0.5) // 1)
    values += [0.0] * (5 * (MOST_ENEMIES - min(len(enemies), MOST_ENEMIES)))
    for x, y, z, *_ in bolts[:MOST_ENEMIES]:
        values += (1.0, look[x], look[y], look[z])
    array = np.zeros(ARRAY_SIZES["duel"], np.float32)
    _packing(len(values))(array, 0, *values)
    return array


def item_array(items: Items) -> np.ndarray[Any, Any]:
    """An arena array in which only the items are filled in: up to eight of each kind."""
    array = np.zeros(ARRAY_SIZES["arena"], np.float32)
    for number, kind in enumerate(ITEMS):
        place = _HEAD + 3 * MOST_ITEMS * number
        for body in items[kind][:MOST_ITEMS]:
            array[place : place + 3] = (1.0, body.x, body.y)
            place += 3
    return array


def arena_array(seen: Seen, remaining: float, items: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The arena's scene as numbers: time left, player, up to four enemies, then the items."""
    look, (player, enemies, _) = seen.look, seen.cast
    values = [remaining, look[player.x], look[player.y], look[player.angle], look[0], look[1]]
    for x, y, _, angle, roll, _, _ in enemies[:MOST_ENEMIES]:
        values += (1.0, look[x], look[y], look[angle], (look[roll] + 0.5) // 1)
    array = items.copy()
    _packing(len(values))(array, 0, *values)
    return array


def coarse_features(observation: Features) -> tuple[Any, ...]:
    """Squares, eighths of a turn and quarters of health of player and enemies, and the number of projectiles.

    Exact places and the time stamp never occur twice, and what never occurs twice cannot be counted.
    """
    enemies = sorted(_coarse(body) for body in observation["enemies"])
    return _coarse(observation["player"]), tuple(enemies), len(observation.get("projectiles", ()))


def coarse_array(observation: Sequence[float], task: str) -> tuple[Any, ...]:
    """The same of a scene as numbers; duellists do not turn, and the arena has no projectiles."""
    values = [float(value) for value in observation]
    duel = task == "duel"
    start = 5 if duel else 6
    bodies = [values[at + 1 : at + 5] for at in range(start, start + 5 * MOST_ENEMIES, 5) if values[at]]
    bolts = values[start + 5 * MOST_ENEMIES :: 4] if duel else []
    player, *enemies = (
        _coarse_place(x, y, 0.0 if duel else third, health) for x, y, third, health in (values[1:5], *bodies)
    )
    return player, tuple(sorted(enemies)), sum(map(bool, bolts))


def _coarse(body: Features) -> tuple[int, ...]:
    return _coarse_place(body["x_position"], body["y_position"], body.get("angle", 0.0), body["health"])


def _coarse_place(x: float, y: float, angle: float, health: float) -> tuple[int, ...]:
    return int(x // SQUARE), int(y // SQUARE), round(angle / 45) % 8, math.ceil(health / 25)


_WHOLE = 1.5 * 2**52
"""Added and taken away again, it leaves a number rounded to a whole one, ties to even."""


def _decimals(value: float) -> float:
    """What `round(value, 4)` gives, at a fifth of the cost: as many decimals as feature vectors carry."""
    return (value * 1e4 + _WHOLE - _WHOLE) / 1e4


def _angle(value: float) -> float:
    return _decimals(value) % 360.0


@functools.cache
def _packing(count: int) -> Callable[..., None]:
    """Writes so many values into an array; an assignment would make another array of them first."""
    return struct.Struct(f"{count}f").pack_into


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
