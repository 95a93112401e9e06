"""Keep parsed rows on disk until the whole file is known to be a valid table.

To read 10^7 entries twice instead would cost a second more.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from openfield.objectives.pickle import reader
from openfield.objectives.pickle.memo import write_whole
from openfield.objectives.tables.rows import Codes, Rows

PYTHON_NUMBER = 56
"""Bytes of a large integer of Python and of what refers to it."""


def read_checked(path: Path, unchecked: int) -> Iterator[Rows | Codes]:
    """Yield the entries of a pickled table as `read_pickle` does, but little of a file that is refused.

    Args:
        path: The file.
        unchecked: Bytes of entries that may be given before the file was read to its end.

    Raises:
        Refused: As `read_pickle`.
    """
    deferred, given, checked = DeferredRows(), 0, False
    try:
        for piece in reader.read_pickle(path):
            given += _room(piece)
            if checked or given <= unchecked:
                yield piece
            elif isinstance(piece, Codes) or not deferred.add(piece):
                for _ in reader.read_pickle(path):  # to its end, where something foreign may wait
                    pass
                checked = True
                yield from deferred.take()
                yield piece
        yield from deferred.take()
    finally:
        deferred.close()


class DeferredRows:
    """Rows in a file without a name."""

    def __init__(self) -> None:
        self._file: Any = None
        self._kinds: list[tuple[int, list[np.dtype[Any]]]] = []
        """The length and the column types of every piece."""

    def add(self, rows: Rows) -> bool:
        """Write rows to the file. Return False if the disk is full or integers are beyond 64 bits."""
        if any(column.dtype.hasobject for column in rows):
            return False
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="openfield-", buffering=0)  # noqa: SIM115
            for column in rows:
                write_whole(self._file, column)
        except OSError:
            return False
        self._kinds.append((len(rows.obs), [column.dtype for column in rows]))
        return True

    def take(self) -> Iterator[Rows]:
        """Yield all rows in the order in which they were added, and forget them."""
        pieces, self._kinds = self._kinds, []
        if pieces:
            self._file.seek(0)
        for size, kinds in pieces:
            yield Rows(*(self._column(size, kind) for kind in kinds))

    def _column(self, size: int, kind: np.dtype[Any]) -> np.ndarray[Any, Any]:
        column = np.empty(size, kind)
        left = column.data.cast("B")
        while left:
            left = left[self._file.readinto(left) :]
        return column

    def close(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.close()


def _room(piece: Iterable[np.ndarray[Any, Any]]) -> int:
    """Return about how many bytes a piece takes."""
    return sum(PYTHON_NUMBER * len(column) if column.dtype.hasobject else column.nbytes for column in piece)
