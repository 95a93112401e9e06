"""Contacts between bodies, and the damage and points that follow from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from openfield.domains.birds.game.bodies import Body, BodySet
from openfield.domains.birds.game.physics import MATERIALS

MIN_POINTS = 10


class Hit(NamedTuple):
    """A contact that began: both bodies and their velocities before the collision; a body of None is the frame."""

    first: Body | None
    second: Body | None
    first_velocity: tuple[float, float]
    second_velocity: tuple[float, float]


class ContactLog:
    """Collects the contacts that begin while it listens.

    It listens only while something moves, because the engine calls Python for every touching pair at every step
    (0.4 ms a step in a tower of 33 blocks).
    """

    def __init__(self, engine: Any, world: Any) -> None:
        self.events: list[Hit] = []
        self._world = world
        self._listener = _make_listener(engine, self.events)
        self._listening = False

    def listen(self, wanted: bool) -> None:
        """Start or stop listening."""
        if wanted is not self._listening:
            self._world.contactListener = self._listener if wanted else None
            self._listening = wanted

    def take(self) -> list[Hit]:
        """Return and forget the collected contacts, each pair of bodies once.

        A hollow block has several pieces. Its first contact counts; before a later one the engine has already slowed
        the bodies down.
        """
        hits: dict[tuple[int, int], Hit] = {}
        for hit in self.events:
            hits.setdefault((id(hit.first), id(hit.second)), hit)
        self.events.clear()
        return list(hits.values())


class Damage:
    """Applies the damage rules of a profile to contacts."""

    def __init__(self, bodies: BodySet, touch: Callable[[Body], None]) -> None:
        """Take the bodies of a level, and a function to call when a bird touches something."""
        self._bodies, self._touch = bodies, touch

    def resolve(self, hits: list[Hit]) -> None:
        """Apply the contacts of one step; a body that is destroyed in this step still hurts the others."""
        taken = [
            (body, other, self._damage(body, other, hit))
            for hit in hits
            for body, other in ((hit.first, hit.second), (hit.second, hit.first))
            if body is not None
        ]
        for body, other, damage in taken:
            if not body.gone:
                self._take(body, other, damage)

    def _take(self, body: Body, other: Body | None, damage: float) -> None:
        bodies = self._bodies
        if body.kind == "bird":
            self._touch(body)
        elif body.kind == "egg":
            bodies.explode(body.place, bodies.profile.blasts["egg"])
            bodies.remove(body)
        elif body.life < math.inf and bodies.seconds >= bodies.profile.immortal_seconds:
            self._strike(body, other, damage)

    def _strike(self, body: Body, other: Body | None, damage: float) -> None:
        bird = other if other is not None and other.kind == "bird" else None
        if body.birds:
            if bird is not None:
                self._count_bird(body, bird)
        elif damage > 0:
            self._bodies.hurt(body, damage)
        points = 10 * round(self._bodies.profile.hit_factor * damage) if bird is not None else 0
        if not body.gone and points > MIN_POINTS:
            self._bodies.score += points

    def _count_bird(self, pig: Body, bird: Body) -> None:
        """Count the different birds that have hit a pig, and destroy it after enough of them."""
        if bird.id not in pig.hits:
            pig.hits.append(bird.id)
            pig.life = pig.full * (1 - len(pig.hits) / pig.birds)
        if len(pig.hits) >= pig.birds:
            self._bodies.destroy(pig)

    def _damage(self, body: Body, other: Body | None, hit: Hit) -> float:
        if body.life == math.inf:
            return 0.0
        profile = self._bodies.profile
        (ux, uy), (wx, wy) = hit.first_velocity, hit.second_velocity
        rx, ry = ux - wx, uy - wy
        # without a bird, the attacker is the body whose velocity contributes more to the relative velocity
        attacker = hit.first if abs(ux * rx + uy * ry) >= abs(wx * rx + wy * ry) else hit.second
        multiplier, share = 1.0, 0.5
        if other is not None and other.kind == "bird" and body.kind in ("block", "magnet"):
            multiplier = profile.bird(other.type).damage[MATERIALS.index(body.material)]
            attacker, share = other, multiplier
        speed = math.hypot(rx, ry)
        if not profile.damage_by_mass:
            return speed * multiplier
        mass = float((attacker or body).physical.mass)
        return max(0.0, speed * mass * share * profile.damage_by_mass - body.defence)


def _make_listener(engine: Any, events: list[Hit]) -> Any:
    class Listener(engine.b2ContactListener):  # type: ignore[misc]
        def BeginContact(self, contact: Any) -> None:  # noqa: N802 - the engine's name
            first, second = contact.fixtureA.body, contact.fixtureB.body
            u, w = first.linearVelocity, second.linearVelocity
            events.append(Hit(first.userData, second.userData, (u.x, u.y), (w.x, w.y)))

        def _ignore(self, *_: Any) -> None:
            """Do nothing; the engine's own empty methods cost a second call through the bindings."""

        EndContact = PreSolve = PostSolve = _ignore

    return Listener()
