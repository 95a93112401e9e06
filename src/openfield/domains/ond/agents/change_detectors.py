"""Change detectors: when did the samples of a stream begin to look unknown?

Each takes values from 0 to 1 that are uniform while nothing changes (`Rarity`). It is calibrated to give a false alarm
in a stated share of streams of a stated length. The rules of `openfield.agents.detectors` are others for a reason: they
judge whole episodes, of which training has few, by their spread; here a stream has hundreds of ranked samples.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

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


def cusum(rarities: Iterable[float], slack: float = 0.15) -> Iterator[float]:
    """Yield the sum of the excess over the usual mean, never below 0."""
    value, usual = 0.0, 0.5 + slack
    for rarity in rarities:
        value = max(0.0, value + rarity - usual)
        yield value


def page_hinkley(rarities: Iterable[float], slack: float = 0.05) -> Iterator[float]:
    """Yield the rise of the sum of deviations from the running mean above its lowest point."""
    mean = total = lowest = 0.0
    for count, rarity in enumerate(rarities, 1):
        mean += (rarity - mean) / count
        total += rarity - mean - slack
        lowest = min(lowest, total)
        yield total - lowest


def window_mean(rarities: Iterable[float], size: int = 30) -> Iterator[float]:
    """Yield how far the mean of the last values lies above one half, in standard deviations."""
    recent: deque[float] = deque(maxlen=size)
    for rarity in rarities:
        recent.append(rarity)
        excess = sum(recent) / len(recent) - 0.5
        yield excess * math.sqrt(12 * len(recent)) if len(recent) >= size // 2 else 0.0


CHANGE_DETECTORS: dict[str, Callable[[Iterable[float]], Iterator[float]]] = {
    "cusum": cusum,
    "page-hinkley": page_hinkley,
    "window": window_mean,
}
"""From rarities, one by one, to a statistic that grows when they are too high."""


def calibrate(kind: str, rarities: Floats, length: int, rate: float, seed: int, streams: int = 400) -> float:
    """Return the threshold at which a change detector gives a false alarm in this share of streams of this length.

    Streams are drawn from the rarities of held-out known samples, each ranked against the others.
    """
    rng = np.random.default_rng(seed)
    highest = [max(CHANGE_DETECTORS[kind](rng.choice(rarities, length).tolist())) for _ in range(streams)]
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
