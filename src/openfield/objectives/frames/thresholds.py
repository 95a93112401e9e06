"""The distinct values of every pixel, and the thresholds they give: in memory while they are few, else on disk.

Thresholds are those that `encode.find_bins` finds for the same frames in memory, bit for bit.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

import numpy as np

from openfield.database import Database
from openfield.objectives.frames.encode import marks_of, percentiles
from openfield.objectives.tables.rows import Array

MAX_HELD = 1 << 21
"""Values of all pixels together that are held in memory: 16 MB, and several times that while they are sorted."""
WAITING = 1 << 20
"""Values that wait, at least, before they are merged into the known ones."""


class PixelValues:
    """The distinct values of every pixel. New values are merged when they are as many as the known ones."""

    def __init__(self, pixels: int) -> None:
        self._known = [np.empty(0) for _ in range(pixels)]
        self._waiting: list[Array] = []
        self._held = self._waits = 0
        self._base: Database | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._base is not None:
            self._base.__exit__(kind, error, trace)

    def add(self, frames: Array) -> None:
        """Note the values of frames, one frame a row."""
        self._waiting.append(frames)
        self._waits += frames.size
        if self._waits > max(WAITING, self._held):
            self._merge()
            if self._held > MAX_HELD:
                self._spill()

    def thresholds(self, levels: int) -> Array | None:
        """Return the thresholds of each pixel, a row each; None if there has been no frame."""
        self._merge()
        if self._base is None:
            found = [percentiles(values, levels) for values in self._known if len(values)]
            return np.array(found) if found else None
        base = self._spill()
        return np.array([_thresholds(base, pixel, levels) for pixel in range(len(self._known))])

    def _merge(self) -> None:
        if self._waiting:
            columns = np.concatenate(self._waiting).T
            self._known = [np.union1d(known, new) for known, new in zip(self._known, columns, strict=True)]
            self._waiting, self._waits = [], 0
            self._held = sum(map(len, self._known))

    def _spill(self) -> Database:
        """Move the known values into a database."""
        if self._base is None:
            self._base = Database()
            self._base.run("CREATE TABLE seen (pixel INTEGER, value DOUBLE)")
        for pixel, values in enumerate(self._known):
            self._base.insert("seen", {"pixel": np.full(len(values), pixel), "value": values})
        self._known, self._held = [np.empty(0) for _ in self._known], 0
        return self._base


def _thresholds(base: Database, pixel: int, levels: int) -> list[float]:
    """Return what `percentiles` finds, from the two values beside each place that is asked for."""
    base.run("CREATE OR REPLACE TABLE ordered AS SELECT DISTINCT value FROM seen WHERE pixel = ? ORDER BY value", pixel)
    (size,) = base.row("SELECT count(*) FROM ordered")
    found = []
    for mark in marks_of(levels):
        place = (size - 1) * np.true_divide(mark, 100)
        below = int(np.floor(place))
        beside = base.columns("SELECT value FROM ordered WHERE rowid >= ? AND rowid < ?", below, below + 2)["value"]
        found.append(float(np.quantile(beside, place - below)))
    return found
