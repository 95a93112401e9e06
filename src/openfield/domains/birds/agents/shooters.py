"""The shooter agents: the loop they share, one that shoots at random, and one that aims at a pig.

They see what every agent sees. `wire.remote_agent` plays the same classes over TCP.
"""

from __future__ import annotations

import math
import random
from typing import Any

import msgspec

from openfield.agents.random import SavesGenerator
from openfield.core import Ask, Belief, Reply, Spec, Turn
from openfield.domains.birds.actions import TAP_SECONDS, Load, Shot
from openfield.domains.birds.agents.observed_level import ObservedLevel, Point, observe_level
from openfield.errors import AgentFault

PIGS = ("pig", "novel")


class Shooter(SavesGenerator):
    """Answers every turn; subclasses choose the shots."""

    may_be_blind = False
    """True if it chooses without an observation."""

    def __init__(self, spec: Spec, seed: int) -> None:
        self._blind = spec.observations is not None  # pictures and tables of numbers are for learners
        if self._blind and not self.may_be_blind:
            raise AgentFault("This agent reads ground truth, not pictures or tables of numbers: --set observe=objects")
        self._rng = random.Random(seed)

    def __call__(self, turn: Turn) -> Reply:
        """Answer a turn."""
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
        level = observe_level(turn.observation)
        launch, tap = self.choose(level)
        x, y = level.release(launch)
        return Reply(msgspec.to_builtins(Shot(x, y, round(tap))))

    def choose(self, level: Any) -> tuple[Point, float]:
        """Choose a launch vector and the milliseconds until the tap; a blind agent gets None as its level."""
        raise NotImplementedError

    def notice(self, level: ObservedLevel) -> None:
        """Learn from a level at its end; most agents do not."""


def pick_level(menu: dict[str, Any]) -> int:
    """Return the number of the available level after the last one, or 0 for whatever comes next.

    Where attempts have no limit, the level that comes next is the same one for ever. So the agent chooses where the set
    allows it.
    """
    if not menu["selection"] or not menu["available"]:
        return 0
    return int(min(menu["available"], key=lambda number: (number <= menu["level"], number)))


class RandomShooter(Shooter):
    """Shoots to the right, at any angle and with a tap at any moment."""

    may_be_blind = True

    def choose(self, level: ObservedLevel | None) -> tuple[Point, float]:
        """Draw an angle from slightly downwards to almost straight up."""
        angle = math.radians(self._rng.uniform(-15, 80))
        return (math.cos(angle), math.sin(angle)), self._rng.choice((0.0, self._rng.uniform(300, 2500)))


class NaiveShooter(Shooter):
    """Aims at a random pig, on the high or the low arc, as if nothing stood between."""

    def choose(self, level: ObservedLevel) -> tuple[Point, float]:
        """Aim at a pig; without one in reach, shoot as far as possible."""
        pigs = level.of(*PIGS)
        target = self._rng.choice(pigs).centre if pigs else (level.rest[0] + 200, level.rest[1])
        launch = level.aim(target, self._rng.random() < 0.5) or (math.sqrt(0.5), math.sqrt(0.5))
        return launch, level.tap_time(launch, target)
