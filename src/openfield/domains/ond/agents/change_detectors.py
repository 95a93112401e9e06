"""Change detectors: when did the samples of a stream begin to look unknown?

Each takes values from 0 to 1 that are uniform while nothing changes (`Rarity`). It is calibrated to give a false alarm
in a stated share of streams of a stated length.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]


class Rarity:
    """How rare a score is among held-out known samples: about uniform from 0 to 1 while nothing changes."""

    def __init__(self, scores: Floats) -> None:
        self._sorted = np.sort(np.asarray(scores, dtype=float))

    def __call__(self, scores: Floats) -> Floats:
        """Return the share of known samples that look more known than each of these."""
        return np.asarray(1 - np.searchsorted(self._sorted, scores, "right") / len(self._sorted))


class ChangeDetector(Protocol):
    """Takes rarities one by one and has a statistic that grows when they are too high."""

    value: float

    def push(self, rarity: float) -> float:
        """Take one more rarity and return the statistic."""
        ...


class Cusum:
    """The sum of the excess over the usual mean, never below 0."""

    def __init__(self, slack: float = 0.15) -> None:
        self._slack, self.value = 0.5 + slack, 0.0

    def push(self, rarity: float) -> float:
        """Take one more rarity and return the statistic."""
        self.value = max(0.0, self.value + rarity - self._slack)
        return self.value


class PageHinkley:
    """The rise of the sum of deviations from the running mean above its lowest point."""

    def __init__(self, slack: float = 0.05) -> None:
        self._slack, self.value = slack, 0.0
        self._count, self._mean, self._sum, self._lowest = 0, 0.0, 0.0, 0.0

    def push(self, rarity: float) -> float:
        """Take one more rarity and return the statistic."""
        self._count += 1
        self._mean += (rarity - self._mean) / self._count
        self._sum += rarity - self._mean - self._slack
        self._lowest = min(self._lowest, self._sum)
        self.value = self._sum - self._lowest
        return self.value


class WindowMean:
    """How far the mean of the last values lies above one half, in standard deviations."""

    def __init__(self, size: int = 30) -> None:
        self._recent: list[float] = []
        self._size, self.value = size, 0.0

    def push(self, rarity: float) -> float:
        """Take one more rarity and return the statistic."""
        self._recent = [*self._recent[-self._size + 1 :], rarity]
        excess = sum(self._recent) / len(self._recent) - 0.5
        self.value = excess * math.sqrt(12 * len(self._recent)) if len(self._recent) >= self._size // 2 else 0.0
        return self.value


CHANGE_DETECTORS: dict[str, type[ChangeDetector]] = {"cusum": Cusum, "page-hinkley": PageHinkley, "window": WindowMean}


def calibrate(kind: str, rarities: Floats, length: int, rate: float, seed: int, streams: int = 400) -> float:
    """Return the threshold at which a change detector gives a false alarm in this share of streams of this length.

    Streams are drawn from the rarities of held-out known samples, each ranked against the others.
    """
    rng = np.random.default_rng(seed)
    highest = []
    for _ in range(streams):
        detector = CHANGE_DETECTORS[kind]()
        highest.append(max(detector.push(value) for value in rng.choice(rarities, length).tolist()))
    return float(np.quantile(highest, 1 - rate)) * (1 + _margin(len(rarities)))


def _margin(held: int) -> float:
    """Return the share to add to a quantile of few held-out samples, whose own spread is part of the error.

    Below a hundred it grows faster: 95 % of streams of 250 samples stay below 2.8 times the quantile with 20 held-out
    samples, 1.7 with 30, 1.4 with 50, 1.3 with 80 and 1.2 with 120.
    """
    return 2 / math.sqrt(held) + 0.35 * max(0.0, 100 / held - 1)


def probability(statistic: float, threshold: float) -> float:
    """Return a statistic as a probability that is one half at the threshold."""
    return statistic / (statistic + threshold) if statistic > 0 else 0.0
