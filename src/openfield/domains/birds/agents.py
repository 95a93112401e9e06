"""Agents that come with birds: random, naive, one that tries shots in its head, and a detector around any of them.

They see what every agent sees; over the wire the same ones play through the client.
"""

from __future__ import annotations

import math
import random

import msgspec

from openfield.core import Agent, Ask, Belief, Reply, Spec, Turn
from openfield.domains.birds.actions import Load, Shot
from openfield.domains.birds.model import imagine
from openfield.domains.birds.planner import Sight, aim, read_sight, release
from openfield.domains.birds.solver import progress, replay
from openfield.metrics.passive import Rule

PIGS = ("pig", "novel")
TAPS = {"bird_blue": 0.7, "bird_yellow": 0.7, "bird_white": 0.9, "bird_black": 0.95}
"""The share of the way to the target at which birds are best tapped."""
WATCHED = 5
"""Levels a detector looks back on."""
IMAGINED = 14
"""Shots the planner tries in its head for each bird."""


class Shooter:
    """Shoots at what it sees; subclasses choose."""

    def __init__(self, spec: Spec, seed: int) -> None:
        self._rng = random.Random(seed)

    def __call__(self, turn: Turn) -> Reply:
        """Answers a turn."""
        if turn.ask is Ask.BELIEF:
            return Reply(None, Belief(0.0))
        if turn.ask is Ask.READY and turn.observation["begins"] == "level":
            return Reply(msgspec.to_builtins(Load()))
        if turn.ask is not Ask.ACT:
            return Reply()
        sight = read_sight(turn.observation)
        launch, tap = self.choose(sight)
        x, y = release(sight, launch)
        return Reply(msgspec.to_builtins(Shot(x, y, round(tap))))

    def choose(self, sight: Sight) -> tuple[tuple[float, float], float]:
        """A launch vector, and milliseconds until the tap."""
        raise NotImplementedError

    def save(self) -> bytes:
        """The state of the generator."""
        return msgspec.json.encode(self._rng.getstate())

    def load(self, state: bytes) -> None:
        """Goes on drawing where the saved agent was."""
        version, numbers, gauss = msgspec.json.decode(state)
        self._rng.setstate((version, tuple(numbers), gauss))


class RandomShooter(Shooter):
    """Shoots to the right, at any angle and any moment."""

    def choose(self, sight: Sight) -> tuple[tuple[float, float], float]:
        """Any angle from slightly down to almost straight up."""
        angle = math.radians(self._rng.uniform(-15, 80))
        return (math.cos(angle), math.sin(angle)), self._rng.choice((0.0, self._rng.uniform(300, 2500)))


class NaiveShooter(Shooter):
    """Aims at a random pig, on the high or the low way, as if nothing stood between."""

    def choose(self, sight: Sight) -> tuple[tuple[float, float], float]:
        """A way to a pig; with none in reach, as far as it goes."""
        pigs = sight.of(*PIGS)
        target = self._rng.choice(pigs).centre if pigs else (sight.rest[0] + 200, sight.rest[1])
        launch = aim(sight, target, self._rng.random() < 0.5) or (math.sqrt(0.5), math.sqrt(0.5))
        return launch, tap_time(sight, launch, target)


class Planner(Shooter):
    """Rebuilds the level in its head from what it sees, tries shots there, and takes the best."""

    def choose(self, sight: Sight) -> tuple[tuple[float, float], float]:
        """The launch that does most in the imagined level, and the tap, where the bird has a power."""
        level = imagine(sight)
        candidates = self._candidates(sight)
        plans = [(launch, 0.0) for launch, _ in candidates]
        plans += [(launch, tap) for launch, at in candidates if (tap := tap_time(sight, launch, at))]
        return max(plans, key=lambda plan: progress(replay(level, [plan[0]], "sailon", plan[1] / 1000)))

    def _candidates(self, sight: Sight) -> list[tuple[tuple[float, float], tuple[float, float]]]:
        """Both ways to every pig and block, and some angles between."""
        targets = [seen.centre for seen in sight.of(*PIGS, "wood", "stone", "ice", "tnt")]
        shots = [
            (launch, target) for target in targets for high in (False, True) if (launch := aim(sight, target, high))
        ]
        side = -1 if targets and targets[0][0] < sight.rest[0] else 1
        middle = targets[0] if targets else sight.rest
        for degrees in range(0, 71, 10):
            angle = math.radians(degrees + self._rng.uniform(-4, 4))
            shots.append(((side * math.cos(angle), math.sin(angle)), middle))
        sure, rest = shots[:4], shots[4:]
        self._rng.shuffle(rest)
        return (sure + rest)[:IMAGINED]


class Detector:
    """Plays as another agent does and believes in a change when that one's passes no longer look like before.

    It needs no reports of the agent: it goes by the levels it passed, as the published baselines do.
    """

    def __init__(self, agent: Agent, rule: Rule) -> None:
        self._agent, self._rule = agent, rule
        self._training: list[float] = []
        self._test: list[float] = []

    def __call__(self, turn: Turn) -> Reply:
        """Answers as the agent does, and adds what it believes."""
        if turn.last is not None:
            passed = float((turn.feedback or {}).get("state") == "won")
            (self._training if turn.phase == "training" else self._test).append(passed)
        answer = self._agent(turn)
        return Reply(answer.action, Belief(float(self._novel)))

    @property
    def _novel(self) -> bool:
        """Whether it has ever been alarmed; what it assumes is training, or else the first test levels."""
        known = self._training or self._test[: self._rule.window]
        return bool(known) and bool(self._rule.alarms(self._test, math.fsum(known) / len(known)))


def make_detector(spec: Spec, seed: int) -> Detector:
    """A detector around the naive agent."""
    return Detector(NaiveShooter(spec, seed), Rule(WATCHED))


def make_fall_detector(spec: Spec, seed: int) -> Detector:
    """The simpler detector around the naive agent: fewer than half of the last levels passed."""
    return Detector(NaiveShooter(spec, seed), Rule(WATCHED, threshold=0.5))


def tap_time(sight: Sight, launch: tuple[float, float], target: tuple[float, float]) -> float:
    """Milliseconds until the tap: shortly before the target; 0 for a bird that has no power."""
    birds = [seen for seen in sight.objects if seen.look.startswith("bird_")]
    ready = min(birds, key=lambda seen: math.dist(seen.centre, sight.rest), default=None)
    if ready is None or ready.look not in TAPS:
        return 0.0
    way = abs(target[0] - sight.rest[0]) / sight.scale
    return 1000 * TAPS[ready.look] * way / (10.0 * max(abs(launch[0]), 0.1))
