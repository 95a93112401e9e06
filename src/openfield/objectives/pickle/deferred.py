"""The stretches of a pickle in the order of the file, most of them only once it is known that all of it is a table.

Between `pickles` and `gather`. Rows wait on disk meanwhile: to read 10^7 entries twice would cost 0.6 s, this 0.1 s.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from openfield.objectives.pickle import reader as pickles
from openfield.objectives.pickle.bulk_reader import Codes, Rows
from openfield.objectives.pickle.memo_spill import write_whole

PYTHON_NUMBER = 56
"""Bytes of a large integer of Python and of what refers to it."""
_HEAD = struct.Struct("<q3s3s3s3s")


def read_checked(path: Path, unchecked: int) -> Iterator[Rows | Codes]:
    """As `pickles.read_pickle`, but the caller may keep what it gets: a file that is refused gives little.

    Args:
        path: The file.
        unchecked: Bytes of stretches that may be given before the file was read to its end.

    Raises:
        Refused: As `pickles.read_pickle`.
    """
    aside, given, sure = Aside(), 0, False
    try:
        for piece in pickles.read_pickle(path):
            given += _room(piece)
            if sure or given <= unchecked:
                yield piece
            elif isinstance(piece, Codes) or not aside.add(piece):
                for _ in pickles.read_pickle(path):  # to its end, where something foreign may wait
                    pass
                sure = True
                yield from aside.take()
                yield piece
        yield from aside.take()
    finally:
        aside.close()


class Aside:
    """Rows in a file without a name."""

    def __init__(self) -> None:
        self._file: Any = None
        self._end = 0
        """Where the last rows end that are there as a whole."""

    def add(self, rows: Rows) -> bool:
        """Put rows aside; says whether it could be done. A full disk prevents it, and integers beyond 64 bits do."""
        if any(column.dtype.hasobject for column in rows):
            return False
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="openfield-", buffering=0)  # noqa: SIM115
            write_whole(self._file, _HEAD.pack(len(rows.obs), *(column.dtype.str.encode() for column in rows)))
            for column in rows:
                write_whole(self._file, column)
            self._end = self._file.tell()
        except OSError:
            return False
        return True

    def take(self) -> Iterator[Rows]:
        """All rows in the order in which they were put aside; they are not kept."""
        end, self._end = self._end, 0
        if end:
            self._file.seek(0)
            while self._file.tell() < end:
                size, *kinds = _HEAD.unpack(self._file.read(_HEAD.size))
                yield Rows(*(self._column(size, np.dtype(kind.decode())) for kind in kinds))

    def _column(self, size: int, kind: np.dtype[Any]) -> np.ndarray[Any, Any]:
        column = np.empty(size, kind)
        left = column.data.cast("B")
        while left:
            left = left[self._file.readinto(left) :]
        return column

    def close(self) -> None:
        """Give the room on disk back."""
        if self._file is not None:
            self._file.close()


def _room(piece: Iterable[Any]) -> int:
    """About how many bytes a stretch of rows or codes takes."""
    return sum(
        column.nbytes if isinstance(column, np.ndarray) and column.dtype != object else PYTHON_NUMBER * len(column)
        for column in piece
    )
