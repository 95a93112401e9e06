"""Forces that act at a distance: fans, winds, magnets, storms, and upward gravity.

The game applies each of them once per step. The engine divides a force by the mass of the body.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

from openfield.domains.birds.game.bodies import Body
from openfield.domains.birds.game.body_set import BodySet
from openfield.domains.birds.game.level import LevelObject

FAN_FORCE, FAN_REACH, FAN_HEIGHT = 25.0, 2.0, 1.5
WINDS = {"NonNovelAirTurbulence": 1.5, "NovelAirTurbulence": 4.0, "InverseAirTurbulence": -10.0}
"""Upward force of the three winds, which look alike."""
CALM = 0.1
"""World units a second. Winds and storms do not act on slower bodies."""
MAGNET_FORCE, MAGNET_REACH = 15.0, 4.0
STORM_FORCE = 3.0
INVERSE_GRAVITY = 6.0


class ForceField(Protocol):
    """A force on some bodies of a level."""

    def push(self, body_set: BodySet) -> None:
        """Apply the force for the next step."""
        ...


def make_force_fields(body_set: BodySet) -> list[ForceField]:
    """Return the forces of a level; upward gravity is set in the engine instead."""
    fields: list[ForceField] = []
    for placed in body_set.level.objects:
        if placed.type == "Fan":
            fields.append(Fan(placed))
        elif placed.type in WINDS:
            fields.append(Wind(placed))
        elif placed.type == "Storm":
            fields.append(Storm())
        elif placed.type == "InverseGravity":
            body_set.engine_world.gravity = (0, INVERSE_GRAVITY)
    return fields + [Magnet(body) for body in body_set.bodies if body.kind == "magnet"]


class Fan:
    """Pushes back birds that come near from the left."""

    def __init__(self, placed: LevelObject) -> None:
        self._x, self._y = placed.x, placed.y
        angle, strength = math.radians(placed.rotation), placed.force or FAN_FORCE
        self._force = (-strength * math.cos(angle), -strength * math.sin(angle))

    def push(self, body_set: BodySet) -> None:
        """Push the birds in front of the fan."""
        for body in body_set.bodies:
            if body.kind == "bird":
                x, y = body.place
                if 0 <= self._x - x <= FAN_REACH and abs(y - self._y) < FAN_HEIGHT:
                    body.physical.ApplyForceToCenter(self._force, True)


class Wind:
    """Lifts or presses down everything that moves in a box, except pigs."""

    def __init__(self, placed: LevelObject) -> None:
        width, height = 0.32 * abs(placed.scale_x), 0.32 * abs(placed.scale_y)
        self._left, self._right = placed.x - width, placed.x + width
        self._bottom, self._top = placed.y - height, placed.y + height
        self._force = (0.0, placed.force or WINDS[placed.type])

    def push(self, body_set: BodySet) -> None:
        """Push the moving bodies in the box."""
        for body in _movers(body_set, ("bird", "egg", "block", "tnt", "magnet")):
            x, y = body.place
            if self._left <= x <= self._right and self._bottom <= y <= self._top:
                body.physical.ApplyForceToCenter(self._force, True)


class Magnet:
    """Attracts birds and blocks, but repels wood. It releases a body on contact until that body has left its reach."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self._released: list[Body] = []

    def push(self, body_set: BodySet) -> None:
        """Attract and repel the bodies in reach."""
        if self._body.gone:
            return
        x, y = self._body.place
        touching = [edge.other.userData for edge in self._body.physical.contacts if edge.contact.touching]
        self._released += [body for body in touching if body is not None and body not in self._released]
        for body in body_set.bodies:
            if body.kind not in ("bird", "block"):
                continue
            dx, dy = x - body.place[0], y - body.place[1]
            if self._holds(body, math.hypot(dx, dy)):
                strength = -MAGNET_FORCE if body.material == "wood" else MAGNET_FORCE
                body.physical.ApplyForceToCenter((strength * dx, strength * dy), True)

    def _holds(self, body: Body, distance: float) -> bool:
        if distance > MAGNET_REACH:
            self._released = [other for other in self._released if other is not body]
            return False
        return body not in self._released


class Storm:
    """Blows to the right once the first bird has been removed."""

    def push(self, body_set: BodySet) -> None:
        """Push birds and moving blocks."""
        if not body_set.birds_removed:
            return
        for body in body_set.bodies:
            if body.kind == "bird" or (body.kind == "block" and _moves(body.physical)):
                body.physical.ApplyForceToCenter((STORM_FORCE, 0), True)


def _movers(body_set: BodySet, kinds: tuple[str, ...]) -> list[Body]:
    return [body for body in body_set.bodies if body.kind in kinds and _moves(body.physical)]


def _moves(physical: Any) -> bool:
    if not physical.awake:
        return False
    velocity = physical.linearVelocity
    return bool(math.hypot(velocity.x, velocity.y) > CALM)
