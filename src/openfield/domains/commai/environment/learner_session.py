"""A learner and an environment in conversation, without a rollout: nothing is recorded but the counts per task.

Benchmarks, tests and task authors use it. Recorded trials go through a rollout instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from openfield.domains.commai.environment.environment import Environment, Tally
from openfield.errors import AgentProtocol, InvalidInput


class Learner(Protocol):
    """Answers every symbol with a symbol, and gets every reward."""

    def next(self, symbol: str) -> str | int | None:
        """Take the teacher's symbol and return the learner's."""
        ...

    def reward(self, reward: int) -> None:
        """Take the reward of the last symbol, 0 included, just before the next symbol arrives; by default ignore it."""
        return


class LearnerSession:
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
        """Play until the curriculum is finished, `stop` is called or `steps` are done; return the steps played."""
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
        """End `run` before its next step."""
        self.environment.halted = True

    @property
    def reward(self) -> int:
        """The sum of all rewards."""
        return sum(tally.reward for tally in self.tallies().values())

    def tallies(self) -> dict[str, Tally]:
        """Return steps, instances and rewards by task."""
        return self.environment.tallies()


class LearnerAdapter:
    """Turns any object with `next(symbol)` into a learner. `reward` may be missing; symbols may be bytes or numbers."""

    def __init__(self, learner: Any, name: str = "") -> None:
        self.name = name or type(learner).__name__
        if not callable(getattr(learner, "next", None)):
            raise InvalidInput(f"{self.name} is not a learner: it has no method next(symbol).")
        self._learner = learner
        self._reward = getattr(learner, "try_reward", None) or getattr(learner, "reward", None)

    def next(self, symbol: str) -> str | None:
        """Return the learner's answer as a character."""
        answer: Any = self._learner.next(symbol)
        if isinstance(answer, bytes):
            answer = answer.decode("latin-1")
        if answer is None or (isinstance(answer, str) and len(answer) == 1 and ord(answer) < 256):
            return answer
        if isinstance(answer, int) and str(answer) in "01":
            return str(answer)
        raise AgentProtocol(f"{self.name} said {answer!r}. A symbol is one character with a code from 0 to 255.")

    def reward(self, reward: int) -> None:
        """Tell the learner its reward if it has a method for it."""
        if self._reward is not None:
            self._reward(reward)
