"""Agents that come with birds: random, naive, one that tries shots in its head, and a detector around any of them.

They see what every agent sees; over the wire the same ones play through the client.
"""

from __future__ import annotations

import math
import random
from typing import Any

import msgspec

from openfield.agents.random import GeneratorState
from openfield.core import Agent, Ask, Belief, Reply, Spec, Turn
from openfield.domains.birds.actions import TAP_SECONDS, Load, Shot
from openfield.domains.birds.agents.planner import GRAVITY, ObservedLevel, aim, observe_level, release
from openfield.domains.birds.agents.reconstruction import imagine
from openfield.domains.birds.game.level import Level
from openfield.domains.birds.game.solver import progress, replay
from openfield.errors import AgentFault
from openfield.metrics.passive import Rule

PIGS = ("pig", "novel")
TAPS = {"bird_blue": 0.7, "bird_yellow": 0.7, "bird_white": 0.9, "bird_black": 0.95}
"""The share of the way to the target at which birds are tapped by who does not try."""
WATCHED = 5
"""Levels a detector looks back on."""
IMAGINED = 14
"""Shots the planner tries in its head for each bird."""
RISE = -0.48 * 6.0
"""Gravity of birds where it points upwards."""
TAPPED, TAP_SHARES = 4, (0.5, 0.7, 0.9)
"""Of how many of them it tries taps, and after which shares of the way."""


class Shooter:
    """Shoots at what it sees; subclasses choose."""

    may_be_blind = False
    """Whether it chooses without looking."""

    def __init__(self, spec: Spec, seed: int) -> None:
        self._blind = spec.observations is not None  # pictures and numbers are for learners
        if self._blind and not self.may_be_blind:
            raise AgentFault("This agent reads what is where, no pictures or numbers: --set observe=objects")
        self._rng = random.Random(seed)

    def __call__(self, turn: Turn) -> Reply:
        """Answers a turn."""
        if turn.ask is Ask.BELIEF:
            return Reply(None, Belief(0.0))
        if turn.ask is Ask.READY and turn.observation["begins"] == "level":
            return Reply(msgspec.to_builtins(Load(pick_level(turn.observation))))
        if turn.ask is not Ask.ACT:
            if turn.last is not None and turn.observation is not None and not self._blind:
                self.notice(observe_level(turn.observation))
            return Reply()
        if self._blind:
            launch, tap = self.choose(None)
            return Reply([*launch, tap / (1000 * TAP_SECONDS)])
        sight = observe_level(turn.observation)
        launch, tap = self.choose(sight)
        x, y = release(sight, launch)
        return Reply(msgspec.to_builtins(Shot(x, y, round(tap))))

    def choose(self, sight: Any) -> tuple[tuple[float, float], float]:
        """A launch vector, and milliseconds until the tap; blind ones are shown nothing."""
        raise NotImplementedError

    def notice(self, sight: ObservedLevel) -> None:
        """Takes note of what a level looks like at its end; most do not."""

    def save(self) -> bytes:
        """The state of the generator."""
        return msgspec.json.encode(self._rng.getstate())

    def load(self, state: bytes) -> None:
        """Goes on drawing where the saved agent was."""
        self._rng.setstate(msgspec.json.decode(state, type=GeneratorState))


def pick_level(menu: dict[str, Any]) -> int:
    """Where levels may be chosen, the next one left after that played last, all around; else 0, whatever comes.

    Where attempts have no limit, whatever comes is the same level for ever.
    """
    if not menu["selection"] or not menu["available"]:
        return 0
    return int(min(menu["available"], key=lambda number: (number <= menu["level"], number)))


class RandomShooter(Shooter):
    """Shoots to the right, at any angle and any moment."""

    may_be_blind = True

    def choose(self, sight: ObservedLevel | None) -> tuple[tuple[float, float], float]:
        """Any angle from slightly down to almost straight up."""
        angle = math.radians(self._rng.uniform(-15, 80))
        return (math.cos(angle), math.sin(angle)), self._rng.choice((0.0, self._rng.uniform(300, 2500)))


class NaiveShooter(Shooter):
    """Aims at a random pig, on the high or the low way, as if nothing stood between."""

    def choose(self, sight: ObservedLevel) -> tuple[tuple[float, float], float]:
        """A way to a pig; with none in reach, as far as it goes."""
        pigs = sight.of(*PIGS)
        target = self._rng.choice(pigs).centre if pigs else (sight.rest[0] + 200, sight.rest[1])
        launch = aim(sight, target, self._rng.random() < 0.5) or (math.sqrt(0.5), math.sqrt(0.5))
        return launch, tap_time(sight, launch, target)


