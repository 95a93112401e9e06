"""Rows put in order on disk: tables larger than memory are cut by source input and sorted part by part.

Between `pickles` and `parquet` in a conversion. Cuts follow a sample of the inputs, so parts come out about equal.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np

from openfield.objectives.counts import Columns
from openfield.objectives.frames import sum_rows
from openfield.objectives.histograms import Array
from openfield.objectives.records import Rows

PART = 2_000_000
"""Rows sorted at once: 64 MB of columns and as much again for sorting."""
SAMPLED = 256
"""One row in so many is looked at to place the cuts."""
MOST_PARTS = 500
"""Files open at the same time."""
_ROW = np.dtype([("obs", "<i8"), ("next_obs", "<i8"), ("action", "<i8"), ("count", "<i8")])


class Spill:
    """Rows on disk, handed back in the order (obs, next_obs, action)."""

    def __init__(self, part: int = PART) -> None:
        self.rows = 0
        self._part = part
        self._folder = tempfile.TemporaryDirectory(prefix="openfield-")
        self._file: BinaryIO = (Path(self._folder.name) / "rows").open("w+b")
        self._sizes: list[tuple[int, bool]] = []
        self._sample: list[Array] = []

    def __enter__(self) -> Spill:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._folder.cleanup()

    def add(self, rows: Rows) -> None:
        """Put rows aside."""
        fraction = rows.counts.dtype.kind == "f"
        record = np.empty(len(rows.obs), _ROW)
        record["obs"], record["next_obs"], record["action"] = rows.obs, rows.next_obs, rows.action
        record["count"] = rows.counts.astype(np.float64).view(np.int64) if fraction else rows.counts
        self._file.write(record.tobytes())
        self._sizes.append((len(record), fraction))
        self._sample.append(record["obs"][:: min(SAMPLED, max(1, len(record) // 4))].copy())
        self.rows += len(record)

    def in_order(self) -> Iterator[Columns]:
        """All rows in order, a part at a time; every input is in one part, every key occurs once."""
        if not self.rows:
            return
        files = self._cut()
        for file in files:
            rows = self._read_back(file)
            file.close()
            if len(rows.obs):
                done = sum_rows(rows)
                yield Columns(done.obs, done.next_obs, done.action, done.counts)

    def _cut(self) -> list[Any]:
        parts = min(MOST_PARTS, -(-self.rows // self._part))
        sample = np.sort(np.concatenate(self._sample))
        cuts = np.unique(sample[np.linspace(0, len(sample) - 1, parts + 1).astype(int)[1:-1]])
        folder = Path(self._folder.name)
        files = [(folder / f"part{number}").open("w+b") for number in range(len(cuts) + 1)]
        for record in self._chunks():
            place = np.searchsorted(cuts, record["obs"], side="right")
            for number in np.unique(place):
                files[number].write(record[place == number].tobytes())
        return files

    def _chunks(self) -> Iterator[Any]:
        """The rows as they came; counts as the bits of float64 throughout if any of them are fractions."""
        self._file.seek(0)
        for size, fraction in self._sizes:
            record = np.frombuffer(self._file.read(size * _ROW.itemsize), _ROW).copy()
            if self._fractions and not fraction:
                record["count"] = record["count"].astype(np.float64).view(np.int64)
            yield record

    @property
    def _fractions(self) -> bool:
        return any(fraction for _, fraction in self._sizes)

    def _read_back(self, file: BinaryIO) -> Rows:
        file.seek(0)
        record = np.frombuffer(file.read(), _ROW)
        counts = np.ascontiguousarray(record["count"])
        return Rows(
            np.ascontiguousarray(record["obs"]),
            np.ascontiguousarray(record["action"]),
            np.ascontiguousarray(record["next_obs"]),
            counts.view(np.float64) if self._fractions else counts,
        )
