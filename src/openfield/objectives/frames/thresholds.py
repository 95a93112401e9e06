"""The distinct values of every pixel, and the thresholds they give: in memory while they are few, else on disk.

Under `episodes`; thresholds are those that `frames.find_bins` finds for the same frames in memory, bit for bit.
"""

from __future__ import annotations

import tempfile
from types import TracebackType
from typing import IO, Self

import numpy as np

from openfield.objectives.frames.encode import marks_of, percentiles
from openfield.objectives.outofcore.partitions import Parts
from openfield.objectives.tables.histograms import Array

MOST_HELD = 1 << 21
"""Values of all pixels together that are held in memory: 16 MB, and several times that while they are put in order."""
WAITING = 1 << 20
"""Values that wait, at least, before they are put among the known ones."""
HANDLED = 500_000
"""Values of one pixel that are put in order at once."""
_VALUE = np.dtype([("value", "<f8")])


class PixelValues:
    """What every pixel has been. New values wait until there are as many as known: n log n steps, not n^2."""

    def __init__(self, pixels: int) -> None:
        self._known = [np.empty(0) for _ in range(pixels)]
        self._waiting: list[Array] = []
        self._held = self._waits = 0
        self._file = tempfile.TemporaryFile(prefix="openfield-")  # noqa: SIM115 - closed with this
        self._runs: list[Array] = []  # where the values of each pixel begin in the file, and where the last ones end

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, frames: Array) -> None:
        """Note the values of frames, one frame a row."""
        self._waiting.append(frames)
        self._waits += frames.size
        if self._waits > max(WAITING, self._held):
            self._merge()
            if self._held > MOST_HELD:
                self._put_aside()

    def thresholds(self, levels: int) -> Array | None:
        """The thresholds of each pixel, a row each; None if there has been no frame."""
        self._merge()
        if not self._runs:
            found = [percentiles(values, levels) for values in self._known if len(values)]
            return np.array(found) if found else None
        self._put_aside()
        return np.array([self._from_disk(pixel, levels) for pixel in range(len(self._known))])

    def _merge(self) -> None:
        if self._waiting:
            columns = np.concatenate(self._waiting).T
            self._known = [np.union1d(known, new) for known, new in zip(self._known, columns, strict=True)]
            self._waiting, self._waits = [], 0
            self._held = sum(map(len, self._known))

    def _put_aside(self) -> None:
        start = self._file.seek(0, 2)
        self._runs.append(start + 8 * np.cumsum([0, *map(len, self._known)]))
        for values in self._known:
            self._file.write(values.astype("<f8", copy=False).tobytes())
        self._known, self._held = [np.empty(0) for _ in self._known], 0

    def _from_disk(self, pixel: int, levels: int) -> Array:
        """The thresholds of one pixel: its values in order on disk, of which a few are looked at."""
        with Parts(_VALUE, "value", HANDLED) as parts, tempfile.TemporaryFile(prefix="openfield-") as ordered:
            for run in self._runs:
                self._file.seek(run[pixel])
                parts.add(np.frombuffer(self._file.read(run[pixel + 1] - run[pixel]), _VALUE))
            for part in parts.in_parts():
                ordered.write(np.unique(part["value"]).tobytes())
            return np.array([_percentile(ordered, mark) for mark in marks_of(levels)])


def _percentile(ordered: IO[bytes], mark: float) -> float:
    """As `np.percentile` of all values in the file, from the two beside the place that is asked for."""
    last = ordered.seek(0, 2) // 8 - 1
    place = last * np.true_divide(mark, 100)
    below = int(np.floor(place))
    ordered.seek(8 * below)
    beside = np.frombuffer(ordered.read(16), "<f8")
    return float(np.quantile(beside, place - below))
