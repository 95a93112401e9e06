"""A random agent that does not give up."""

from __future__ import annotations

from openfield.agents.random import RandomAgent
from openfield.core import Spec
from openfield.spaces import Choice


class PersistentRandomAgent(RandomAgent):
    """Draws every action but `give_up`, which would end most episodes within ten ticks."""

    def __init__(self, spec: Spec, seed: int) -> None:
        super().__init__(spec, seed)
        if isinstance(self._actions, Choice):
            self._actions = Choice(tuple(name for name in self._actions.options if name != "give_up"))
