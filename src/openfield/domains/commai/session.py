"""A learner and an environment in conversation, with the statistics of the original.

This is the domain's own loop; trials that are recorded go through a rollout instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from openfield.domains.commai.engine import Environment, Tally


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
        observe: Called after each step with the teacher's symbol, the learner's and the reward; costs speed.
    """

    def __init__(
        self,
        environment: Environment,
        learner: Learner,
        observe: Callable[[str, str | int | None, int], None] | None = None,
    ) -> None:
        self.environment = environment
        self.learner = learner
        self.steps = 0
        self._observe = observe
        self._heard: str | int | None = None
        self._stopped = False

    def run(self, steps: int | None = None) -> int:
        """Goes on until the curriculum is finished, somebody stops it, or that many steps are done; returns how many."""
        if self._observe is not None:
            return self._run_observed(steps, self._observe)
        environment, count = self.environment, 0
        exchange, answer, reward = environment.next, self.learner.next, self.learner.reward
        heard, budget = self._heard, steps if steps is not None else -1
        self._stopped = False
        try:
            while count != budget and not environment.over and not self._stopped:
                symbol, paid = exchange(heard)
                count += 1
                reward(paid)
                heard = answer(symbol)
        finally:
            self._heard = heard
            self.steps += count
        return count

    def stop(self) -> None:
        """Ends `run` before its next step."""
        self._stopped = True

    @property
    def reward(self) -> int:
        """The sum of all rewards."""
        return sum(tally.reward for tally in self.books().values())

    def books(self) -> dict[str, Tally]:
        """Steps, instances and rewards by task."""
        return self.environment.books()

    def _run_observed(self, steps: int | None, observe: Callable[[str, str | int | None, int], None]) -> int:
        count, budget = 0, steps if steps is not None else -1
        self._stopped = False
        while count != budget and not self.environment.over and not self._stopped:
            symbol, paid = self.environment.next(self._heard)
            count += 1
            self.steps += 1
            self.learner.reward(paid)
            self._heard = self.learner.next(symbol)
            observe(symbol, self._heard, paid)
        return count
