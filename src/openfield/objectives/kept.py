"""Numbers that a pickle put into its memo long ago, on disk: whatever a file keeps, refusing it takes little memory.

Under `scalars`. Memo numbers rise, so the file is in order and a number is found by looking at one block of it.
"""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np

from openfield.objectives.forms import Flags, Forms, Ints

BLOCK = 1_024
"""Numbers that are read at once."""
_NUMBER = np.dtype([("key", "<i8"), ("value", "<i8"), ("form", "i1")])


class Kept:
    """Memo numbers with the bits and forms of what is under them."""

    def __init__(self) -> None:
        self._file: Any = None
        self._firsts = np.empty(0, np.int64)
        self._places = np.zeros(1, np.int64)

    def add(self, keys: Ints, values: Ints, forms: Forms) -> None:
        """Put numbers aside; the keys rise, and are higher than those put aside before."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="openfield-")  # noqa: SIM115
        numbers = np.empty(len(keys), _NUMBER)
        numbers["key"], numbers["value"], numbers["form"] = keys, values, forms
        self._file.seek(0, 2)
        self._file.write(numbers.tobytes())
        starts = np.arange(0, len(keys), BLOCK)
        self._firsts = np.append(self._firsts, keys[starts])
        self._places = np.append(self._places[:-1], self._places[-1] + np.append(starts, len(keys)))

    def find(self, keys: Ints) -> tuple[Ints, Forms, Flags]:
        """The bits and forms of the numbers under memo numbers, and which of them are known."""
        values, forms, found = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int8), np.zeros(len(keys), bool)
        blocks = np.searchsorted(self._firsts, keys, side="right") - 1
        for block in np.unique(blocks[blocks >= 0]).tolist():
            mine = np.flatnonzero(blocks == block)
            numbers = self._read(block)
            at = np.searchsorted(numbers["key"], keys[mine]).clip(max=len(numbers) - 1)
            values[mine], forms[mine] = numbers["value"][at], numbers["form"][at]
            found[mine] = numbers["key"][at] == keys[mine]
        return values, forms, found

    def _read(self, block: int) -> Any:
        start, end = self._places[block : block + 2].tolist()
        self._file.seek(start * _NUMBER.itemsize)
        return np.frombuffer(self._file.read((end - start) * _NUMBER.itemsize), _NUMBER)

    def close(self) -> None:
        """Give the room on disk back."""
        if self._file is not None:
            self._file.close()
