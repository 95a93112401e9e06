"""The measures of the SAIL-ON programme that need one agent only: when novelty was detected, and whether too early.

Stands in metrics: one cell -> numbers of its trial. `baseline` has those that need a second agent.
"""

from __future__ import annotations

from openfield.journal.reader import CellRecord
from openfield.metrics.metric import Metric, Number
from openfield.metrics.stretches import split

FIRST = Number(
    name="first_detection",
    title="First detection",
    note="number of the first test episode that ended in a detection, from 1; one more than there are if none did",
    kind="count",
    better="",
    bounds=None,
)
CDT = Number(
    name="cdt",
    title="M2: correctly detected",
    note="share of trials whose first detection is after the onset",
    kind="rate",
)
FALSE_POSITIVE = Number(
    name="false_positive_trial",
    title="M2.1: false positive",
    note="share of trials with a detection before the onset",
    kind="rate",
    better="lower",
)
MISSED = Number(
    name="m1",
    title="M1: missed before detection",
    note="episodes missed between the onset and the detection, over correctly detected trials only",
    kind="count",
    better="lower",
    bounds=None,
)


def measure_programme(cell: CellRecord) -> dict[str, float | None]:
    """First detection, M1, M2 and M2.1; nothing is defined in a trial that never reached an onset."""
    parts = split(cell)
    if not parts.after:
        return dict.fromkeys(number.name for number in (FIRST, CDT, FALSE_POSITIVE, MISSED))
    test = [*parts.before, *parts.after]
    first = next((number for number, episode in enumerate(test) if episode.detected), None)
    correct = first is not None and first >= len(parts.before)
    return {
        "first_detection": float((len(test) if first is None else first) + 1),
        "cdt": float(correct),
        "false_positive_trial": float(first is not None and not correct),
        "m1": float(first - len(parts.before)) if correct and first is not None else None,
    }


PROGRAMME = Metric(
    name="programme",
    note="The measures of the SAIL-ON programme that need one agent only.",
    numbers=(FIRST, CDT, FALSE_POSITIVE, MISSED),
    measure=measure_programme,
)
