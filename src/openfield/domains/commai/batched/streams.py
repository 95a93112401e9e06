"""Streams of random numbers: one per environment, the same in compiled code, NumPy and plain Python.

The generator is SplitMix64: a counter that is mixed, so that many numbers of a stream can be made at once.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

STEP = 0x9E3779B97F4A7C15
FACTORS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
SHIFTS = (30, 27, 31, 11)
UNIT = 2.0**-53
_BLOCK = 64


def start_stream(seed: int) -> int:
    """Return the counter at which the stream of a seed begins."""
    return int(_mix(np.array([seed % 2**64], np.uint64) * np.uint64(STEP) + np.uint64(1))[0])


class DrawStream(random.Random):
    """A generator that draws what an environment of a batch draws: set it as `rng` of a single one.

    Only `random` follows the stream. Micro tasks and the schedulers of a batch use nothing else.
    """

    def __init__(self, seed: int = 0) -> None:
        super().__init__(0)
        self._counter = np.uint64(start_stream(seed))
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
