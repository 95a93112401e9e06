"""The arena: two to four moving enemies, items to take, walls and pillars to hide behind.

This module has its actions, its two maps, and how an episode is laid out.
"""

from __future__ import annotations

import functools
import math
import random

import msgspec

from openfield.domains.doom.maps.scenario import (
    AMMO,
    HEALTH,
    OBSTACLE,
    TRAP,
    MapLayout,
    Outline,
    Point,
    Rectangle,
    Wall,
)
from openfield.domains.doom.settings import ArenaSettings
from openfield.errors import InvalidInput, WorldFault

ACTIONS = ("nothing", "left", "right", "forward", "backward", "shoot", "turn_left", "turn_right", "give_up")
EDGE = 512
PLAYER_ANGLE, ENEMY_ANGLE = 90, 0
"""Where everybody looks at the start, in degrees, as in the original."""
ENEMY_FIELDS = ("enemy_stride", "enemy_health", "enemy_radius")
"""The settings that make the enemy's actor, beside its damage."""
GOAL_MARGIN = 100.0
"""The least distance from the goal at which enemies start."""
ONWARD, BACK, LEFT, RIGHT, TURN_LEFT, TURN_RIGHT, SHOOT, REST, GUARD = range(1, 10)
"""The orders to an enemy; 0 means no order."""
MAX_TRIES = 20_000
CHECK_TRIES = 1000
"""If a place is found in this number of tries, it is found in every episode in `MAX_TRIES`."""


class ArenaMap(msgspec.Struct, frozen=True):
    """The walls of an arena, which are the same in every episode."""

    room: Rectangle | Outline
    closed: tuple[Rectangle, ...]
    """Where nobody can be, within the square of the arena."""
    islands: bool
    """Whether the closed places stand free in the room, with walls of their own."""
    doors: tuple[Point, ...] = ()
    """Places from which things keep away at the start, so that none blocks a way."""

    @property
    def solids(self) -> tuple[Rectangle, ...]:
        """The closed places that have walls of their own."""
        return self.closed if self.islands else ()

    def walls(self) -> list[Wall]:
        """Return all walls."""
        return [wall for part in (self.room, *self.solids) for wall in part.walls()]

    def fits(self, x: float, y: float, radius: float) -> bool:
        """Check whether a circle fits between the walls at this place."""
        if abs(x) > EDGE - radius or abs(y) > EDGE - radius:
            return False
        for solid in self.closed:
            across, along = max(solid.left - x, 0.0, x - solid.right), max(solid.bottom - y, 0.0, y - solid.top)
            if across * across + along * along <= radius * radius:
                return False
        return True

    def fits_square(self, x: float, y: float, half: float) -> bool:
        """Check whether a square of this half width fits: for the engine, things are as wide along both axes."""
        if abs(x) > EDGE - half or abs(y) > EDGE - half:
            return False
        return not any(
            solid.left - half < x < solid.right + half and solid.bottom - half < y < solid.top + half
            for solid in self.closed
        )


def _make_own() -> ArenaMap:
    """Make our own map: four walls around a middle room, whose corners are open, 128 units along each side."""
    walls = (
        Rectangle(-192, 288, 192, 320),
        Rectangle(-192, -320, 192, -288),
        Rectangle(-320, -192, -288, 192),
        Rectangle(288, -192, 320, 192),
    )
    return ArenaMap(Rectangle(-EDGE, -EDGE, EDGE, EDGE), walls, islands=True)


def _make_published() -> ArenaMap:
    """Make the published map: a middle room, and a doorway in each of its sides that leads to an outer room."""
    door, inner, outer = 64, 320, 384
    north = [(-inner, inner), (-door, inner), (-door, outer), (-inner, outer), (-inner, EDGE)]
    side = [*north, *((-x, y) for x, y in reversed(north[1:]))]
    corners = [_turned(at, turns) for turns in range(4) for at in side]
    shut = (
        Rectangle(inner, inner, EDGE, EDGE),
        Rectangle(door, inner, inner, outer),
        Rectangle(inner, door, outer, inner),
    )
    closed = tuple(_turned_rectangle(each, turns) for turns in range(4) for each in shut)
    middle = (inner + outer) / 2
    doors = ((0.0, 0.0), *(_turned((0.0, middle), turns) for turns in range(4)))
    return ArenaMap(Outline(tuple(corners)), closed, islands=False, doors=doors)


def _turned(at: Point, turns: int) -> Point:
    """Turn a point around the centre by right angles, clockwise."""
    x, y = at
    for _ in range(turns):
        x, y = y, -x
    return x, y


