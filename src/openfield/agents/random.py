"""An agent that draws random actions, as a baseline.

It works in every domain whose `Spec` declares an action space.
"""

from __future__ import annotations

import random

import msgspec

from openfield.core import Ask, Belief, Reply, Spec, Turn
from openfield.errors import InvalidInput

GeneratorState = tuple[int, tuple[int, ...], float | None]
"""What `random.Random.getstate` returns; with this type JSON is read back as the tuples it needs."""


class SavesGenerator:
    """An agent whose state is that of its generator `_rng`."""

    _rng: random.Random

    def save(self) -> bytes:
        """Return the state of the generator."""
        return msgspec.json.encode(self._rng.getstate())

    def load(self, state: bytes) -> None:
        """Restore the state of the generator."""
        self._rng.setstate(msgspec.json.decode(state, type=GeneratorState))


class RandomAgent(SavesGenerator):
    """Draws every action from the action space, and believes that nothing has changed."""

    def __init__(self, spec: Spec, seed: int) -> None:
        if spec.actions is None:
            raise InvalidInput(f"The random agent cannot play {spec.domain}: it declares no action space.")
        self._actions = spec.actions
        self._rng = random.Random(seed)

    def __call__(self, turn: Turn) -> Reply:
        """Answer a turn."""
        if turn.ask is Ask.ACT:
            return Reply(self._actions.sample(self._rng))
        return Reply(None, Belief(0.0))
