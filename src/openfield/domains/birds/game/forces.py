"""Forces that act at a distance: fans, winds, magnets, storms, and upward gravity.

The game applies each of them once per step. The engine divides a force by the mass of the body.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from openfield.domains.birds.game.bodies import Body, BodySet
from openfield.domains.birds.game.level import LevelObject

FAN_FORCE, FAN_REACH, FAN_HEIGHT = 25.0, 2.0, 1.5
WINDS = {"NonNovelAirTurbulence": 1.5, "NovelAirTurbulence": 4.0, "InverseAirTurbulence": -10.0}
"""Upward force of the three winds, which look alike."""
CALM = 0.1
"""World units a second. Winds and storms do not act on slower bodies."""
MAGNET_FORCE, MAGNET_REACH = 15.0, 4.0
STORM_FORCE = 3.0
INVERSE_GRAVITY = 6.0

Force = Callable[[BodySet], None]
"""A function that pushes some bodies of a level for the next step."""


def make_forces(body_set: BodySet) -> list[Force]:
    """Return the forces of a level; upward gravity is set in the engine instead."""
    forces: list[Force] = []
    for placed in body_set.level.objects:
        if placed.type == "Fan":
            forces.append(_fan(placed))
        elif placed.type in WINDS:
            forces.append(_wind(placed))
        elif placed.type == "Storm":
            forces.append(_storm)
        elif placed.type == "InverseGravity":
            body_set.engine_world.gravity = (0, INVERSE_GRAVITY * body_set.level.laws.gravity)
    return forces + [Magnet(body) for body in body_set.bodies if body.kind == "magnet"]


def _fan(placed: LevelObject) -> Force:
    """Return a force that pushes back birds that come near from the left."""
    angle, strength = math.radians(placed.rotation), placed.force or FAN_FORCE
    force = (-strength * math.cos(angle), -strength * math.sin(angle))

    def push(body_set: BodySet) -> None:
        for body in body_set.bodies:
            if body.kind == "bird":
                x, y = body.place
                if 0 <= placed.x - x <= FAN_REACH and abs(y - placed.y) < FAN_HEIGHT:
                    body.physical.ApplyForceToCenter(force, True)

    return push


def _wind(placed: LevelObject) -> Force:
    """Return a force that lifts or presses down everything that moves in a box, except pigs."""
    width, height = 0.32 * abs(placed.scale_x), 0.32 * abs(placed.scale_y)
    left, right, bottom, top = placed.x - width, placed.x + width, placed.y - height, placed.y + height
    force = (0.0, placed.force or WINDS[placed.type])

    def push(body_set: BodySet) -> None:
        for body in body_set.bodies:
            if body.kind in ("bird", "egg", "block", "tnt", "magnet") and _moves(body):
                x, y = body.place
                if left <= x <= right and bottom <= y <= top:
                    body.physical.ApplyForceToCenter(force, True)

    return push


def _storm(body_set: BodySet) -> None:
    """Blow birds and moving blocks to the right once the first bird has been removed."""
    if body_set.birds_removed:
        for body in body_set.bodies:
            if body.kind == "bird" or (body.kind == "block" and _moves(body)):
                body.physical.ApplyForceToCenter((STORM_FORCE, 0), True)


class Magnet:
    """Attracts birds and blocks, but repels wood. It releases a body on contact until that body has left its reach."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self._released: list[Body] = []

    def __call__(self, body_set: BodySet) -> None:
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
            if math.hypot(dx, dy) > MAGNET_REACH:
                self._released = [other for other in self._released if other is not body]
            elif body not in self._released:
                strength = -MAGNET_FORCE if body.material == "wood" else MAGNET_FORCE
                body.physical.ApplyForceToCenter((strength * dx, strength * dy), True)


def _moves(body: Body) -> bool:
    return bool(body.physical.awake and body.speed > CALM)
