"""Numbers that a pickle put into its memo long ago, on disk: whatever a file keeps, refusing it takes little memory.

Under `scalars`. Memo numbers rise, so the file is in order and a number is found by looking at one block of it.
"""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np

from openfield.objectives.pickle.number_forms import Flags, Forms, Ints

BLOCK = 1_024
"""Numbers that are read at once."""


class Kept:
    """Memo numbers with the bits and forms of what is under them, each time as three columns."""

    def __init__(self) -> None:
        self._file: Any = None
        self._firsts = np.empty(0, np.int64)
        self._blocks = np.empty((0, 3), np.int64)
        """Where the columns of each block begin: in which place of the file, of what length, from which row on."""

    def add(self, keys: Ints, values: Ints, forms: Forms) -> None:
        """Put numbers aside; the keys rise, and are higher than those put aside before."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="openfield-", buffering=0)  # noqa: SIM115
        place = self._file.seek(0, 2)
        for column in (keys, values, forms):
            write_whole(self._file, column)
        rows = np.arange(0, len(keys), BLOCK)
        self._firsts = np.append(self._firsts, keys[rows])
        blocks = np.stack((np.full(len(rows), place), np.full(len(rows), len(keys)), rows), axis=1)
        self._blocks = np.concatenate((self._blocks, blocks))

    def find(self, keys: Ints) -> tuple[Ints, Forms, Flags]:
        """The bits and forms of the numbers under memo numbers, and which of them are known."""
        values, forms, found = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int8), np.zeros(len(keys), bool)
        blocks = np.searchsorted(self._firsts, keys, side="right") - 1
        for block in np.unique(blocks[blocks >= 0]).tolist():
            mine = np.flatnonzero(blocks == block)
            known, bits, kinds = self._read(block)
            at = np.searchsorted(known, keys[mine]).clip(max=len(known) - 1)
            values[mine], forms[mine], found[mine] = bits[at], kinds[at], known[at] == keys[mine]
        return values, forms, found

    def _read(self, block: int) -> list[Any]:
        place, length, row = self._blocks[block].tolist()
        columns, size = [], min(BLOCK, length - row)
        for kind in (np.dtype(np.int64), np.dtype(np.int64), np.dtype(np.int8)):
            self._file.seek(place + row * kind.itemsize)
            columns.append(np.frombuffer(self._file.read(size * kind.itemsize), kind))
            place += length * kind.itemsize
        return columns

    def close(self) -> None:
        """Give the room on disk back."""
        if self._file is not None:
            self._file.close()


def write_whole(file: Any, column: Any) -> None:
    """Write all of it to a file without a buffer, which may take less at a time.

    A buffer would try once more to write what the disk had no room for when the file is closed.
    """
    left = memoryview(column).cast("B")
    while left:
        left = left[file.write(left) :]
