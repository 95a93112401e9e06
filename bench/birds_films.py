"""What films and recorded states of the original birds game show, measured in ours.

`bench_birds_physics.py` prints the facts, `tests/domains/birds/game/test_films.py` holds them. Distances are in world
units, times in seconds, speeds in units a second. Films do not tell the exact aim of a shot: where several shots make
the same thing happen, the facts are those of the shot that is nearest to the film.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from openfield.domains.birds.game.bodies import Body
from openfield.domains.birds.game.game import Game
from openfield.domains.birds.game.level import Level, LevelObject, ProfileName
from openfield.domains.birds.game.physics import SECOND
from openfield.domains.birds.game.scene import SLING_BOX, see, zoomed_out

TOLERANCE = 0.2
"""The greatest relative difference from a film."""
FAR_PIG = LevelObject(kind="Pig", type="BasicSmall", x=16.5, y=-3.27)


class FilmFact(NamedTuple):
    """A number that films show, and ours."""

    name: str
    film: float
    ours: float
    most: float | None = None
    """What ours may be at most, where the film shows something between 0 and this; else the tolerance counts."""

    @property
    def ratio(self) -> float | None:
        """Ours as a share of that of the film; None if that is 0."""
        return self.ours / self.film if self.film else None

    @property
    def holds(self) -> bool:
        """Whether ours is near enough to the film."""
        if self.most is not None:
            return 0 <= self.ours <= self.most
        return abs(self.ours - self.film) <= TOLERANCE * abs(self.film)


class Moment(NamedTuple):
    """Where a body is, and how fast."""

    x: float
    y: float
    dx: float
    dy: float

    @classmethod
    def of(cls, body: Body) -> Moment:
        velocity = body.physical.linearVelocity
        return cls(*body.place, velocity.x, velocity.y)


class ShotFilm:
    """A level in which one bird is shot: the bird at every step, before and after its first contact, and a ball."""

    def __init__(self, game: Game, degrees: float) -> None:
        self.game = game
        self.flight: list[Moment] = []
        self.after: list[Moment] = []
        self.ball: list[Moment] = []
        """The first ball of the level, from the first contact of the bird on."""
        self.killed = math.inf
        """Seconds from the first contact of the bird until no pig is left."""
        self._ball = next((body for body in game.bodies if body.type == "Circle"), None)
        game.shoot(math.cos(math.radians(degrees)), math.sin(math.radians(degrees)))
        assert game.flying is not None
        self._bird = game.flying

    def play(self) -> ShotFilm:
        """Play the shot to its end."""
        stop = self.game.watch(1, self._watch)
        self.game.settle()
        stop()
        return self

    def drop(self, along: float, height: float) -> ShotFilm:
        """Let the bird fall to the ground instead, with a speed along it, and play on."""
        physical = self._bird.physical
        physical.position = (4.0, -3.5 + 0.2 + height)
        physical.linearVelocity = (-along, 0.0)
        return self.play()

    def _watch(self) -> None:
        if self._bird.gone:
            return
        if not self._bird.touched:
            self.flight.append(Moment.of(self._bird))
            return
        self.after.append(Moment.of(self._bird))
        if self._ball is not None and not self._ball.gone:
            self.ball.append(Moment.of(self._ball))
        if not self.game.pigs:
            self.killed = min(self.killed, len(self.after) / SECOND)


def film_facts() -> Iterator[FilmFact]:
    """Yield every fact of the films that can be measured."""
    yield from launch_facts()
    yield from ball_facts()
    yield from landing_facts()
    yield from big_pig_facts()
    yield from waiting_facts()
    yield from small_pig_facts()


def launch_facts() -> Iterator[FilmFact]:
    """Yield speed and gravity of a launch."""
    level = Level(birds=("BirdRed",), objects=(FAR_PIG,))
    start, *_, later = ShotFilm(Game(level, "phyq"), 30.0).play().flight[: SECOND // 2 + 1]
    yield FilmFact("a launch at full power: speed", 9.8, math.hypot(start.dx, start.dy))
    yield FilmFact("a flight: gravity", 4.7, 2 * (start.dy - later.dy))


BALL_SLOPE = Level(
    birds=("BirdRed",),
    objects=(
        LevelObject(kind="Block", type="Circle", material="stone", x=-3.1, y=-0.3),
        LevelObject(kind="Pig", type="BasicSmall", x=2.3, y=-2.81),
        LevelObject(kind="Platform", x=-3.05, y=-0.87, scale_x=1.6, scale_y=0.6),
        LevelObject(kind="Platform", x=-0.25, y=-2.05, scale_x=8.4, scale_y=0.6, rotation=333.2),
        LevelObject(kind="Platform", x=2.37, y=-3.24, scale_x=1.04, scale_y=0.6),
    ),
)
"""A stone ball above a slope, and a pig below it."""


def ball_facts() -> list[FilmFact]:
    """Return what happens when a bird hits a stone ball: it leaves, rolls down and kills, and the bird follows."""
    found: list[list[FilmFact]] = []
    for number in range(560, 610):
        film = ShotFilm(Game(BALL_SLOPE, "phyq"), number / 20).play()
        if len(film.ball) > 2 * SECOND:
            hit, rolling = film.ball[2], film.ball[int(1.3 * SECOND)]
            facts = [
                FilmFact("a stone ball hit by a bird: speed along the ground", 2.4, hit.dx),
                FilmFact("the same ball on the slope: speed", 2.3, math.hypot(rolling.dx, rolling.dy)),
                FilmFact("the same ball: seconds until it kills the pig", 2.2, film.killed),
                FilmFact("the bird that hit it: speed forward", 2.0, film.after[2].dx),
            ]
            found.append(facts)
    return min(found, key=lambda facts: max(abs(fact.ours / fact.film - 1) for fact in facts))


LANDINGS = ((2.12, 0.98, 3.0), (2.68, 0.985, 3.0), (2.04, 0.78, 1.0), (0.6, 1.13, 3.0))
"""Speed along the ground before a steep landing, the share of it that is lost, and a fall, which the films do not tell.

