"""A batch: environments of micro tasks that hear one symbol each, all at once.

`factory.py` makes them: `CompiledBatch` where numba is installed, otherwise `PlainBatch`. Both give the same symbols
and rewards.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from openfield.domains.commai.settings import CommaiSettings
from openfield.errors import AgentProtocol, InvalidInput

Array = np.ndarray[Any, np.dtype[Any]]
MAX_SYMBOL = 255
STEP = 0x9E3779B97F4A7C15
FACTORS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
SHIFTS = (30, 27, 31, 11)
UNIT = 2.0**-53
_BLOCK = 64


class Batch(ABC):
    """Environments in lockstep. Each has its own curriculum, tasks and random numbers.

    After `reset`, every `step` gives each environment a symbol and returns the teacher's symbols with the rewards for
    what was heard, as `Environment.next` does for one. An environment whose curriculum has ended is `over` and says
    only spaces until `restart`. `training_info` holds facts that a learner must not know in a trial that counts.
    """

    arrays: Any = np
    """NumPy, or a module like it whose arrays a batch on a device takes and returns."""

    def __init__(
        self, curricula: Sequence[Sequence[str]], settings: CommaiSettings, seed: int | Sequence[int] = 0
    ) -> None:
        self.n = len(curricula)
        self._shape = (self.n,)
        self.curricula = curricula
        self.settings = settings
        different = dict.fromkeys(map(tuple, curricula))
        self.tasks = tuple(dict.fromkeys(name for curriculum in different for name in curriculum))
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

    @abstractmethod
    def step(self, symbols: Array) -> tuple[Array, Array]:
        """Let every environment hear a symbol; return the teacher's symbols and the rewards.

        Raises:
            AgentProtocol: There is not one symbol from 0 to 255 for each environment.
        """

    def _convert(self, symbols: Any) -> Array:
        """Return whole numbers of any kind as those that a step takes."""
        heard = np.asarray(symbols)
        if heard.shape != self._shape or heard.dtype.kind not in "iu":
            raise AgentProtocol(f"A batch of {self.n} hears as many whole numbers, not {heard.dtype} of {heard.shape}.")
        return heard.astype(np.int64)

    def _refuse(self, heard: Array) -> NoReturn:
        """Say that one of these numbers is not a symbol."""
        wrong = heard[(heard < 0) | (heard > MAX_SYMBOL)][0]
        raise AgentProtocol(f"A batch hears whole numbers from 0 to {MAX_SYMBOL}, not {wrong}.")

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
    def answers(self) -> Array:
        """Return the symbol that would be right now in each environment, or -1 where none is asked for.

        Only training may use it. Where several answers are right, it is a symbol of one of them.
        """

    @abstractmethod
    def _seed(self) -> None:
        """Set all streams to their start."""


def _spread(seed: int | Sequence[int], n: int) -> list[int]:
    """Return a seed for each environment."""
    if isinstance(seed, int | np.integer):
        return [int(seed) + number for number in range(n)]
    seeds = [int(each) for each in seed]
    if len(seeds) != n:
        raise InvalidInput(f"There are {len(seeds)} seeds for {n} environments.")
    return seeds


def start_streams(seeds: Sequence[int]) -> Array:
    """Return the counters at which the streams of seeds begin."""
    counters: Array = _mix(np.array([seed % 2**64 for seed in seeds], np.uint64) * np.uint64(STEP) + np.uint64(1))
    return counters


class DrawStream(random.Random):
    """A generator with the draws of one environment of a batch: set it as `rng` of a single one.

    It is SplitMix64: a counter that is mixed, so that many numbers of a stream can be made at once. The numbers are the
    same in compiled code, NumPy and plain Python.
    Only `random` follows the stream. Micro tasks and the schedulers of a batch use nothing else.
    """

    def __init__(self, seed: int = 0) -> None:
        super().__init__(0)
        self._counter = start_streams([seed])[0]
        self._ready: list[float] = []

    def random(self) -> float:
        """Return the next number, from 0 to 1."""
        if not self._ready:
            self._ready = self._draw_block()
        return self._ready.pop()

    def _draw_block(self) -> list[float]:
        """Return the next numbers, the last one first."""
        counters = self._counter + np.arange(1, _BLOCK + 1, dtype=np.uint64) * np.uint64(STEP)
        self._counter = counters[-1]
        numbers: list[float] = ((_mix(counters) >> np.uint64(SHIFTS[3])) * UNIT)[::-1].tolist()
        return numbers


def _mix(counters: Any) -> Any:
    """Return the numbers of the stream at these counters, of 64 bits each."""
    mixed = (counters ^ (counters >> np.uint64(SHIFTS[0]))) * np.uint64(FACTORS[0])
    mixed = (mixed ^ (mixed >> np.uint64(SHIFTS[1]))) * np.uint64(FACTORS[1])
    return mixed ^ (mixed >> np.uint64(SHIFTS[2]))
