"""How an agent met each change of a world that changes gradually, again, or several times.

One cell -> numbers of its trial, for the metric `changes`. The test is split where other novelties come into force. The
measures of drift detectors, from `alarms`, take the episodes in which detections begin as alarms.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from openfield.journal.reader import CellRecord, Episode
from openfield.metrics.drift.alarms import RATE_PERIOD, find_rises, score_alarms
from openfield.metrics.metric import Pooled, built_in, undefined
from openfield.metrics.performance import mean, pair_twins, performances, split_periods
from openfield.metrics.scenario import unit_of
from openfield.settings import MAX_DELAY

MAX_CHANGES = 5
"""Changes of a trial that have numbers of their own."""
SHARES_OF_ALARMS = ("alarm_precision", "alarm_recall", "changes_found", "alarm_f1")
RECOVERED, RECOVERY_WINDOW = 0.9, 3
"""The share of the performance before the change, and the episodes in a row that must reach it."""


class ChangePeriod(NamedTuple):
    """Test episodes in which the same novelties are in force."""

    change: str
    """The novelties; empty in a normal world."""
    start: int
    """The number of the first test episode."""
    episodes: tuple[Episode, ...]

    @property
    def complete(self) -> int:
        """The number of the first episode at which the change is as strong as it will be."""
        strengths = [episode.strength or 0.0 for episode in self.episodes]
        return self.start + strengths.index(max(strengths))


def split_changes(cell: CellRecord) -> list[ChangePeriod]:
    """Return the test in stretches with the same novelties in force; the first may be of the normal world."""
    test = [episode for episode in cell.episodes if episode.phase == "test"]
    found, start = [], 0
    for change, group in itertools.groupby(test, _name_change):
        episodes = tuple(group)
        found.append(ChangePeriod(change, start, episodes))
        start += len(episodes)
    return found


def _name_change(episode: Episode) -> str:
    """Return what is in force in an episode, as far as it counts as changed."""
    return (episode.change or "a change") if episode.novel else ""


def measure_changes(cell: CellRecord) -> dict[str, float | None]:
    """Measure the alarms of a trial, and each of its changes."""
    found = undefined(CHANGES)
    if not cell.trial.has_course:
        return found
    stretches = split_changes(cell)
    changes = stretches[1:] if stretches and not stretches[0].change else stretches
    usual = mean(performances(split_periods(cell).before))
    found |= _measure_alarms(cell, stretches)
    for number, change in enumerate(changes[:MAX_CHANGES], 1):
        found |= {f"{name}_{number}": value for name, value in _measure_one(cell, change, usual).items()}
    found["strength_noticed"] = _find_strength(cell, changes)
    found["savings"] = _measure_savings(cell, changes, usual)
    return found


def _measure_alarms(cell: CellRecord, stretches: Sequence[ChangePeriod]) -> dict[str, float | None]:
    """Score the alarms as those of a drift detector."""
    test = [episode for stretch in stretches for episode in stretch.episodes]
    changes = [(float(stretch.start), float(stretch.complete)) for stretch in stretches if stretch.change]
    if not test or not changes:
        return {}
    if cell.counts:  # to stop would leave out the false alarms to come
        length = float(len(test))
        times = {"detection_time": length, "normalised_time": length, "false_alarm_rate": float(RATE_PERIOD)}
        return {**dict.fromkeys(SHARES_OF_ALARMS, 0.0), **times}
    alarms = find_rises(episode.detected for episode in test)
    scores = score_alarms(alarms, changes, len(test), int(cell.trial.settings.get("max_delay", MAX_DELAY)))
    return {
        "alarm_precision": scores.precision,
        "alarm_recall": scores.recall,
        "changes_found": scores.episode_recall,
        "alarm_f1": scores.f1,
        "detection_time": scores.detection_time,
        "normalised_time": scores.normalised_time,
        "false_alarm_rate": scores.false_alarm_rate,
        "alarm_rate": scores.alarm_rate,
    }


def _measure_one(cell: CellRecord, change: ChangePeriod, usual: float | None) -> dict[str, float | None]:
    """Measure how a change was met: noticed, after how long and at which strength, and recovered from."""
    follows = (episode.detected is bool(change.change) and not episode.failed for episode in change.episodes)
    delay = next((number for number, right in enumerate(follows) if right), None)
    return {
        "noticed": float(delay is not None),
        "delay": float(len(change.episodes)) if delay is None and cell.counts else delay,
        "strength": None if delay is None else change.episodes[delay].strength,
        "recovery": _measure_recovery(change, usual),
    }


def _measure_recovery(change: ChangePeriod, usual: float | None) -> float | None:
    """Return after how many episodes the performance is back; all of the stretch if it never is."""
    curve = [0.0 if episode.performance is None else episode.performance for episode in change.episodes]
    if any(episode.failed for episode in change.episodes):
        return float(len(curve))
    if usual is None or not performances(change.episodes):
        return None
    window = min(RECOVERY_WINDOW, len(curve))
    means = (math.fsum(curve[at : at + window]) / window for at in range(len(curve) - window + 1))
    return next((at for at, value in enumerate(means) if value >= RECOVERED * usual - 1e-9), len(curve))


def _find_strength(cell: CellRecord, changes: Sequence[ChangePeriod]) -> float | None:
    """Return the strength in the first episode from the onset on that ended in a detection, without a false alarm."""
    if cell.counts and changes:
        return 1.0
    if any(episode.detected and not episode.strength for episode in split_periods(cell).before):
        return None
    after = (episode for change in changes for episode in change.episodes)
    return next((episode.strength for episode in after if episode.detected and episode.novel), None)


def _measure_savings(cell: CellRecord, changes: Sequence[ChangePeriod], usual: float | None) -> float | None:
    """Return how much sooner the second occurrence of a change was recovered from, as a share of the longer time."""
    times: dict[str, list[float]] = {}
    for change in changes:
        recovery = _measure_recovery(change, usual)
        if change.change and recovery is not None:
            times.setdefault(change.change, []).append(recovery)
    pair = next((found[:2] for found in times.values() if len(found) > 1), None)
    if pair is None:
        return None
    return -1.0 if cell.counts else (pair[0] - pair[1]) / (max(pair) or 1.0)


def pool_changes(cells: Sequence[CellRecord]) -> Pooled:
    """Compute the regret of changed trials, each against its unchanged twin, over all episodes from the onset on."""
    found: dict[str, list[float]] = {}
    for cell, twin in pair_twins([cell for cell in cells if cell.trial.has_course]):
        start = len(split_periods(cell).before)
        own, normal = ([episode for episode in one.episodes if episode.phase == "test"][start:] for one in (cell, twin))
        pairs = [(one.performance, other.performance) for one, other in zip(own, normal, strict=False)]
        gaps = [other - one for one, other in pairs if one is not None and other is not None]
        if gaps:
            found.setdefault(unit_of(cell), []).append(math.fsum(gaps))
    return {"regret": [math.fsum(values) / len(values) for values in found.values()]} if found else {}


CHANGES = built_in("changes", measure_changes, pool=pool_changes, counts_failures=True)
