"""Whether, how fast and how reliably the agent noticed that its world had changed; or its results would have shown it.

One cell -> numbers of its trial. The last belief reported in an episode counts. Beliefs in training never count: there
the agent still learns what normal is. Detections in the test before the onset are false alarms. In a trial that never
reached its onset there is nothing to detect: no rate and no delay are defined.

`passive` needs no belief. Its detectors are the baselines published with the birds test bed: a moving average of passed
episodes that falls below a threshold, or that leaves a band around the expected average.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from openfield.journal.reader import CellRecord
from openfield.metrics.concordance import NO_PAIRS, estimate_concordance, follow_concordance
from openfield.metrics.metric import Pooled, built_in, undefined
from openfield.metrics.performance import count_left, count_lost, has_borders, mean, performances, split_periods
from openfield.metrics.stats import Estimate

WINDOW = 10
DEVIATIONS = 1.5
"""With these two the published detector did best."""
THRESHOLD = 0.5


class Rule(NamedTuple):
    """A detector: a moving average of results that falls below a threshold, or leaves a band around the expectation."""

    window: int = WINDOW
    deviations: float = DEVIATIONS
    """Half the width of the band, in standard deviations."""
    threshold: float | None = None
    """Used instead of the band if it is given."""

    def alarms(self, results: Sequence[float], expected: float) -> list[int]:
        """Return the episodes after which it says that the world has changed."""
        ends = range(self.window, len(results) + 1)
        averages = [(end - 1, math.fsum(results[end - self.window : end]) / self.window) for end in ends]
        if self.threshold is not None:
            return [index for index, average in averages if average < self.threshold]
        spread = math.sqrt(expected * (1 - expected) / self.window)
        band = max(self.deviations * spread, 0.5 / self.window)
        return [index for index, average in averages if abs(average - expected) > band]


BAND, FALL = Rule(), Rule(threshold=THRESHOLD)
PUBLISHED = (
    *(Rule(window, threshold=tenths / 10) for window in (5, 10) for tenths in range(2, 9)),
    *(Rule(window, deviations) for window in (5, 10) for deviations in (1.5, 2.0)),
)
"""All settings that the baselines were published with."""


def measure_detection(cell: CellRecord) -> dict[str, float | None]:
    """Compute whether the change was detected, the delay in episodes, and the false alarms before the onset.

    An unchanged twin of a changed trial has false alarms of its own. Where tasks follow each other and nothing else
    changes, a belief is about the borders between them: the metric `borders` measures it, and there is no alarm.
    """
    if has_borders(cell.trial):
        return undefined(DETECTION)
    periods = split_periods(cell)
    # where a slight change does not count yet, a detection is neither right nor wrong
    said = sum(episode.detected for episode in periods.before if not episode.failed and not episode.strength)
    early = periods.after[0].early if periods.after else None  # a batch that holds the onset is judged by sample
    alarms = None if not periods.before and early is None else said + count_lost(cell)[0] + bool(early)
    alarmed = None if alarms is None else float(alarms > 0)
    if cell.trial.is_unchanged_twin:
        return undefined(DETECTION) | {"alarmed_unchanged": alarmed}
    found = undefined(DETECTION) | {"alarmed": alarmed, "alarms": alarms}
    if not periods.after:
        return found
    may_return = cell.trial.has_course  # a world that is normal again is not to be detected
    right = (episode.detected and (episode.novel or not may_return) for episode in periods.after)
    first = next((index for index, each in enumerate(right) if each), None)
    delay, left = None if alarms else first, count_left(cell)
    return found | {
        "correct": float(delay is not None),
        "detected": float(first is not None),
        "delay": left if delay is None and cell.counts else delay,
        "delay_all": left if delay is None else delay,
    }


def pool_detection(cells: Sequence[CellRecord]) -> Pooled:
    """Compute the concordance of all cells of an agent, in a scenario in which something changes."""
    if not any(cell.trial.novelty for cell in cells):
        return {}
    return {"concordance": estimate_concordance(cells) or Estimate(None, None, None, 0, NO_PAIRS)}


def follow_detection(cells: Sequence[CellRecord], planned: Sequence[CellRecord]) -> dict[str, Estimate]:
    """Compute the concordance while trials are missing."""
    if not any(cell.trial.novelty for cell in cells):
        return {}
    return {"concordance": follow_concordance(cells, planned)}


def measure_passive(cell: CellRecord) -> dict[str, float | None]:
    """Measure a trial with the band and with the threshold."""
    return {**measure_rule(cell, BAND, "passive"), **measure_rule(cell, FALL, "fall")}


def measure_rule(cell: CellRecord, rule: Rule, name: str) -> dict[str, float | None]:
    """Measure a trial with one detector, which expects the average of training, or else of the first test episodes."""
    periods = split_periods(cell)
    before, after = performances(periods.before), performances(periods.after)
    known = performances(periods.training) or (before + after)[: rule.window]
    expected = mean(known)
    if not after or expected is None:
        return dict.fromkeys((f"{name}_correct", f"{name}_alarmed", f"{name}_delay"))
    if cell.counts:  # a failed episode is an alarm before the onset, and a miss from it on
        return {
            f"{name}_correct": 0.0,
            f"{name}_alarmed": 1.0 if before else None,
            f"{name}_delay": float(count_left(cell)),
        }
    found = rule.alarms(before + after, expected)
    early, late = [index for index in found if index < len(before)], [index for index in found if index >= len(before)]
    correct = bool(late) and not early
    return {
        f"{name}_correct": float(correct),
        f"{name}_alarmed": float(bool(early)) if before else None,
        f"{name}_delay": late[0] - len(before) if correct else None,
    }


DETECTION = built_in("detection", measure_detection, pool=pool_detection, counts_failures=True, follow=follow_detection)
PASSIVE = built_in("passive", measure_passive, counts_failures=True)
