"""A batch: environments of micro tasks that hear one symbol each, all at once.

`factory.py` makes them: `CompiledBatch` where numba is installed, otherwise `PlainBatch`. Both give the same symbols
and rewards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from openfield.domains.commai.batched.streams import DrawStream
from openfield.domains.commai.settings import CommaiSettings
from openfield.errors import AgentProtocol, InvalidInput

Array = np.ndarray[Any, np.dtype[Any]]
MAX_SYMBOL = 255


class Batch(ABC):
    """Environments in lockstep. Each has its own curriculum, tasks and random numbers.

    After `reset`, every `step` gives each environment a symbol and returns the teacher's symbols with the rewards for
    what was heard, as `Environment.next` does for one. An environment whose curriculum has ended is `over` and says
    only spaces until `restart`. What a learner may not know in a trial that counts is in `training_info`.
    """

    def __init__(
        self, curricula: Sequence[Sequence[str]], settings: CommaiSettings, seed: int | Sequence[int] = 0
    ) -> None:
        self.n = len(curricula)
        self.curricula = curricula
        self.settings = settings
        self.tasks = tuple(dict.fromkeys(name for curriculum in curricula for name in curriculum))
        """The names of all tasks; `training_info` has numbers of them."""
        self.seeds = _spread(seed, self.n)

    def stream(self, number: int) -> DrawStream:
        """Return the random numbers of an environment from its start: a single one that draws them does the same."""
        return DrawStream(self.seeds[number])

    def reset(self, seed: int | Sequence[int] | None = None) -> Array:
        """Start all environments from their seeds, or from new ones, and return the teacher's first symbols."""
        if seed is not None:
            self.seeds = _spread(seed, self.n)
        self._seed()
        return self.restart(np.arange(self.n))

    @abstractmethod
    def restart(self, which: Array) -> Array:
        """Start the curricula of some environments anew, with further draws; return the last symbols of all."""

    def step(self, symbols: Array) -> tuple[Array, Array]:
        """Let every environment hear a symbol; return the teacher's symbols and the rewards.

        Raises:
            AgentProtocol: There is not one symbol from 0 to 255 for each environment.
        """
        heard = np.asarray(symbols)
        if heard.shape != (self.n,) or heard.dtype.kind not in "iu":
            raise AgentProtocol(f"A batch of {self.n} hears as many whole numbers, not {heard.dtype} of {heard.shape}.")
        heard = heard.astype(np.int64, copy=False)
        if heard.view(np.uint64).max() > MAX_SYMBOL:
            wrong = heard[(heard < 0) | (heard > MAX_SYMBOL)][0]
            raise AgentProtocol(f"A batch hears whole numbers from 0 to {MAX_SYMBOL}, not {wrong}.")
        return self._step(heard)

    @property
    @abstractmethod
    def over(self) -> Array:
        """Which curricula have ended."""

    @abstractmethod
    def training_info(self) -> dict[str, Array]:
        """Return what only training may use, by environment.

        `task` is the number of the current task in `tasks`, `instance` counts those that have ended, `ended` is true
        where one ended in the last step, and `solved` is true if the one that ended last was solved.
        """

    @abstractmethod
    def _seed(self) -> None:
        """Set all streams to their start."""

    @abstractmethod
    def _step(self, heard: Array) -> tuple[Array, Array]:
        """Step with checked symbols."""


def _spread(seed: int | Sequence[int], n: int) -> list[int]:
    """Return a seed for each environment."""
    if isinstance(seed, int | np.integer):
        return [int(seed) + number for number in range(n)]
    seeds = [int(each) for each in seed]
    if len(seeds) != n:
        raise InvalidInput(f"There are {len(seeds)} seeds for {n} environments.")
    return seeds
