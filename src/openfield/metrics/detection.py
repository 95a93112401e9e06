"""Whether, how fast and how reliably the agent noticed that its world had changed.

One cell -> numbers of its trial. The last belief reported in an episode counts. Beliefs in training never count: there
the agent still learns what normal is. Detections in the test before the onset are false alarms. In a trial that never
reached its onset there is nothing to detect: no rate and no delay are defined.
"""

from __future__ import annotations

from openfield.journal.reader import CellRecord
from openfield.metrics.metric import built_in
from openfield.metrics.periods import split_periods


def measure_detection(cell: CellRecord) -> dict[str, float | None]:
    """Compute whether the change was detected, the delay in episodes, and the false alarms before the onset."""
    periods = split_periods(cell)
    alarms = sum(episode.detected for episode in periods.before) if periods.before else None
    delay = next((index for index, episode in enumerate(periods.after) if episode.detected), None)
    detected = delay is not None if periods.after else None
    return {
        "correct": None if detected is None else float(detected and not alarms),
        "detected": None if detected is None else float(detected),
        "delay": delay,
        "alarmed": None if alarms is None else float(alarms > 0),
        "alarms": alarms,
    }


DETECTION = built_in("detection", measure_detection)
