"""The arena: two to four moving enemies, items to take, walls and pillars to hide behind.

This module has its actions, its walls, and how an episode is laid out.
"""

from __future__ import annotations

import functools
import math
import random

import msgspec

from openfield.domains.doom.maps.scenario import AMMO, HEALTH, OBSTACLE, TRAP, MapLayout, Point, Rectangle
from openfield.domains.doom.settings import ArenaSettings
from openfield.errors import InvalidInput, WorldFault

ACTIONS = ("nothing", "left", "right", "forward", "backward", "shoot", "turn_left", "turn_right", "give_up")
EDGE = 512
ROOM = Rectangle(-EDGE, -EDGE, EDGE, EDGE)
SOLIDS = (
    Rectangle(-192, 288, 192, 320),
    Rectangle(-192, -320, 192, -288),
    Rectangle(-320, -192, -288, 192),
    Rectangle(288, -192, 320, 192),
)
"""Four walls around a middle room. Its corners are open, 128 units along each side."""
_SIDES = [msgspec.structs.astuple(solid) for solid in SOLIDS]
GOAL_MARGIN = 100.0
"""The least distance from the goal at which enemies start."""
ONWARD, BACK, LEFT, RIGHT, TURN_LEFT, TURN_RIGHT, SHOOT, REST, GUARD = range(1, 10)
"""The orders to an enemy; 0 is no order."""
MAX_TRIES = 20_000
CHECK_TRIES = 1000
"""If a place is found in so many tries, it is found in every episode in `MAX_TRIES`."""


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
    places = _Places(rng, tries)
    player = places.draw(16, 0)
    if settings.goal is not None:  # enemies that walk to it start outside, and nothing stands in it
        places.taken.append((settings.goal[:2], settings.goal[2] + GOAL_MARGIN))
    enemies = [(places.draw(20, 128, player), rng.randrange(8) * 45) for _ in range(rng.randint(*settings.enemies))]
    spans = ((HEALTH, settings.health_packs), (AMMO, settings.ammo_packs), (TRAP, settings.traps))
    items = [(number, places.draw(20, 40, player)) for number, span in spans for _ in range(rng.randint(*span))]
    items += [(OBSTACLE, places.draw(16, 60, player)) for _ in range(rng.randint(*settings.obstacles))]
    angle, (low, high) = rng.randrange(8) * 45, settings.enemy_damage
    first = REST if settings.behaviour != "random" or settings.sentry_after == 0 else 0
    actor = ("enemy_stride", settings.enemy_stride), ("damage_low", low), ("damage_high", high), ("first_order", first)
    return MapLayout(room=ROOM, solids=SOLIDS, player=(player, angle), enemies=enemies, items=items, actor=actor)


def fits(x: float, y: float, radius: float) -> bool:
    """Check whether a circle fits between the walls at this place."""
    if abs(x) > EDGE - radius or abs(y) > EDGE - radius:
        return False
    for left, bottom, right, top in _SIDES:
        across, along = max(left - x, 0.0, x - right), max(bottom - y, 0.0, y - top)
        if across * across + along * along <= radius * radius:
            return False
    return True


def fits_square(x: float, y: float, half: float) -> bool:
    """Check whether a square of this half width fits: for the engine, things are as wide along both axes."""
    if abs(x) > EDGE - half or abs(y) > EDGE - half:
        return False
    return not any(
        left - half < x < right + half and bottom - half < y < top + half for left, bottom, right, top in _SIDES
    )


class _Places:
    """Draws positions that keep apart."""

    def __init__(self, rng: random.Random, tries: int) -> None:
        self._rng = rng
        self._tries = tries
        self.taken: list[tuple[Point, float]] = []
        """Where nothing more is drawn: a point, and the distance from it."""

    def draw(self, radius: float, apart: float, other: Point = (0.0, 0.0)) -> Point:
        """Draw a free position, at least `apart` from another point."""
        for _ in range(self._tries):
            x, y = round(self._rng.uniform(-EDGE, EDGE), 1), round(self._rng.uniform(-EDGE, EDGE), 1)
            if math.dist((x, y), other) >= apart and fits(x, y, radius + 8) and self._is_free(x, y, radius):
                self.taken.append(((x, y), radius))
                return x, y
        raise WorldFault(f"There is no room left in the arena after {len(self.taken)} things.")

    def _is_free(self, x: float, y: float, radius: float) -> bool:
        for (other_x, other_y), taken in self.taken:
            if math.hypot(x - other_x, y - other_y) <= radius + taken + 8:
                return False
        return True