The third bird loses less than the others, as one that has fallen less.
"""


def landing_facts() -> Iterator[FilmFact]:
    """Yield what birds do where they land."""
    level = Level(birds=("BirdRed",), objects=(FAR_PIG,))
    for along, lost, height in LANDINGS:
        film = ShotFilm(Game(level, "phyq"), 60.0).drop(along, height)
        landed = film.after[1]
        name = f"a landing with {along} along the ground after a fall of {height:g}"
        yield FilmFact(f"{name}: share of it that is lost", lost, 1 + landed.dx / along)
        if lost > 0.9:
            yield FilmFact(f"{name}: way from there", 0.15, abs(film.after[-1].x - film.after[0].x), most=0.3)
        else:
            yield FilmFact(f"{name}: bounce", 0.43, -landed.dy / film.flight[-1].dy)
    pig = LevelObject(kind="Pig", type="BasicSmall", x=0.0, y=-3.267, rotation=1.2)
    level = Level(birds=("BirdRed",), objects=(pig,))
    films = [ShotFilm(Game(level, "phyq"), degrees / 20).play() for degrees in range(250, 290)]
    ways = [film.after[int(2.4 * SECOND)].x - film.after[0].x for film in films if len(film.after) > 2.4 * SECOND]
    nearest = min(ways, key=lambda way: abs(way - 1.5))
    yield FilmFact("a flat shot at a pig on the ground: way in 2.4 s", 1.5, nearest)


NOTCH = Level(
    birds=("BirdRed",) * 3,
    objects=(
        LevelObject(kind="Pig", type="BasicBig", x=-0.8, y=-1.735),
        LevelObject(kind="Platform", x=-0.85, y=-2.475, scale_x=2.1, scale_y=0.76),
        LevelObject(kind="Platform", x=0.05, y=-2.345, scale_x=1.0, scale_y=1.18),
        LevelObject(kind="Platform", x=-1.65, y=-2.345, scale_x=1.0, scale_y=1.18),
    ),
)
"""A big pig between two edges."""


def big_pig_facts() -> Iterator[FilmFact]:
    """Yield how many direct hits a big pig takes, and how far the first one moves it."""
    game = Game(NOTCH, "phyq")
    pig = next(body for body in game.bodies if body.kind == "pig")
    start, hits, moved = pig.place, 0, 0.0
    while game.pigs and game.bird_ready:
        ShotFilm(game, 20.0).play()
        hits += 1
        moved = moved if pig.gone else math.dist(pig.place, start)
    yield FilmFact("direct hits until a big pig dies", 2, hits if not game.pigs else math.inf)
    yield FilmFact("way of the big pig in its notch after the first", 0.0, moved, most=0.1)


def waiting_facts() -> Iterator[FilmFact]:
    """Yield where waiting birds stand."""
    profiles: tuple[ProfileName, ...] = ("sailon", "phyq")
    for profile in profiles:
        for bird, up in (("BirdRed", 0.21), ("BirdBlack", 0.42)):
            level = Level(birds=("BirdRed", bird), objects=(FAR_PIG,))
            scene = see(Game(level, profile), zoomed_out(level.camera))
            place = next(item.place for item in scene.items if item.turn > 0)
            foot, left = level.sling[1] + SLING_BOX[1], level.sling[0] + SLING_BOX[0]
            yield FilmFact(f"{profile}, a waiting {bird}: height above the foot of the sling", up, place[1] - foot)
            yield FilmFact(f"{profile}, a waiting {bird}: way to the left of the sling", 1.15, left - place[0])


def small_pig_facts() -> Iterator[FilmFact]:
    """Yield how many pigs of `sailon` live through a fall as they have when a level is loaded."""
    falls = [(kind, fall) for kind in (("BasicSmall", 0.208), ("BasicMedium", 0.38)) for fall in (0.03, 0.05)]
    lived = 0
    for (type_, height), fall in falls:
        pig = LevelObject(kind="Pig", type=type_, x=0.0, y=-3.5 + height + fall)
        lived += Game(Level(birds=("BirdRed",), objects=(pig,)), "sailon").pigs
    yield FilmFact("sailon, pigs that live through a fall of 0.03 to 0.05: share", 1.0, lived / len(falls))
