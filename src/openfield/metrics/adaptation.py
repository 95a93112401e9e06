"""What the change cost the agent, and how far it recovered.

Stands in metrics: one cell -> numbers of its trial. It shares the performances before and after with `performance`.
"""

from __future__ import annotations

import math

from openfield.journal.reader import CellRecord
from openfield.metrics.metric import Metric, Number
from openfield.metrics.performance import AFTER, BEFORE
from openfield.metrics.stretches import last_third, mean, performances, split

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


def measure_adaptation(cell: CellRecord) -> dict[str, float | None]:
    """Performance before and after the onset, at the end, and the area under the curve after it."""
    parts = split(cell)
    curve = performances(parts.after)
    before, after = mean(performances(parts.before)), mean(curve)
    return {
        "before": before,
        "after": after,
        "change": None if before is None or after is None else after - before,
        "asymptotic": mean(last_third(curve)),
        "area": normalised_area(curve),
    }


def normalised_area(curve: list[float]) -> float | None:
    """The area under a curve of unit steps, divided by its length; a single point is its own area."""
    if len(curve) < 2:
        return mean(curve)
    return (math.fsum(curve) - (curve[0] + curve[-1]) / 2) / (len(curve) - 1)


ADAPTATION = Metric(
    name="adaptation",
    note="What the change cost the agent, and how far it recovered.",
    numbers=(BEFORE, AFTER, CHANGE, ASYMPTOTIC, AREA),
    measure=measure_adaptation,
)