def _turned_rectangle(solid: Rectangle, turns: int) -> Rectangle:
    ends = [_turned(at, turns) for at in ((solid.left, solid.bottom), (solid.right, solid.top))]
    (left, right), (bottom, top) = (sorted(part) for part in zip(*ends, strict=True))
    return Rectangle(left, bottom, right, top)


MAPS = {"own": _make_own(), "published": _make_published()}
"""The maps by their names in the settings."""
DOOR_DISTANCE, ENEMY_DISTANCE, PILLAR_DISTANCE = 100.0, 100.0, 200.0
"""On the published map: how far things are from doors and enemies at the start, and pillars from each other."""


@functools.cache
def check_room(settings: ArenaSettings) -> None:
    """Refuse settings with too many things for the arena, or with too large a goal, which they must avoid."""
    spans = ("enemies", "health_packs", "ammo_packs", "traps", "obstacles")
    most = {name: (getattr(settings, name)[1],) * 2 for name in spans}
    try:
        lay_out(msgspec.structs.replace(settings, **most), random.Random(0), CHECK_TRIES)
    except WorldFault:
        counts = ", ".join(f"{name} {most[name][0]}" for name in spans)
        raise InvalidInput(f"There is no room in the arena for {counts} outside of goal {settings.goal}.") from None


def lay_out(settings: ArenaSettings, rng: random.Random, tries: int = MAX_TRIES) -> MapLayout:
    """Draw where everything is at the start of an episode."""
    arena = MAPS[settings.map]
    places = _Places(arena, rng, tries)
    player = places.draw(16, 0)
    if settings.goal is not None:  # enemies that walk to it start outside, and nothing stands in it
        places.taken.append((settings.goal[:2], settings.goal[2] + GOAL_MARGIN))
    enemies = [(places.draw(20, 128, player), ENEMY_ANGLE) for _ in range(rng.randint(*settings.enemies))]
    if arena.doors:
        places.kept += [(at, DOOR_DISTANCE) for at in arena.doors]
        places.kept += [(at, ENEMY_DISTANCE) for at, _ in enemies]
    spans = ((HEALTH, settings.health_packs), (AMMO, settings.ammo_packs), (TRAP, settings.traps))
    items = [(number, places.draw(20, 40, player)) for number, span in spans for _ in range(rng.randint(*span))]
    for _ in range(rng.randint(*settings.obstacles)):
        items.append((OBSTACLE, at := places.draw(16, 60, player)))
        places.kept += [(at, PILLAR_DISTANCE)] if arena.doors else []
    low, high = settings.enemy_damage
    first = REST if settings.behaviour != "random" or settings.sentry_after == 0 else 0
    actor = {name: getattr(settings, name) for name in ENEMY_FIELDS}
    actor |= {"damage_low": low, "damage_high": high, "first_order": first}
    actor["misses"] = round(256 * (1 - settings.enemy_aim))  # the engine draws one of 256
    return MapLayout(
        room=arena.room,
        solids=arena.solids,
        player=(player, PLAYER_ANGLE),
        enemies=enemies,
        items=items,
        actor=tuple(actor.items()),
    )


class _Places:
    """Draws positions that keep apart."""

    def __init__(self, arena: ArenaMap, rng: random.Random, tries: int) -> None:
        self._arena = arena
        self._rng = rng
        self._tries = tries
        self.kept: list[tuple[Point, float]] = []
        """Points that the centres of further things are at least this far from."""
        self.taken: list[tuple[Point, float]] = []
        """Where nothing more is drawn: a point, and the distance from it."""

    def draw(self, radius: float, apart: float, other: Point = (0.0, 0.0)) -> Point:
        """Draw a free position, at least `apart` from another point."""
        for _ in range(self._tries):
            x, y = round(self._rng.uniform(-EDGE, EDGE), 1), round(self._rng.uniform(-EDGE, EDGE), 1)
            apart_enough = math.dist((x, y), other) >= apart
            if apart_enough and self._arena.fits(x, y, radius + 8) and self._is_free(x, y, radius):
                self.taken.append(((x, y), radius))
                return x, y
        raise WorldFault(f"There is no room left in the arena after {len(self.taken)} things.")

    def _is_free(self, x: float, y: float, radius: float) -> bool:
        for (other_x, other_y), taken in self.taken:
            if math.hypot(x - other_x, y - other_y) <= radius + taken + 8:
                return False
        return all(math.dist((x, y), at) >= least for at, least in self.kept)