class Planner(Shooter):
    """Rebuilds the level in its head from what it sees, tries shots there, and takes the best.

    It learns one law: whether birds fall or rise.
    """

    def __init__(self, spec: Spec, seed: int) -> None:
        super().__init__(spec, seed)
        self._upwards = False

    def notice(self, sight: ObservedLevel) -> None:
        """Learns from the path of the last bird which way birds fall."""
        if sight.rises is not None:
            self._upwards = sight.rises

    def save(self) -> bytes:
        """The state of the generator, and what was learnt."""
        return bytes((self._upwards,)) + super().save()

    def load(self, state: bytes) -> None:
        """Goes on where the saved agent was."""
        self._upwards = bool(state[0])
        super().load(state[1:])

    def choose(self, sight: ObservedLevel) -> tuple[tuple[float, float], float]:
        """The launch that does most in the imagined level, and, where the bird has a power, the best moment for it."""
        self.notice(sight)
        level = imagine(sight, self._upwards)
        launches = self._candidates(sight)
        worth = {launch: _worth(level, launch) for launch, _ in launches}
        best = sorted(launches, key=lambda shot: worth[shot[0]], reverse=True)[:TAPPED]
        plans = [(worth[launch], launch, 0.0) for launch, _ in best]
        for launch, target in best:
            for share in TAP_SHARES:
                if tap := tap_time(sight, launch, target, share):
                    plans.append((_worth(level, launch, tap), launch, tap))
        _, launch, tap = max(plans, key=lambda plan: plan[0])
        return launch, tap

    def _candidates(self, sight: ObservedLevel) -> list[tuple[tuple[float, float], tuple[float, float]]]:
        """Both ways to every pig and block, and some angles between."""
        targets = [seen.centre for seen in sight.of(*PIGS, "wood", "stone", "ice", "tnt")]
        shots = [
            (launch, target)
            for target in targets
            for high in (False, True)
            if (launch := aim(sight, target, high, RISE if self._upwards else GRAVITY))
        ]
        side = -1 if targets and targets[0][0] < sight.rest[0] else 1
        middle = targets[0] if targets else sight.rest
        for degrees in range(0, 71, 10):
            angle = math.radians(degrees + self._rng.uniform(-4, 4))
            up = -math.sin(angle) if self._upwards else math.sin(angle)
            shots.append(((side * math.cos(angle), up), middle))
        sure, rest = shots[:4], shots[4:]
        self._rng.shuffle(rest)
        return (sure + rest)[:IMAGINED]


class PassiveDetector:
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
        """Whether it has ever been alarmed; what it assumes is training before the test, else the first levels.

        Published trials are all training: as long as there was no test, that is what it watches.
        """
        watched = self._test or self._training
        known = (self._training if self._test else []) or watched[: self._rule.window]
        return bool(known) and bool(self._rule.alarms(watched, math.fsum(known) / len(known)))


def make_detector(spec: Spec, seed: int) -> PassiveDetector:
    """A detector around the naive agent."""
    return PassiveDetector(NaiveShooter(spec, seed), Rule(WATCHED))


def make_fall_detector(spec: Spec, seed: int) -> PassiveDetector:
    """The simpler detector around the naive agent: fewer than half of the last levels passed."""
    return PassiveDetector(NaiveShooter(spec, seed), Rule(WATCHED, threshold=0.5))


def tap_time(
    sight: ObservedLevel, launch: tuple[float, float], target: tuple[float, float], share: float | None = None
) -> float:
    """Milliseconds until the tap, after some share of the way to the target; 0 for a bird that has no power."""
    birds = [seen for seen in sight.objects if seen.look.startswith("bird_")]
    ready = min(birds, key=lambda seen: math.dist(seen.centre, sight.rest), default=None)
    if ready is None or ready.look not in TAPS:
        return 0.0
    way = abs(target[0] - sight.rest[0]) / sight.scale
    return 1000 * (share or TAPS[ready.look]) * way / (10.0 * max(abs(launch[0]), 0.1))


def _worth(level: Level, launch: tuple[float, float], tap: float = 0.0) -> float:
    """What a shot does in an imagined level."""
    return progress(replay(level, [launch], "sailon", tap / 1000))
