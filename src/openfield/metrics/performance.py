"""How well the agent did: in each period of a trial, what the change cost it, and how far it recovered.

One cell -> numbers of its trial, for the metrics `performance` and `adaptation`.
"""

from __future__ import annotations

import math

from openfield.journal.reader import CellRecord
from openfield.metrics.metric import built_in
from openfield.metrics.periods import last_third, mean, performances, split_periods


def measure_performance(cell: CellRecord) -> dict[str, float | None]:
    """Compute the mean performance in training, before the onset and from it on."""
    periods = split_periods(cell)
    return {
        "training": mean(performances(periods.training)),
        "before": mean(performances(periods.before)),
        "after": mean(performances(periods.after)),
    }


def measure_adaptation(cell: CellRecord) -> dict[str, float | None]:
    """Compute the performance before and after the onset, at the end, and the area under the curve after it."""
    periods = split_periods(cell)
    curve = performances(periods.after)
    before, after = mean(performances(periods.before)), mean(curve)
    return {
        "before": before,
        "after": after,
        "change": None if before is None or after is None else after - before,
        "asymptotic": mean(last_third(curve)),
        "area": normalised_area(curve),
    }


def normalised_area(curve: list[float]) -> float | None:
    """Return the area under a curve of unit steps, divided by its length; a single point is its own area."""
    if len(curve) < 2:
        return mean(curve)
    return (math.fsum(curve) - (curve[0] + curve[-1]) / 2) / (len(curve) - 1)


PERFORMANCE = built_in("performance", measure_performance)
ADAPTATION = built_in("adaptation", measure_adaptation)
