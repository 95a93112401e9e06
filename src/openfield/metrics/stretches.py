"""A cell's episodes as the stretches that metrics and charts speak of: training, before the onset, after it.

Stands under the metrics: journal -> view -> stretches -> metrics and report.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from openfield.journal.reader import CellRecord, Episode


class Stretches(msgspec.Struct, frozen=True):
    """The episodes of a cell, apart. Training is training, even where the world differs in it."""

    training: tuple[Episode, ...]
    before: tuple[Episode, ...]
    """Test episodes before the first one whose world is novel; all of them if none is."""
    after: tuple[Episode, ...]
    """Test episodes from the first novel one on, also those after a return to normal."""


def split(cell: CellRecord) -> Stretches:
    """The stretches of a cell."""
    test = tuple(episode for episode in cell.episodes if episode.phase == "test")
    onset = next((index for index, episode in enumerate(test) if episode.novel), len(test))
    training = tuple(episode for episode in cell.episodes if episode.phase == "training")
    return Stretches(training, test[:onset], test[onset:])


def performances(episodes: Iterable[Episode]) -> list[float]:
    """The performances of those episodes that have one."""
    found = (episode.performance for episode in episodes)
    return [value for value in found if value is not None and math.isfinite(value)]


def last_third(curve: list[float]) -> list[float]:
    """What counts as asymptotic: the last third, rounded up."""
    return curve[-math.ceil(len(curve) / 3) :]


def mean(values: list[float]) -> float | None:
    """The mean, or None of nothing."""
    return math.fsum(values) / len(values) if values else None
