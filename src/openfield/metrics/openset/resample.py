"""Intervals for a single test, by resampling its samples.

Stands beside `stats.py`, which speaks about many trials; one test has only its samples to speak from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from openfield.metrics.stats import Estimate

Measure = Callable[[NDArray[np.int64]], Mapping[str, float | None]]
REPEATS = 200
NOTE = "one test: interval from resampling its samples"


def resample(
    measure: Measure, unknown: NDArray[np.bool_], repeats: int = REPEATS, seed: int = 0
) -> dict[str, Estimate]:
    """Numbers with the middle 95 % of their values on resampled samples, known and unknown ones drawn apart.

    Args:
        measure: Numbers of the samples at some indices.
        unknown: Which samples are unknown.
        repeats: How often samples are drawn.
        seed: Of the draws.
    """
    rng, parts = np.random.default_rng(seed), [np.flatnonzero(unknown), np.flatnonzero(~unknown)]
    drawn = [
        measure(np.concatenate([rng.choice(part, len(part)) for part in parts if len(part)])) for _ in range(repeats)
    ]
    whole = measure(np.arange(len(unknown)))
    return {name: _estimate(value, [one[name] for one in drawn], len(unknown)) for name, value in whole.items()}


def _estimate(value: float | None, drawn: list[float | None], n: int) -> Estimate:
    present = [one for one in drawn if one is not None]
    if value is None or not present:
        return Estimate(value, None, None, n, NOTE)
    low, high = np.quantile(present, (0.025, 0.975))
    return Estimate(value, float(min(low, value)), float(max(high, value)), n, NOTE)
