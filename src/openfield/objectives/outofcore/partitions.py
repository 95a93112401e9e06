"""Records on disk, cut into parts by a key: what is larger than memory is handled part by part.

Under `spill`, which puts the rows of tables in order, `joins`, which finds the codes of inputs and the images two
agents met, `numbering`, which numbers the codes of frames, and `pixels`, which finds thresholds. Cuts follow a sample
of the keys, so parts come out about equal.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np
from numpy.typing import DTypeLike

from openfield.objectives.tables.histograms import Array

PART = 2_000_000
"""Records handled at once: 64 MB of the rows of a table, and as much again for sorting."""
SAMPLED = 251
"""One record in so many is looked at to place the cuts; a prime, for records may come in groups of equal size."""
MOST_PARTS = 500
"""Files open at the same time."""
MOST_SAMPLED = 1 << 18
"""Keys kept to place the cuts; when there are twice as many, every other one is let go."""
CHUNK = 1 << 17
"""Records moved at once."""


class Parts:
    """Records with a key, handed back in parts: keys rise from part to part, and equal keys are in one part."""

    def __init__(self, kind: DTypeLike, key: str, part: int = PART) -> None:
        self.size = 0
        self._kind, self._key, self._part = np.dtype(kind), key, part
        self._folder = tempfile.TemporaryDirectory(prefix="openfield-")
        self._files: list[BinaryIO] = [self._open("records")]
        self._sample: list[Array] = []
        self._sampled, self._thinned = 0, 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files:
            file.close()
        self._folder.cleanup()

    def empty(self, size: int) -> Array:
        """Records to be filled in."""
        return np.zeros(size, self._kind)

    def add(self, records: Array) -> None:
        """Put records aside."""
        self._files[0].write(records.tobytes())
        self._add_sample(records[self._key][:: min(SAMPLED, max(1, len(records) // 4)) * self._thinned].copy())
        self.size += len(records)

    def in_parts(self) -> Iterator[Array]:
        """All records, a part at a time; within a part they come as they were added."""
        if not self.size:
            return
        for file in self._cut():
            with file:
                file.seek(0)
                records = np.frombuffer(file.read(), self._kind)
            if len(records):
                yield records

    def _add_sample(self, keys: Array) -> None:
        self._sample.append(keys)
        self._sampled += len(keys)
        if self._sampled > 2 * MOST_SAMPLED:
            self._sample = [np.concatenate(self._sample)[::2]]
            self._sampled, self._thinned = len(self._sample[0]), 2 * self._thinned

    def _cut(self) -> list[BinaryIO]:
        parts = min(MOST_PARTS, -(-self.size // self._part))
        sample = np.sort(np.concatenate(self._sample))
        cuts = np.unique(sample[np.linspace(0, len(sample) - 1, parts + 1).astype(int)[1:-1]])
        files = [self._open(f"part{number}") for number in range(len(cuts) + 1)]
        self._files += files
        for records in self._chunks():
            place = np.searchsorted(cuts, records[self._key], side="right")
            for number in np.unique(place):
                files[number].write(records[place == number].tobytes())
        return files

    def _chunks(self) -> Iterator[Array]:
        self._files[0].seek(0)
        while raw := self._files[0].read(CHUNK * self._kind.itemsize):
            yield np.frombuffer(raw, self._kind)

    def _open(self, name: str) -> BinaryIO:
        return (Path(self._folder.name) / name).open("w+b")
