"""Contacts between bodies, and the damage and points that follow from them.

A contact belongs to a pair of colliders and begins when they come to touch. A body has one collider or two, whatever
number of convex pieces each has, so that two bodies may have up to four contacts in one encounter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from openfield.domains.birds.game.bodies import Body, BodySet
from openfield.domains.birds.game.physics import MATERIALS, Profile

MIN_POINTS = 10
PLATFORM_MASS = 1.0
"""The mass with which platforms hit; the engine gives bodies that never move none."""
Vector = tuple[float, float]
Touching = dict[tuple[int, int], int]
"""How many pieces of two colliders touch each other, by the numbers of the colliders."""


class Landing(NamedTuple):
    """The surface that a bird lands on."""

    normal: Vector
    friction: float
    bounce: float


class Hit(NamedTuple):
    """A contact that began: both bodies and their velocities before the collision; a body of None is the frame."""

    first: Body | None
    second: Body | None
    first_velocity: Vector
    second_velocity: Vector
    landing: Landing | None = None
    """Given if a bird lands on something that never moves, and the profile has a rule for that."""


class ContactLog:
    """Collects the contacts that begin while it listens.

    It listens only while something moves, because the engine calls Python for every touching pair at every step
    (0.4 ms a step in a tower of 33 blocks). What touches already when it starts to listen does not begin.
    """

    def __init__(self, engine: Any, world: Any, profile: Profile) -> None:
        self.events: list[Hit] = []
        self._world = world
        self._touching: Touching = {}
        self._kept: set[tuple[int, int]] = set()
        self._listener = _make_listener(engine, profile, self.events, self._touching, self._kept)
        self._listening = False

    def listen(self, wanted: bool) -> None:
        """Start or stop listening."""
        if wanted is not self._listening:
            self._touching.clear()
            if wanted:
                self._count_touching()
            self._world.contactListener = self._listener if wanted else None
            self._listening = wanted

    def take(self) -> list[Hit]:
        """Return and forget the collected contacts."""
        hits = self.events[:]
        self.events.clear()
        return hits

    def keep(self, body: Body) -> None:
        """Let the contacts of a body go on although its collider is about to be replaced; `release` ends this."""
        colliders = {fixture.userData for fixture in body.physical.fixtures}
        self._kept |= {pair for pair in self._touching if not colliders.isdisjoint(pair)}

    def release(self) -> None:
        """Forget the kept contacts; call it after the step in which the new colliders come to touch."""
        self._kept.clear()

    def _count_touching(self) -> None:
        for contact in self._world.contacts:
            if contact.touching:
                pair = _pair(contact)
                self._touching[pair] = self._touching.get(pair, 0) + 1


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
        for hit in hits:
            if hit.landing is not None:
                _land(hit, hit.landing)
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
        if bird is not None and not body.gone:
            self._score_hit(body, damage)

    def _score_hit(self, body: Body, damage: float) -> None:
        """Score the hit of a bird that the body has survived."""
        profile = self._bodies.profile
        worth = profile.pig_points if body.kind == "pig" else profile.block_points
        points = worth * round(profile.hit_factor * damage)
        if points > MIN_POINTS and not (profile.points_before_end and body.life - damage <= 0):
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
        speed = math.hypot(ux - wx, uy - wy)
        rolled_over = other is not None and other.rolls
        if body.kind == "pig" and speed < profile.pig_safe_speed and not rolled_over:
            return 0.0
        by_bird = other is not None and other.kind == "bird" and body.kind in ("block", "magnet")
        multiplier = profile.bird(other.type).damage[MATERIALS.index(body.material)] if other and by_bird else 1.0
        if not profile.damage_by_mass:
            return speed * multiplier
        if other is not None and by_bird:
            mass, share = float(other.physical.mass), multiplier
        else:
            mass, share = _attacking_mass(body, other, hit), 0.5
        return max(0.0, speed * mass * share * profile.damage_by_mass - body.defence)


def _attacking_mass(body: Body, other: Body | None, hit: Hit) -> float:
    """Return the mass of the attacker: the other body if both still approach each other after the step, else its own.

    They approach if the other one's velocity is the greater of the two, along its velocity relative to the body before
    the step. The ground and the sling have no mass: what hits them hurts itself.
    """
    own = float(body.physical.mass)
    if other is None:
        return own
    before, others_before = hit.first_velocity, hit.second_velocity
    if body is not hit.first:
        before, others_before = others_before, before
    x, y = others_before[0] - before[0], others_before[1] - before[1]
    after, others_after = body.physical.linearVelocity, other.physical.linearVelocity
    if others_after.x * x + others_after.y * y <= after.x * x + after.y * y:
        return own
    return float(other.physical.mass) if other.moves else PLATFORM_MASS


def _pair(contact: Any) -> tuple[int, int]:
    """Return the numbers of the two colliders, the lower one first."""
    first, second = contact.fixtureA.userData, contact.fixtureB.userData
    return (first, second) if first < second else (second, first)


def _land(hit: Hit, landing: Landing) -> None:
    """Take from a bird what friction takes from a body that does not turn, and as much of its spin."""
    first_lands = hit.first is not None and hit.first.kind == "bird"
    bird, before = (hit.first, hit.first_velocity) if first_lands else (hit.second, hit.second_velocity)
    if bird is None or bird.gone:
        return
    physical, (nx, ny) = bird.physical, landing.normal
    down, along = abs(before[0] * nx + before[1] * ny), before[1] * nx - before[0] * ny
    left = max(0.0, abs(along) - landing.friction * (1 + landing.bounce) * down)
    after = physical.linearVelocity
    kept = after.y * nx - after.x * ny
    if abs(kept) > left:
        share = left / abs(kept)
        lost = kept * (1 - share)
        physical.linearVelocity = (after.x + lost * ny, after.y - lost * nx)
        physical.angularVelocity *= share


def _hit(contact: Any, profile: Profile) -> Hit:
    """Return a contact that begins; where birds take part, its bounce and what the landing needs."""
    first, second = contact.fixtureA.body, contact.fixtureB.body
    u, w = first.linearVelocity, second.linearVelocity
    bodies = first.userData, second.userData
    landing = None
    if any(body is not None and body.kind == "bird" for body in bodies):
        fixed = any(body is None or not body.moves for body in bodies)
        if not fixed and profile.mixed_bounce:
            contact.restitution = (contact.fixtureA.restitution + contact.fixtureB.restitution) / 2
        elif fixed and profile.landing_slope:
            manifold = contact.worldManifold  # its normal does not outlive it
            normal = manifold.normal.x, manifold.normal.y
            lands_second = bodies[1] is not None and bodies[1].kind == "bird"
            upwards = normal[1] if lands_second else -normal[1]
            if upwards > math.cos(math.radians(profile.landing_slope)):
                landing = Landing(normal, contact.friction, contact.restitution)
    return Hit(*bodies, (u.x, u.y), (w.x, w.y), landing)


def _make_listener(
    engine: Any, profile: Profile, events: list[Hit], touching: Touching, kept: set[tuple[int, int]]
) -> Any:
    class Listener(engine.b2ContactListener):  # type: ignore[misc]
        def BeginContact(self, contact: Any) -> None:  # noqa: N802 - the engine's name
            pair = _pair(contact)
            count = touching.get(pair, 0)
            touching[pair] = count + 1
            if not count and pair not in kept:
                events.append(_hit(contact, profile))

        def EndContact(self, contact: Any) -> None:  # noqa: N802 - the engine's name
            pair = _pair(contact)
            if touching.get(pair, 0) > 1:
                touching[pair] -= 1
            else:
                touching.pop(pair, None)

        def _ignore(self, *_: Any) -> None:
            """Do nothing; the engine's own empty methods cost a second call through the bindings."""

        PreSolve = PostSolve = _ignore

    return Listener()
