"""The episodes of a cell by period: training, the test before the onset, and the test from the onset on.

Metrics and charts are about these periods.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from openfield.journal.reader import CellRecord, Episode


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
