"""Feature vectors: make them from game states in the published formats, and read them back.

A novelty of representation changes only these features.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec

from openfield.domains.doom.engine.game_state import ITEMS, Entity, GameState
from openfield.domains.doom.maps.scenario import Wall
from openfield.domains.doom.settings import DoomSettings

Features = dict[str, Any]
Items = dict[str, list[Entity]]
BUCKET_START, BUCKET_SPAN = -512.0, 1023.9


def duel_features(state: GameState, stamp: float, last_enemy: Entity) -> Features:
    """Make the duel's vector with the published keys; `enemies` is an addition for more than one enemy."""
    first = min(state.enemies, key=lambda entity: _distance(entity, state.player), default=None)
    return {
        "time_stamp": stamp,
        "player": _alive(state.player),
        "enemy": _alive(first or last_enemy),
        "projectiles": [_place(entity) for entity in state.bolts],
        "enemies": [_alive(entity) for entity in state.enemies],
    }


def item_features(items: Items) -> Features:
    """Make the features of items; they stay the same unless an item is taken or moved."""
    return {kind: [_turned(entity) for entity in entities] for kind, entities in items.items()}


def arena_features(state: GameState, stamp: float, items: Features) -> Features:
    """Make the arena's vector with the published keys; health and bullets are floats, as the original sends them."""
    player = _turned(state.player)
    player["health"], player["ammo"] = float(state.player.health), float(state.ammo)
    return {
        "enemies": [{**_turned(each), "name": "ZombieMan", "health": each.health} for each in state.enemies],
        # the agent may change its own items
        "items": {kind: [item.copy() for item in found] for kind, found in items.items()},
        "player": player,
        "time_stamp": stamp,
        "image": None,
    }


def first_features(walls: list[Wall], hints: list[dict[str, Any]]) -> Features:
    """Make the features that only the first vector of an arena episode has."""
    rounded = [{key: round(float(value), 2) for key, value in msgspec.structs.asdict(wall).items()} for wall in walls]
    return {"walls": rounded, "hint": hints}


def decode_features(features: Features) -> GameState:
    """Read a feature vector of either task back as a game state."""
    items = features.get("items", {})
    player = features["player"]
    return GameState(
        _read_entity(player),
        float(player.get("ammo", 1.0)),
        [_read_entity(enemy) for enemy in features["enemies"]],
        {kind: [_read_entity(item) for item in items.get(kind, ())] for kind in ITEMS},
        [_read_entity(bolt) for bolt in features.get("projectiles", ())],
    )


def read_walls(features: Features) -> list[Wall]:
    """Read the walls from the first vector of an episode; the duel has none."""
    return [Wall(wall["x1"], wall["x2"], wall["y1"], wall["y2"]) for wall in features.get("walls", ())]


def show_state(state: GameState, settings: DoomSettings) -> GameState:
    """Return the state as it is shown: exactly, through fog, in buckets, or both."""
    if settings.fog:
        state = _changed(state, _in_fog(settings.fog, state.player))
    return _changed(state, _in_buckets(settings.buckets)) if settings.buckets else state


def _changed(state: GameState, change: Callable[[Entity], Entity]) -> GameState:
    return GameState(
        change(state.player),
        state.ammo,
        [change(entity) for entity in state.enemies],
        {kind: [change(entity) for entity in entities] for kind, entities in state.items.items()},
        [change(entity) for entity in state.bolts],
    )


_WHOLE = 1.5 * 2**52
"""Adding and subtracting it rounds a number to a whole one, ties to even."""


def _decimals(value: float) -> float:
    """Return `round(value, 4)` at a fifth of the cost: feature vectors carry four decimals."""
    return (value * 1e4 + _WHOLE - _WHOLE) / 1e4


def _angle(value: float) -> float:
    return _decimals(value) % 360.0


def _place(entity: Entity) -> Features:
    return {
        "id": entity.id,
        "x_position": _decimals(entity.x),
        "y_position": _decimals(entity.y),
        "z_position": _decimals(entity.z),
    }


def _alive(entity: Entity) -> Features:
    return {**_place(entity), "health": entity.health}


def _turned(entity: Entity) -> Features:
    return {"id": entity.id, "angle": _angle(entity.angle), **_place(entity)}


def _distance(entity: Entity, other: Entity) -> float:
    return math.hypot(entity.x - other.x, entity.y - other.y)


def _in_buckets(count: int) -> Any:
    """Return a change that snaps x and y to the nearest of some centres, as the published novelty does."""
    step = BUCKET_SPAN / count

    def snap(value: float) -> float:
        index = min(max(round((value - BUCKET_START) / step), 0), count - 1)
        return round(BUCKET_START + index * step, 4)

    return lambda entity: msgspec.structs.replace(entity, x=snap(entity.x), y=snap(entity.y))


def _in_fog(reach: float, eye: Entity) -> Any:
    """Return a change that moves entities beyond `reach` to that distance, in their direction."""

    def seen(entity: Entity) -> Entity:
        distance = _distance(entity, eye)
        if distance <= reach:
            return entity
        near = reach / distance
        x, y = eye.x + (entity.x - eye.x) * near, eye.y + (entity.y - eye.y) * near
        return msgspec.structs.replace(entity, x=round(x, 4), y=round(y, 4))

    return seen


def _read_entity(entry: dict[str, Any]) -> Entity:
    x, y, z = entry["x_position"], entry["y_position"], entry["z_position"]
    return Entity(entry["id"], x, y, z, entry.get("angle", 0.0), entry.get("health", 0.0))
