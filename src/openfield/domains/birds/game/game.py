"""The simulation of a level: shots, powers of birds, damage, score, and how the level ends.

It uses neither a clock nor random numbers: the same shots give the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from openfield.domains.birds.game.bodies import Body, BodySet
from openfield.domains.birds.game.contacts import ContactLog, Damage
from openfield.domains.birds.game.forces import make_forces
from openfield.domains.birds.game.level import Level, ProfileName
from openfield.domains.birds.game.physics import SECOND, STEP

ITERATIONS = 100
TICK = 5
"""Steps between two checks of what changes slowly, and between two dots of a trajectory (0.1 s)."""
SLING_REST = (-0.15, 0.80)
"""Rest position of the bird relative to the slingshot."""
TAP_DISTANCE = 2.0
MAX_TAP_SECONDS = 5.0
MAX_END_WAIT_STEPS = 30 * SECOND
"""Steps after the last pig or bird until a level ends even if something still moves."""
MAX_SETTLE_STEPS = 62 * SECOND
"""Steps that `settle` runs at most, unless birds may fly longer."""
SLOW = 0.02
"""World units a second. A body that is slower for half a second is at rest."""
TURNING = 0.5
"""World units. The speed of a turning body is measured this far from its centre."""
QUIET_TICKS = 5
DEPTH, SKY = -12.0, 60.0
"""Bodies beyond these heights are lost."""
UNUSED_BIRD = 10_000

REST_SPEED = 0.001
FUSE_SECONDS = 1
REST_CHECK_SECONDS = 3
"""Seconds from the first contact of a bird to the check whether it rests; a bird that moves is checked every second."""
SPLIT_DEGREES = (15.0, 5.0, -5.0)
YELLOW_IMPULSE = 4.0
EGG_IMPULSE = 6.0
LIFT_IMPULSE = 10.0

GameState = Literal["playing", "won", "lost"]
ANGLES = tuple(range(-14, 79, 2))
"""Degrees above the horizon that `solve` tries, towards the objects of the level."""
Shots = list[tuple[float, float]]


class Game(BodySet):
    """A level being played."""

    def __init__(
        self,
        level: Level,
        profile: ProfileName | None = None,
        flight_seconds: float = 0.0,
    ) -> None:
        """Build the level and let it come to rest.

        Args:
            level: The level.
            profile: Its physics; None means those that the level was made for.
            flight_seconds: The longest flight without a contact; 0 means that of the profile.
        """
        super().__init__(level, profile)
        self.state: GameState = "playing"
        self.queue = [(bird, self.next_id()) for bird in level.birds]
        self.pigs_at_start = self.pigs
        self.trajectory: list[tuple[float, float]] = []
        self.flying: Body | None = None
        self.forces = make_forces(self)
        self._contacts = ContactLog(self.builder.engine, self.engine_world, self.profile)
        self._damage = Damage(self, self.touch)
        self._out: list[tuple[Body, int]] = []
        """Birds that have touched something or flown too long, each with the step of its next check."""
        self._fuse: tuple[Body, int] | None = None
        """The black bird that touched something last, and the step at which it explodes."""
        self._longest_flight = round((flight_seconds or self.profile.flight_seconds) * SECOND)
        self._edge = 17.5 * level.width / 2
        self._tap_at = self._launched = self._ends_at = self._waits_since = -1
        self._watchers: list[tuple[int, int, Callable[[], None]]] = []
        self._old_dots = 0  # dots of the last flight, shown until the next bird touches something
        self.settle()
        self.steps = max(self.steps, round(self.profile.immortal_seconds * SECOND))

    @property
    def rest(self) -> tuple[float, float]:
        """Rest position of a bird on the sling."""
        return self.level.sling[0] + SLING_REST[0], self.level.sling[1] + SLING_REST[1]

    @property
    def bird_ready(self) -> bool:
        """True if a bird sits on the sling and may be shot."""
        return self.state == "playing" and self.flying is None and bool(self.queue)

    @property
    def has_power(self) -> bool:
        """True if the bird that is next has a power; a red one has none."""
        return bool(self.queue) and self.builder.base(self.queue[0][0]) in POWERS

    @property
    def moving(self) -> bool:
        """True if anything still happens by itself."""
        if self.state != "playing":
            return False
        busy = self.flying is not None or self._ends_at >= 0 or self.slow_ticks < QUIET_TICKS
        return busy or bool(self._out or self.ghosts)

    def shoot(self, dx: float, dy: float, tap: float = 0.0) -> bool:
        """Pull the sling for a second, let go, and return whether there was a bird to shoot.

        The vector points from the release point to the rest position, and is cut to length 1. The bird starts with
        that vector times the launch speed, and uses its power `tap` seconds after the release; 0 means never.
        """
        if not self.bird_ready:
            return False
        self._drag()
        if not self.bird_ready:  # the level has ended during the pull
            return False
        length = math.hypot(dx, dy)
        scale = min(1.0, 1.0 / length) if length else 0.0
        dx, dy = dx * scale, dy * scale
        bird = self.builder.bird(self.queue[0][0], (self.rest[0] - dx, self.rest[1] - dy))
        bird.id, bird.launch = self.queue[0][1], self.steps
        speed = self.profile.launch_speed * self.level.laws.launch
        bird.physical.linearVelocity = (speed * dx, speed * dy)
        self.bodies.append(bird)
        self.flying, self._launched, self.slow_ticks = bird, self.steps, 0
        self._tap_at = self.steps + round(min(tap, MAX_TAP_SECONDS) * SECOND) if tap > 0 else -1
        self._old_dots = len(self.trajectory)
        return True

    def settle(self, until_contact: bool = False) -> None:
        """Run until nothing moves, or only until the flying bird has touched something.

        It stops after `MAX_SETTLE_STEPS`, except that a level about to end is always run to its end.
        """
        stop = self.steps + max(MAX_SETTLE_STEPS, self._longest_flight + 2 * SECOND)
        while self.moving and (self.steps < stop or self._ends_at >= 0) and not (until_contact and self.flying is None):
            self._tick()

    def run(self, seconds: float) -> None:
        """Run for some seconds, or until nothing moves."""
        stop = self.steps + round(seconds * SECOND)
        while self.moving and self.steps < stop:
            self._tick()

    def run_past_tap(self) -> None:
        """Run until the tap of the last shot is done, as a fast shot does."""
        while self._tap_at >= self.steps and self.flying is not None:
            self._tick()

    def watch(self, every: int, frame: Callable[[], None]) -> Callable[[], None]:
        """Call a function every few steps from now on; return a function that stops this."""
        watcher = self.steps, max(1, every), frame
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def burst(self, bird: Body) -> None:
        """Explode a bird, as if it had touched something."""
        self.touch(bird)
        self.explode(bird.place, self.profile.blasts["bird"])
        self._retire(bird)

    def touch(self, bird: Body) -> None:
        """Note the first contact of a bird: the next bird is up, and a black one starts its fuse."""
        if bird.touched:
            return
        bird.touched = True
        self._out.append((bird, self.steps + REST_CHECK_SECONDS * SECOND))
        if bird.type == "BirdBlack":
            self._fuse = bird, self.steps + FUSE_SECONDS * SECOND
        if self.flying is not None and bird.launch == self.flying.launch:
            self._next_bird()

    def _drag(self) -> None:
        """Let a second pass; if everything rests, nothing has to be simulated."""
        self.slow_ticks = min(self.slow_ticks, QUIET_TICKS)
        if self.forces or self.moving:
            for _ in range(SECOND // TICK):
                self._tick()
        else:
            self.steps += SECOND

    def _tick(self) -> None:
        """Run some steps of the engine, then check what changes slowly."""
        step, events, forces = self.engine_world.Step, self._contacts.events, self.forces
        self._contacts.listen(self.slow_ticks < QUIET_TICKS)
        for _ in range(TICK):
            for push in forces:
                push(self)
            step(STEP, ITERATIONS, ITERATIONS)
            self.steps += 1
            if events:
                self._damage.resolve(self._contacts.take())
            if self.balls:
                self._roll_balls()
            if self.steps == self._tap_at and self.flying is not None:
                self._tap(self.flying)
            for since, every, frame in self._watchers:
                if (self.steps - since) % every == 0:
                    frame()
        speed = self._drop_and_measure()
        self.slow_ticks = self.slow_ticks + 1 if speed < SLOW else 0
        if self.flying is not None:
            self._follow(self.flying)
        if self.ghosts:
            self.remove_ghosts()
        self._check_birds()
        self._check_end()

    def _roll_balls(self) -> None:
        """Let balls that move in a contact roll from now on, and wear out those that roll."""
        self._contacts.release()
        for ball in [ball for ball in self.balls if not ball.gone and ball.physical.awake]:
            speed = ball.speed
            if ball.rolls:
                if ball.supported:
                    self.hurt(ball, self.profile.rolling_wear * speed * STEP)
            elif speed > self.profile.rolling_speed and ball.touches:
                self._contacts.keep(ball)
                self.builder.make_round(ball)

    def _drop_and_measure(self) -> float:
        """Remove the bodies that left the world, and return the speed of the fastest one."""
        fastest, edge = 0.0, self._edge
        for body in [body for body in self.bodies if body.moves and body.physical.awake]:
            if body.gone:  # destroyed by explosives that left the world just now
                continue
            x, y = body.place
            if (-edge < x < edge or not self._is_out(body)) and DEPTH < y < SKY:
                fastest = max(fastest, body.speed, TURNING * abs(body.physical.angularVelocity))
            elif body.kind in ("bird", "egg"):
                self.touch(body)
                self._retire(body)
            else:
                self.destroy(body)
        return fastest

    def _is_out(self, body: Body) -> bool:
        """Return whether no part of a body is left inside the level."""
        xs = [x for x, _ in body.outline()]
        return min(xs) > self._edge or max(xs) < -self._edge

    def _follow(self, bird: Body) -> None:
        """Add a dot to the path, and bring up the next bird if this one flies too long."""
        self.trajectory.append(bird.place)
        if self.steps - self._launched > self._longest_flight:
            self._out.append((bird, self.steps + REST_CHECK_SECONDS * SECOND))
            self._next_bird()

    def _next_bird(self) -> None:
        self.flying = None
        self.queue.pop(0)
        self.trajectory = self.trajectory[self._old_dots :]

    def _retire(self, bird: Body) -> None:
        self.remove(bird)
        self.birds_removed += bird.kind == "bird"

    def _check_birds(self) -> None:
        """Explode the black bird whose fuse has ended, and remove the birds that are due and at rest."""
        now, burning = self.steps, self._fuse if self._fuse is not None and self.steps >= self._fuse[1] else None
        if burning is None and all(now < check for _, check in self._out):
            return
        if burning is not None:
            self._fuse = None
            if not burning[0].gone:
                self.burst(burning[0])
        due = dict.fromkeys(bird for bird, check in self._out if now >= check and not bird.gone)
        resting = [bird for bird in due if bird.speed < REST_SPEED]
        self._out = [
            (bird, check + SECOND if bird in due else check)
            for bird, check in self._out
            if not bird.gone and bird not in resting
        ]
        for bird in resting:
            self._retire(bird)

    def _check_end(self) -> None:
        """End the level a second after its last pig or bird, once everything rests."""
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
        """True if every body is at rest; the engine puts such bodies to sleep."""
        awake = (body for body in self.bodies if body.moves and body.physical.awake)
        return not any(body.speed > 0 or body.physical.angularVelocity != 0 for body in awake)

    def _tap(self, bird: Body) -> None:
        """Use the power of a bird, if it is far enough from the sling."""
        way = (bird.place[0] - self.rest[0]) * (1 if bird.physical.linearVelocity.x >= 0 else -1)
        far = way + self.profile.bird(bird.type).radius * 2 > TAP_DISTANCE
        if far and not bird.touched and (power := POWERS.get(bird.type)) is not None:
            power(self, bird)


def _split(game: Game, bird: Body) -> None:
    """Split into three birds of the same speed."""
    velocity = bird.physical.linearVelocity
    angle, speed = math.atan2(velocity.y, velocity.x), math.hypot(velocity.x, velocity.y)
    for number, degrees in enumerate(SPLIT_DEGREES):
        part = bird if number == 1 else game.add(game.builder.bird(bird.type, bird.place))
        part.launch = bird.launch
        turned = angle + math.radians(degrees)
        part.physical.linearVelocity = (speed * math.cos(turned), speed * math.sin(turned))


def _rush(game: Game, bird: Body) -> None:
    """Push the bird forwards."""
    velocity = bird.physical.linearVelocity
    speed = math.hypot(velocity.x, velocity.y) or 1.0
    impulse = (YELLOW_IMPULSE * velocity.x / speed, YELLOW_IMPULSE * velocity.y / speed)
    bird.physical.ApplyLinearImpulse(impulse, bird.physical.worldCenter, True)


def _lay(game: Game, bird: Body) -> None:
    """Drop an egg and lift the bird."""
    egg = game.add(game.builder.egg((bird.place[0], bird.place[1] - 0.3)))
    egg.physical.ApplyLinearImpulse((0, -EGG_IMPULSE), egg.physical.worldCenter, True)
    bird.physical.ApplyLinearImpulse((0, LIFT_IMPULSE), bird.physical.worldCenter, True)


POWERS: dict[str, Callable[[Game, Body], None]] = {
    "BirdBlue": _split,
    "BirdYellow": _rush,
    "BirdBlack": Game.burst,
    "BirdWhite": _lay,
}
"""The powers of birds; a red one has none."""


def solve(level: Level, profile: ProfileName | None = None) -> Shots | None:
    """Return launch vectors at full power that pass a level, found greedily bird by bird; None if there are none."""
    middle = sum(placed.x for placed in level.objects) / max(1, len(level.objects))
    side = 1 if middle >= level.sling[0] else -1
    launches = [(side * math.cos(math.radians(angle)), math.sin(math.radians(angle))) for angle in ANGLES]
    chosen: Shots = []
    for _ in level.birds:
        worth: dict[tuple[float, float], float] = {}
        for shot in launches:
            game = replay(level, [*chosen, shot], profile)
            if game.state == "won":
                return [*chosen, shot]
            worth[shot] = measure_progress(game)
        chosen.append(max(launches, key=lambda shot: worth[shot]))
    return None


def replay(level: Level, shots: Shots, profile: ProfileName | None = None, tap: float = 0.0) -> Game:
    """Play launch vectors and return the game; a tap is this many seconds after each release, 0 means never."""
    game = Game(level, profile)
    for dx, dy in shots:
        game.shoot(dx, dy, tap)
        game.settle()
    return game


def measure_progress(game: Game) -> float:
    """Return how near a level is to being passed: killed pigs first, then damage to the others."""
    hurt = sum(1 - max(body.life, 0.0) / body.full for body in game.bodies if body.kind == "pig")
    return 10.0 * (game.pigs_at_start - game.pigs) + hurt + game.score * 1e-6
