"""A learner and an environment in conversation, with the statistics of the original.

This is the domain's own loop; trials that are recorded go through a rollout instead.
"""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

from openfield.domains.commai.environment.environment import Environment, Tally
from openfield.errors import AgentProtocol, InvalidInput


class Learner(Protocol):
    """Answers every symbol with a symbol, and is told every reward."""

    def next(self, symbol: str) -> str | int | None:
        """Takes the teacher's symbol, gives its own."""
        ...

    def reward(self, reward: int) -> None:
        """Is told what its last symbol earned, 0 included, just before the next one arrives."""
        ...


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
        return sum(tally.reward for tally in self.tallies().values())

    def tallies(self) -> dict[str, Tally]:
        """Steps, instances and rewards by task."""
        return self.environment.tallies()


class LearnerAdapter:
    """Makes a learner of anything that has `next(symbol)`: `reward` may be missing, symbols may be bytes or numbers.

    Args:
        learner: The object.
        name: What errors call it.
    """

    def __init__(self, learner: Any, name: str = "") -> None:
        self.name = name or type(learner).__name__
        if not callable(getattr(learner, "next", None)):
            raise InvalidInput(f"{self.name} is no learner: it needs a method next(symbol).")
        self._learner = learner
        self._reward = getattr(learner, "reward", None)

    def next(self, symbol: str) -> str | None:
        """The learner's answer as a character."""
        answer: Any = self._learner.next(symbol)
        if isinstance(answer, bytes):
            answer = answer.decode("latin-1")
        if answer is None or (isinstance(answer, str) and len(answer) == 1 and ord(answer) < 256):
            return answer
        if isinstance(answer, int) and str(answer) in "01":
            return str(answer)
        raise AgentProtocol(f"{self.name} said {answer!r}. A symbol is one character with a code from 0 to 255.")

    def reward(self, reward: int) -> None:
        """Tells the learner, if it wants to know."""
        if self._reward is not None:
            self._reward(reward)


def load_learner(path: str, *args: Any) -> LearnerAdapter:
    """The learner behind a dotted path like `my_learners.Clever` or `my_learners:Clever`, made with these arguments.

    Raises:
        InvalidInput: There is no such class.
    """
    module_name, _, name = path.replace(":", ".").rpartition(".")
    if not module_name:
        raise InvalidInput(f"Learner '{path}' is no dotted path. Write it like 'my_module.MyLearner'.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        made = getattr(importlib.import_module(module_name), name)(*args)
    except ModuleNotFoundError as error:
        raise InvalidInput(f"Learner '{path}' cannot be imported: {error}.") from error
    except AttributeError:
        raise InvalidInput(f"Learner '{path}': the module {module_name} has no class {name}.") from None
    return LearnerAdapter(made, path)
