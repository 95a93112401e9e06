"""An agent that does anything allowed, to have something to compare with.

Works in every domain whose `Spec` names its actions.
"""

from __future__ import annotations

import random

import msgspec

from openfield.core import Ask, Belief, Reply, Spec, Turn
from openfield.errors import InvalidInput

GeneratorState = tuple[int, tuple[int, ...], float | None]
"""What `random.Random.getstate` gives; as its type it is read back from JSON as the tuples it must be."""


class RandomAgent:
    """Draws every action from the action space, and believes nothing has changed."""

    def __init__(self, spec: Spec, seed: int) -> None:
        if spec.actions is None:
            raise InvalidInput(f"The random agent cannot play {spec.domain}: it declares no action space.")
        self._actions = spec.actions
        self._rng = random.Random(seed)

    def __call__(self, turn: Turn) -> Reply:
        """Answers a turn."""
        if turn.ask is Ask.ACT:
            return Reply(self._actions.sample(self._rng))
        return Reply(None, Belief(0.0))

    def save(self) -> bytes:
        """The state of the generator."""
        return msgspec.json.encode(self._rng.getstate())

    def load(self, state: bytes) -> None:
        """Goes on drawing where the saved agent was."""
        self._rng.setstate(msgspec.json.decode(state, type=GeneratorState))
