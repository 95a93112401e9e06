"""An agent that wraps another one and detects novelty from the levels it passes, as the published baselines do."""

from __future__ import annotations

import math

from openfield.core import Agent, Belief, Reply, Spec, Turn
from openfield.domains.birds.agents.shooters import NaiveShooter
from openfield.metrics.detection import Rule

WINDOW = 5
"""Levels in the moving average."""


class PassiveDetector:
    """Plays as another agent does, and believes in a novelty once that agent's pass rate has changed."""

    def __init__(self, agent: Agent, rule: Rule) -> None:
        self._agent, self._rule = agent, rule
        self._training: list[float] = []
        self._test: list[float] = []

    def __call__(self, turn: Turn) -> Reply:
        """Answer as the wrapped agent does, and add a belief."""
        if turn.last is not None:
            passed = float((turn.feedback or {}).get("state") == "won")
            (self._training if turn.phase == "training" else self._test).append(passed)
        answer = self._agent(turn)
        return Reply(answer.action, Belief(float(self._novel)))

    @property
    def _novel(self) -> bool:
        """True once the rule has raised an alarm.

        The normal pass rate is that of training if a test has begun, else that of the first levels. Published trials
        have no test, so training itself is watched until one begins.
        """
        watched = self._test or self._training
        known = (self._training if self._test else []) or watched[: self._rule.window]
        return bool(known) and bool(self._rule.alarms(watched, math.fsum(known) / len(known)))


def make_passive_detector(spec: Spec, seed: int) -> PassiveDetector:
    """Make a detector around the naive agent."""
    return PassiveDetector(NaiveShooter(spec, seed), Rule(WINDOW))


def make_fall_detector(spec: Spec, seed: int) -> PassiveDetector:
    """Make the simpler detector around the naive agent: alarm when fewer than half of the last levels were passed."""
    return PassiveDetector(NaiveShooter(spec, seed), Rule(WINDOW, threshold=0.5))
