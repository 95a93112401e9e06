"""How well the agent did: in each period of a trial, what the change cost it, and how far it recovered.

One cell -> numbers of its trial, for the metrics `performance` and `adaptation`.
"""

from __future__ import annotations

import math

from openfield.journal.reader import CellRecord
from openfield.metrics.metric import Metric, Number
from openfield.metrics.periods import last_third, mean, performances, split_periods

TRAINING = Number(name="training", title="Performance in training", note="mean over the training episodes")
BEFORE = Number(
    name="before", title="Performance before the onset", note="mean over the test episodes before the onset"
)
AFTER = Number(name="after", title="Performance after the onset", note="mean over the test episodes from the onset on")
CHANGE = Number(
    name="change",
    title="Change at the onset",
    note="performance after the onset minus before it, within each trial",
    bounds=(-1.0, 1.0),
)
ASYMPTOTIC = Number(
    name="asymptotic",
    title="Asymptotic performance",
    note="mean over the last third (rounded up) of the episodes after the onset",
)
AREA = Number(
    name="area",
    title="Area under the curve",
    note="area under the performance after the onset (trapezoids), divided by its length",
)


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


PERFORMANCE = Metric(
    name="performance",
    note="How well the agent did: in training, and in the test before and after the world changed.",
    numbers=(TRAINING, BEFORE, AFTER),
    measure=measure_performance,
)
ADAPTATION = Metric(
    name="adaptation",
    note="What the change cost the agent, and how far it recovered.",
    numbers=(BEFORE, AFTER, CHANGE, ASYMPTOTIC, AREA),
    measure=measure_adaptation,
)
