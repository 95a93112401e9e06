"""How well the agent did in each stretch of a trial.

Stands in metrics: one cell -> numbers of its trial.
"""

from __future__ import annotations

from openfield.journal.reader import CellRecord
from openfield.metrics.metric import Metric, Number
from openfield.metrics.stretches import mean, performances, split

TRAINING = Number(name="training", title="Performance in training", note="mean over the training episodes")
BEFORE = Number(
    name="before", title="Performance before the onset", note="mean over the test episodes before the onset"
)
AFTER = Number(name="after", title="Performance after the onset", note="mean over the test episodes from the onset on")


def measure_performance(cell: CellRecord) -> dict[str, float | None]:
    """The mean performance in training, before the onset and from it on."""
    parts = split(cell)
    return {
        "training": mean(performances(parts.training)),
        "before": mean(performances(parts.before)),
        "after": mean(performances(parts.after)),
    }


PERFORMANCE = Metric(
    name="performance",
    note="How well the agent did: in training, and in the test before and after the world changed.",
    numbers=(TRAINING, BEFORE, AFTER),
    measure=measure_performance,
)
