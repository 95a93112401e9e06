"""A learner and an environment in conversation, with the statistics of the original.

This is the domain's own loop; trials that are recorded go through a rollout instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Protocol

from openfield.domains.commai.environment.loop import Environment, Tally


class Learner(Protocol):
    """Answers every symbol with a symbol, and is told every reward."""

    def next(self, symbol: str) -> str | int | None:
        """Takes the teacher's symbol, gives its own."""
        ...

    def reward(self, reward: int) -> None:
        """Is told what its last symbol earned, 0 included, just before the next one arrives."""
        ...


class Session:
    """A conversation that can be stopped and continued.

    Args:
        environment: The teacher.
        learner: The learner.
        observe: Called after each step with the teacher's symbol, the reward and the learner's symbol.
    """

    def __init__(
        self,
        environment: Environment,
        learner: Learner,
        observe: Callable[[str, int, str | int | None], None] | None = None,
    ) -> None:
        self.environment = environment
        self.learner = learner
        self.steps = 0
        self._observe = observe
        self._heard: str | int | None = None

    def run(self, steps: int | None = None) -> int:
        """Goes on until the curriculum is finished, somebody stops it, or these steps are done; returns how many."""
        environment, heard, observe = self.environment, self._heard, self._observe
        environment.halted = environment.over
        exchange, answer, reward = environment.next, self.learner.next, self.learner.reward
        count = 0
        budget: Iterable[int] = itertools.count(1) if steps is None else range(1, steps + 1)
        try:
            for count in budget if not environment.halted else ():  # noqa: B007 (counted for the caller)
                symbol, paid = exchange(heard)
                reward(paid)
                heard = answer(symbol)
                if observe is not None:
                    observe(symbol, paid, heard)
                if environment.halted:
                    break
        finally:
            self._heard = heard
            self.steps += count
        return count

    def stop(self) -> None:
        """Ends `run` before its next step."""
        self.environment.halted = True

    @property
    def reward(self) -> int:
        """The sum of all rewards."""
        return sum(tally.reward for tally in self.books().values())

    def books(self) -> dict[str, Tally]:
        """Steps, instances and rewards by task."""
        return self.environment.books()
