"""The bodies of a level: add, damage, explode and remove them, and keep the score."""

from __future__ import annotations

import math
from typing import Any

from openfield.domains.birds.game.bodies import Body, BodyBuilder, load_engine
from openfield.domains.birds.game.level import Level, ProfileName
from openfield.domains.birds.game.physics import SECOND, STEP, Blast, Profile, load_profile

MIN_BLAST_DISTANCE = 0.05
"""World units. A body nearer to an explosion is treated as if it were this far away."""


class BodySet:
    """The bodies of a level, and the points earned with them."""

    def __init__(self, level: Level, profile: ProfileName | None = None) -> None:
        engine = load_engine()
        self.level = level
        self.profile_name: ProfileName = profile or level.profile
        self.profile: Profile = load_profile(self.profile_name)
        self.engine_world: Any = engine.b2World(gravity=(0, -9.81), doSleep=True)
        self.builder = BodyBuilder(engine, self.engine_world, self.profile, level)
        self.bodies: list[Body] = []
        self.ghosts: list[tuple[Body, int]] = []
        """Destroyed bodies that stay visible for a moment, each with the step at which it vanishes."""
        self.pigs = 0
        self.score = 0
        self.steps = 0
        self.slow_ticks = 0
        """Ticks in a row in which nothing has moved."""
        self.birds_removed = 0
        self._ids = 0
        self.builder.frame()
        for placed in level.objects:
            body = self.builder.place(placed)
            if body is not None:
                self.add(body)

    @property
    def seconds(self) -> float:
        """Simulated time since the level was loaded."""
        return self.steps * STEP

    def next_id(self) -> int:
        """Return an id that no other object has."""
        self._ids += 1
        return -1000 - 6 * self._ids

    def add(self, body: Body) -> Body:
        """Add a body to the level."""
        body.id = self.next_id()
        self.bodies.append(body)
        self.pigs += body.kind == "pig"
        return body

    def hurt(self, body: Body, damage: float) -> None:
        """Take life from a body, and destroy it when it has none left."""
        body.life -= damage
        if body.life <= 0:
            self.destroy(body)

    def destroy(self, body: Body) -> None:
        """Remove a body and score its points; explosives explode."""
        if body.gone:
            return
        place = body.place
        self.score += body.points
        self.remove(body, self.profile.linger_seconds)
        if body.kind == "tnt":
            self.explode(place, self.profile.tnt.blast)

    def remove(self, body: Body, linger: float = 0.0) -> None:
        """Remove a body from the level; it stays visible without contacts for `linger` seconds."""
        body.gone = True
        self.bodies.remove(body)
        self.pigs -= body.kind == "pig"
        self.slow_ticks = 0
        if linger:
            self.builder.untouchable(body)
            self.ghosts.append((body, self.steps + round(linger * SECOND)))
        else:
            self.engine_world.DestroyBody(body.physical)

    def remove_ghosts(self) -> None:
        """Remove the ghosts whose time has come."""
        for body, until in self.ghosts:
            if self.steps >= until:
                self.engine_world.DestroyBody(body.physical)
        self.ghosts = [(body, until) for body, until in self.ghosts if self.steps < until]

    def explode(self, place: tuple[float, float], blast: Blast) -> None:
        """Push and hurt all bodies around a place, except birds."""
        for body in [body for body in self.bodies if body.kind in ("block", "pig", "tnt", "magnet")]:
            if body.gone:  # with another blast that this one set off: the engine has forgotten where it was
                continue
            dx, dy = body.place[0] - place[0], body.place[1] - place[1]
            distance = max(math.hypot(dx, dy), MIN_BLAST_DISTANCE)
            if distance > blast.area:
                continue
            fade = max(0.0, 1 - distance / blast.area) if self.profile.fading_blast else 1 / distance
            push = blast.power * fade * (1.0 if self.profile.fading_blast else 0.5) / distance
            body.physical.ApplyLinearImpulse((dx * push, dy * push), body.physical.worldCenter, True)
            self.hurt(body, blast.damage * fade)
