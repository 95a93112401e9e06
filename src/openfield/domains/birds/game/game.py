"""A level being played: bodies in motion, shots, damage, score, and how it ends.

Stands under the birds world: level and shots -> what happens, without clock or chance: same shots, same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from openfield.domains.birds.game.bird_timers import BirdTimers
from openfield.domains.birds.game.bodies import Body
from openfield.domains.birds.game.body_set import BodySet
from openfield.domains.birds.game.contacts import ContactLog, Damage
from openfield.domains.birds.game.forces import ForceField, make_force_fields
from openfield.domains.birds.game.level import Level, ProfileName
from openfield.domains.birds.game.physics import SECOND
from openfield.domains.birds.game.powers import use_power

STEP = 1 / SECOND
ITERATIONS = 100
TICK = 5
"""Steps between two looks at what only changes slowly; also the distance of trajectory dots (0.1 s)."""
LAUNCH_SPEED = 10.0
SLING_REST = (-0.15, 0.80)
"""Where the bird rests, seen from the slingshot's point."""
TAP_DISTANCE = 2.0
MAX_TAP_SECONDS = 5.0
MAX_END_WAIT_STEPS = 30 * SECOND
"""A level that never comes to rest is taken as it is after this."""
MAX_SETTLE_STEPS = 62 * SECOND
"""How long a shot is waited for, unless birds may fly longer."""
SLOW = 0.02
"""Units a second; below it, for half a second, a body rests."""
TURNING = 0.5
"""Units; how far from its middle a body that turns is looked at."""
QUIET_TICKS = 5
DEPTH, SKY = -12.0, 60.0
"""Beyond these heights nothing comes back."""
UNUSED_BIRD = 10_000

GameState = Literal["playing", "won", "lost"]


