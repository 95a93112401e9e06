"""An agent that rebuilds the level from its observation, tries shots in that copy, and takes the best one."""

from __future__ import annotations

import math

from openfield.core import Spec
from openfield.domains.birds.agents.observed_level import ObservedLevel, ObservedObject, Point
from openfield.domains.birds.agents.shooters import PIGS, Shooter
from openfield.domains.birds.game.bodies import GROUND
from openfield.domains.birds.game.game import SLING_REST, measure_progress, replay
from openfield.domains.birds.game.level import Camera, Level, LevelObject
from openfield.domains.birds.game.physics import load_profile

CANDIDATES = 14
"""Shots that are simulated for each bird."""
TAPPED, TAP_SHARES = 4, (0.5, 0.7, 0.9)
"""How many of the best shots are tried with taps, and after which shares of the distance."""
SLING_X = -12.0


class Planner(Shooter):
    """Simulates shots in a copy of the level and takes the best one.

    It learns one law: whether birds fall or rise.
    """

    def __init__(self, spec: Spec, seed: int) -> None:
        super().__init__(spec, seed)
        self._upwards = False

    def notice(self, level: ObservedLevel) -> None:
        """Learn from the path of the last bird whether birds fall or rise."""
        if level.rises is not None:
            self._upwards = level.rises

    def save(self) -> bytes:
        """Return the state of the random generator and the learnt direction."""
        return bytes((self._upwards,)) + super().save()

    def load(self, state: bytes) -> None:
        """Restore the state of the random generator and the learnt direction."""
        self._upwards = bool(state[0])
        super().load(state[1:])

    def choose(self, level: ObservedLevel) -> tuple[Point, float]:
        """Choose the shot that does most in the simulated level, and the best tap if the bird has a power."""
        self.notice(level)
        copy = reconstruct(level, self._upwards)
        launches = self._candidates(level)
        worth = {launch: _worth(copy, launch) for launch, _ in launches}
        best = sorted(launches, key=lambda shot: worth[shot[0]], reverse=True)[:TAPPED]
        plans = [(worth[launch], launch, 0.0) for launch, _ in best]
        for launch, target in best:
            for share in TAP_SHARES:
                if tap := level.tap_time(launch, target, share):
                    plans.append((_worth(copy, launch, tap), launch, tap))
        _, launch, tap = max(plans, key=lambda plan: plan[0])
        return launch, tap

    def _candidates(self, level: ObservedLevel) -> list[tuple[Point, Point]]:
        """Return launches with their targets: both arcs to every pig and block, and some angles between."""
        targets = [seen.centre for seen in level.of(*PIGS, "wood", "stone", "ice", "tnt")]
        arcs = ((level.aim(target, high, self._upwards), target) for target in targets for high in (False, True))
        shots = [(launch, target) for launch, target in arcs if launch]
        side = -1 if targets and targets[0][0] < level.rest[0] else 1
        middle = targets[0] if targets else level.rest
        for degrees in range(0, 71, 10):
            angle = math.radians(degrees + self._rng.uniform(-4, 4))
            up = -math.sin(angle) if self._upwards else math.sin(angle)
            shots.append(((side * math.cos(angle), up), middle))
        sure, rest = shots[:4], shots[4:]
        self._rng.shuffle(rest)
        return (sure + rest)[:CANDIDATES]


def reconstruct(level: ObservedLevel, upwards: bool = False) -> Level:
    """Build a playable level that looks like an observed one, with gravity downwards or upwards."""
    origin = SLING_X + SLING_REST[0], GROUND + (level.ground - level.rest[1]) / level.scale
    objects = [found for seen in level.objects if (found := _level_object(seen, level, origin)) is not None]
    if upwards:
        objects.append(LevelObject(kind="Novelty", type="InverseGravity", x=0.0, y=0.0))
    bird = "Bird" + level.bird.look.removeprefix("bird_").capitalize() if level.bird else "BirdRed"
    sling = origin[0] - SLING_REST[0], origin[1] - SLING_REST[1]
    return Level(sling=sling, birds=(bird,), objects=tuple(objects), width=4, camera=Camera(widest=30.0))


def _worth(level: Level, launch: Point, tap: float = 0.0) -> float:
    """Return the progress that a shot makes in a simulated level."""
    return measure_progress(replay(level, [launch], "sailon", tap / 1000))


def _level_object(seen: ObservedObject, level: ObservedLevel, origin: Point) -> LevelObject | None:
    x = origin[0] + (seen.centre[0] - level.rest[0]) / level.scale
    y = origin[1] + (level.rest[1] - seen.centre[1]) / level.scale
    width, height, angle = _form(seen, level.scale)
    if seen.look == "tnt":
        return LevelObject(kind="TNT", x=x, y=y)
    if seen.look in PIGS:
        size = "BasicBig" if width > 0.85 else "BasicMedium" if width > 0.6 else "BasicSmall"
        return LevelObject(kind="Pig", type=size, x=x, y=y + 0.02)
    if seen.look in ("wood", "stone", "ice"):
        return LevelObject(kind="Block", type=_shape(seen, width, height), material=seen.look, x=x, y=y, rotation=angle)
    if seen.look in ("platform", "fan"):
        return LevelObject(kind="Platform", x=x, y=y, rotation=angle, scale_x=width / 0.64, scale_y=height / 0.64)
    return None


def _form(seen: ObservedObject, scale: float) -> tuple[float, float, float]:
    """Return width, height and rotation of a rectangle; for other shapes those of the bounding box."""
    if len(seen.ring) != 4:
        left, top, right, bottom = seen.box
        return (right - left) / scale, (bottom - top) / scale, 0.0
    (ax, ay), (bx, by), (cx, cy), _ = seen.ring  # bottom left, top left, top right
    angle = math.degrees(math.atan2(by - cy, cx - bx))
    return math.dist((bx, by), (cx, cy)) / scale, math.dist((ax, ay), (bx, by)) / scale, angle


def _shape(seen: ObservedObject, width: float, height: float) -> str:
    """Return the block type of the nearest size."""
    if len(seen.ring) > 6:
        return "Circle" if width > 0.6 else "CircleSmall"
    sizes = {name: block.size for name, block in load_profile("sailon").blocks.items() if block.size}
    sizes["SquareHole"] = (0.84, 0.84)
    return min(sizes, key=lambda name: math.dist(sizes[name], (width, height)))
