"""The measures of drift detectors: precision, recall, detection times and rates of alarms, from times alone.

Alarms and changes of one stream -> numbers. An alarm within `max_delay` of a change is a true positive, all others are
false positives. The values are those of CapyMOA's evaluator, `capymoa.drift.eval_detector`, on the same alarms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from openfield.errors import InvalidInput

RATE_PERIOD = 1000
"""Moments over which rates of alarms are given, as CapyMOA gives them."""


class DriftScores(NamedTuple):
    """How well the alarms of a stream fit its changes; None stands for what is not defined."""

    precision: float
    """The share of alarms that are within the delay of a change; 0 without alarms."""
    recall: float | None
    """The share of true positives among them and the changes that were missed."""
    episode_recall: float | None
    """The share of changes with an alarm within the delay, each counted once."""
    f1: float | None
    """The harmonic mean of precision and recall."""
    detection_time: float | None
    """The mean time from a change to its first alarm, over the changes that were found."""
    normalised_time: float | None
    """The same divided by the delay that is allowed."""
    false_alarm_rate: float
    """False positives in a period."""
    alarm_rate: float
    """Alarms in a period."""


def score_alarms(
    alarms: Sequence[float],
    changes: Sequence[float | tuple[float, float]],
    length: float,
    max_delay: float,
    rate_period: float = RATE_PERIOD,
) -> DriftScores:
    """Score the alarms of a detector on one stream.

    Args:
        alarms: When it gave an alarm, in order.
        changes: When the stream changed, in order; a pair is the beginning and the end of a gradual change.
        length: How long the stream is.
        max_delay: How long after the end of a change an alarm still counts for it.
        rate_period: The period of the rates.

    Raises:
        InvalidInput: Times are not in order, or a length or delay is not above 0.
    """
    spans = [change if isinstance(change, tuple) else (change, change) for change in changes]
    _check(alarms, spans, (length, max_delay, rate_period))
    hits = _assign(alarms, spans, max_delay)
    times = [found[0] - start for (start, _), found in zip(spans, hits, strict=True) if found]
    true, missed = sum(map(len, hits)), sum(not found for found in hits)
    false = len(alarms) - true
    precision = true / len(alarms) if alarms else 0.0
    recall = true / (true + missed) if spans else None
    mean = math.fsum(times) / len(times) if times else None
    return DriftScores(
        precision,
        recall,
        len(times) / len(spans) if spans else None,
        None if recall is None else 2 * precision * recall / (precision + recall) if precision + recall else 0.0,
        mean,
        None if mean is None else mean / max_delay,
        false / length * rate_period,
        len(alarms) / length * rate_period,
    )


def _assign(alarms: Sequence[float], spans: Sequence[tuple[float, float]], max_delay: float) -> list[list[float]]:
    """Return the alarms of each change: those of the first one that can still be found, once it has begun."""
    found: list[list[float]] = [[] for _ in spans]
    for alarm in alarms:
        place = next((number for number, (_, end) in enumerate(spans) if alarm <= end + max_delay), None)
        if place is not None and spans[place][0] <= alarm:
            found[place].append(alarm)
    return found


def find_rises(states: Iterable[bool]) -> list[int]:
    """Return where a state begins: each place at which it holds, and did not before."""
    found, before = [], False
    for place, state in enumerate(states):
        if state and not before:
            found.append(place)
        before = state
    return found


def _check(alarms: Sequence[float], spans: Sequence[tuple[float, float]], sizes: tuple[float, float, float]) -> None:
    """Refuse what cannot be scored."""
    starts = [start for start, _ in spans]
    if list(alarms) != sorted(alarms) or starts != sorted(set(starts)) or any(start > end for start, end in spans):
        raise InvalidInput("Alarms and changes must be in order, and a change must not end before it begins.")
    for name, size in zip(("length", "max_delay", "rate_period"), sizes, strict=True):
        if not size > 0:
            raise InvalidInput(f"{name} must be above 0, not {size:g}.")
