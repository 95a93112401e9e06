"""The reference agent: plays as the labels of training say, and never believes that anything has changed.

An agent of the Doom domains; its loss under a novelty is the measure of the novelty's difficulty.
"""

from __future__ import annotations

import random

import msgspec

from openfield.agents.random import GeneratorState
from openfield.core import Ask, Belief, Reply, Spec, Turn
from openfield.domains.doom.agents.expert_policy import Reference
from openfield.domains.doom.agents.sense import scene_of, task_of, walls_of


class ReferenceAgent:
    """Does what a good player does in the world as it was."""

    def __init__(self, spec: Spec, seed: int) -> None:
        self._task = task_of(spec)
        self._rng = random.Random(seed)
        self._mind = Reference(self._task, (), self._rng)

    def __call__(self, turn: Turn) -> Reply:
        """Answers a turn."""
        if turn.ask is not Ask.ACT:
            return Reply(None, Belief(0.0, 0))
        if turn.first:
            self._mind = Reference(self._task, walls_of(turn.observation), self._rng)
        return Reply(self._mind.choose(scene_of(turn.observation)), Belief(0.0, 0))

    def save(self) -> bytes:
        """The state of its generator; walls are told anew with every episode."""
        return msgspec.json.encode(self._rng.getstate())

    def load(self, state: bytes) -> None:
        """Goes on as the saved agent would."""
        self._rng.setstate(msgspec.json.decode(state, type=GeneratorState))
