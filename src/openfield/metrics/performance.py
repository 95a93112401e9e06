"""How well the agent did: in each period of a trial, what the change cost it, and how far it recovered.

One cell -> numbers of its trial, for the metrics `performance` and `adaptation`. The periods are training, the test
before the onset, and the test from the onset on; other metrics and charts are about them too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

import msgspec

from openfield.journal.reader import CellRecord, Episode
from openfield.metrics.metric import Period, built_in
from openfield.trial import Trial

WORST_CHANGE = -1.0
"""The change in a trial that an agent failed: as bad before the change as after it, it would look like none."""


class Periods(msgspec.Struct, frozen=True):
    """The episodes of a cell by period. A training episode is one even if its world is novel."""

    training: tuple[Episode, ...]
    before: tuple[Episode, ...]
    """Test episodes before the first one whose world is novel; all of them if none is."""
    after: tuple[Episode, ...]
    """Test episodes from the first novel one on, also those after a return to normal."""


def split_periods(cell: CellRecord) -> Periods:
    """Split the episodes of a cell into periods."""
    test = tuple(episode for episode in cell.episodes if episode.phase == "test")
    onset = next((index for index, episode in enumerate(test) if episode.novel), len(test))
    training = tuple(episode for episode in cell.episodes if episode.phase == "training")
    return Periods(training, test[:onset], test[onset:])


def count_episodes(trial: Trial, period: Period) -> int | None:
    """Return the most episodes a period of a trial can have; None where the world's own rules decide."""
    test = [phase for phase in trial.phases if phase.name == "test"]
    if not all(phase.episodes for phase in test):
        return None
    total = sum(phase.episodes for phase in test)
    early = sum(phase.episodes for phase in itertools.takewhile(lambda phase: not phase.novelty, test))
    return early if period == "before" else total - early


def performances(episodes: Iterable[Episode]) -> list[float]:
    """Return the performances of the episodes that have one."""
    found = (episode.performance for episode in episodes)
    return [value for value in found if value is not None and math.isfinite(value)]


def last_third(curve: list[float]) -> list[float]:
    """Return the last third of a curve, rounded up: its asymptotic part."""
    return curve[-math.ceil(len(curve) / 3) :]


def mean(values: list[float]) -> float | None:
    """Return the mean of values, or None if there are none."""
    return math.fsum(values) / len(values) if values else None


def ratio(above: float | None, below: float | None) -> float | None:
    """Return a quotient, or None if a part of it is missing or would divide by 0."""
    return None if above is None or not below else above / below


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
        "change": None if before is None or after is None else after - before if not cell.counts else WORST_CHANGE,
        "asymptotic": mean(last_third(curve)),
        "area": normalised_area(curve),
    }


def normalised_area(curve: list[float]) -> float | None:
    """Return the area under a curve of unit steps, divided by its length; a single point is its own area."""
    if len(curve) < 2:
        return mean(curve)
    return (math.fsum(curve) - (curve[0] + curve[-1]) / 2) / (len(curve) - 1)


PERFORMANCE = built_in("performance", measure_performance, counts_failures=True)
ADAPTATION = built_in("adaptation", measure_adaptation, counts_failures=True)