class Game(BodySet):
    """A level being played."""

    def __init__(self, level: Level, profile: ProfileName | None = None, flight_seconds: float = 0.0) -> None:
        """Builds the level and lets it come to rest.

        Args:
            level: What is played.
            profile: The physics, if not those the level was made for.
            flight_seconds: After which the next bird is up, whatever the last one does; 0 is what the profile says.
        """
        super().__init__(level, profile)
        self.state: GameState = "playing"
        self.queue = [(bird, self.next_id()) for bird in level.birds]
        self.pigs_at_start = self.pigs
        self.birds_removed = 0
        self.trajectory: list[tuple[float, float]] = []
        self.flying: Body | None = None
        self.fields: list[ForceField] = make_force_fields(self)
        self._contacts = ContactLog(self.builder.engine, self.engine_world)
        self._damage = Damage(self)
        self._flock = BirdTimers()
        self._longest_flight = round((flight_seconds or self.profile.flight_seconds) * SECOND)
        self._edge = 17.5 * level.width / 2
        self._tap_at = self._launched = self._ends_at = self._waits_since = -1
        self._watchers: list[tuple[int, int, Callable[[], None]]] = []
        self._old_dots = 0  # those of the flight before, which stay until this one has touched something
        self.settle()
        self.steps = max(self.steps, round(self.profile.immortal_seconds * SECOND))

    @property
    def rest(self) -> tuple[float, float]:
        """Where a bird rests on the sling."""
        return self.level.sling[0] + SLING_REST[0], self.level.sling[1] + SLING_REST[1]

    @property
    def seconds(self) -> float:
        """Simulated time since the level was loaded."""
        return self.steps * STEP

    @property
    def bird_ready(self) -> bool:
        """Whether a bird sits on the sling and may be shot."""
        return self.state == "playing" and self.flying is None and bool(self.queue)

    @property
    def moving(self) -> bool:
        """Whether anything still happens by itself."""
        if self.state != "playing":
            return False
        busy = self.flying is not None or self._ends_at >= 0 or self.slow_ticks < QUIET_TICKS
        return busy or bool(self._flock or self.ghosts)

    def shoot(self, dx: float, dy: float, tap: float = 0.0) -> bool:
        """Pulls the sling for a second and lets go; the bird starts with ten times this vector, at most of length 1.

        Args:
            dx: From the release point to the bird's rest, to the right.
            dy: The same, upwards.
            tap: Seconds after the release at which the bird uses its power; 0 is never.

        Returns:
            Whether there was a bird to shoot.
        """
        if not self.bird_ready:
            return False
        self._drag()
        if not self.bird_ready:  # what still moved has ended the level meanwhile
            return False
        length = math.hypot(dx, dy)
        scale = min(1.0, 1.0 / length) if length else 0.0
        dx, dy = dx * scale, dy * scale
        bird = self.builder.bird(self.queue[0][0], (self.rest[0] - dx, self.rest[1] - dy))
        bird.id, bird.launch = self.queue[0][1], self.steps
        bird.physical.linearVelocity = (LAUNCH_SPEED * dx, LAUNCH_SPEED * dy)
        self.bodies.append(bird)
        self.flying, self._launched, self.slow_ticks = bird, self.steps, 0
        self._tap_at = self.steps + round(min(tap, MAX_TAP_SECONDS) * SECOND) if tap > 0 else -1
        self._old_dots = len(self.trajectory)
        return True

    def settle(self, until_contact: bool = False) -> None:
        """Runs until nothing happens any more, or the flying bird has touched something.

        A level that is about to end is run to its end, which never takes long; else it gives up after a while.
        """
        stop = self.steps + max(MAX_SETTLE_STEPS, self._longest_flight + 2 * SECOND)
        while self.moving and (self.steps < stop or self._ends_at >= 0) and not (until_contact and self.flying is None):
            self._tick()

    def run(self, seconds: float) -> None:
        """Runs for a while, or until the level is over."""
        stop = self.steps + round(seconds * SECOND)
        while self.moving and self.steps < stop:
            self._tick()

    def run_past_tap(self) -> None:
        """Runs until the tap of the last shot is done, as a fast shot does."""
        while self._tap_at >= self.steps and self.flying is not None:
            self._tick()

    def watch(self, every: int, frame: Callable[[], None]) -> Callable[[], None]:
        """Has a function called every so many steps from now on; calling what is returned ends that."""
        watcher = self.steps, max(1, every), frame
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def burst(self, bird: Body) -> None:
        """Blows up a bird."""
        self.explode(bird.place, self.profile.blasts["bird"])
        self._retire(bird)

    def touch(self, bird: Body) -> None:
        """Notes the first contact of a bird: the next one is up, and a black one has lit its fuse."""
        if bird.touched:
            return
        bird.touched = True
        self._flock.add(bird, self.steps)
        if bird.type == "BirdBlack":
            self._flock.light(bird, self.steps)
        if self.flying is not None and bird.launch == self.flying.launch:
            self._next_bird()

    def _drag(self) -> None:
        """A second passes; where everything rests, nothing has to be computed."""
        self.slow_ticks = min(self.slow_ticks, QUIET_TICKS)
        if self.fields or self.moving:
            for _ in range(SECOND // TICK):
                self._tick()
        else:
            self.steps += SECOND

    def _tick(self) -> None:
        """Some steps of the engine, then a look at what only changes slowly."""
        step, events, fields = self.engine_world.Step, self._contacts.events, self.fields
        self._contacts.listen(self.slow_ticks < QUIET_TICKS)
        for _ in range(TICK):
            if fields:
                for field in fields:
                    field.push(self)
            step(STEP, ITERATIONS, ITERATIONS)
            self.steps += 1
            if events:
                self._damage.resolve(self._contacts.take())
            if self.steps == self._tap_at and self.flying is not None:
                self._tap(self.flying)
            if self._watchers:
                self._call_watchers()
        self._look()

    def _call_watchers(self) -> None:
        for since, every, frame in self._watchers:
            if (self.steps - since) % every == 0:
                frame()

    def _look(self) -> None:
        speed = self._drop_and_measure()
        self.slow_ticks = self.slow_ticks + 1 if speed < SLOW else 0
        if self.flying is not None:
            self._follow(self.flying)
        if self.ghosts:
            self.lay_ghosts()
        if self._flock.due(self.steps):
            self._check_flock()
        self._check_end()

    def _drop_and_measure(self) -> float:
        """Takes out what left the world, and says how fast the fastest thing is."""
        fastest, edge = 0.0, self._edge
        for body in [body for body in self.bodies if body.moves and body.physical.awake]:
            if body.gone:  # with explosives that left the world just now
                continue
            x, y = body.place
            if (-edge < x < edge or not self._is_out(body)) and DEPTH < y < SKY:
                fastest = max(fastest, body.speed, TURNING * abs(body.physical.angularVelocity))
            else:
                self._lose(body)
        return fastest

    def _is_out(self, body: Body) -> bool:
        """Whether no part of it is left within the level."""
        xs = [x for x, _ in body.outline()]
        return min(xs) > self._edge or max(xs) < -self._edge

    def _lose(self, body: Body) -> None:
        if body.kind in ("bird", "egg"):
            self.touch(body)
            self._retire(body)
        else:
            self.destroy(body)

    def _follow(self, bird: Body) -> None:
        """Dots its path, and gives the turn on if it flies too long."""
        self.trajectory.append(bird.place)
        if self.steps - self._launched > self._longest_flight:
            self._flock.add(bird, self.steps)
            self._next_bird()

    def _next_bird(self) -> None:
        self.flying = None
        self.queue.pop(0)
        self.trajectory = self.trajectory[self._old_dots :]

    def _retire(self, bird: Body) -> None:
        self.remove(bird)
        self.birds_removed += bird.kind == "bird"

    def _check_flock(self) -> None:
        if (burning := self._flock.take_burning(self.steps)) is not None:
            self.burst(burning)
        for bird in self._flock.take_resting(self.steps):
            self._retire(bird)

    def _check_end(self) -> None:
        """A level ends a second after its last pig or bird, once everything rests."""
        if (self.pigs and self.queue) or self.state != "playing":
            return
        if self._ends_at < 0:
            self._ends_at, self._waits_since = self.steps + SECOND, self.steps
        if self.steps < self._ends_at:
            return
        if self._at_rest or self.steps - self._waits_since > MAX_END_WAIT_STEPS:
            self.state = "lost" if self.pigs else "won"
            self.score += UNUSED_BIRD * len(self.queue)
            self._contacts.listen(False)
        else:
            self._ends_at += SECOND

    @property
    def _at_rest(self) -> bool:
        """Whether every body has come to rest; the engine puts it to sleep then."""
        return not any(body.moves and body.physical.awake and body.stirs for body in self.bodies)

    def _tap(self, bird: Body) -> None:
        """Lets the bird use its power, if it is well on its way."""
        way = (bird.place[0] - self.rest[0]) * (1 if bird.physical.linearVelocity.x >= 0 else -1)
        if not bird.touched and way + self.builder.bird_kind(bird.type).radius * 2 > TAP_DISTANCE:
            use_power(self, bird)
