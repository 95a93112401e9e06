"""The bytes of a pickle, a block at a time, without the frame marks of protocol 4.

Feeds `pickles` and `records`: at most two blocks are in memory, whatever the size of the file.
"""

from __future__ import annotations

import struct
from typing import Any, BinaryIO

import numpy as np

from openfield.objectives.pickle.bulk_reader import (
    BYTES1,
    FLOAT,
    GET1,
    GET4,
    INT1,
    INT2,
    INT4,
    LONG1,
    MARK,
    PUT1,
    PUT4,
    PUT_NEXT,
    REDUCE,
    SETITEMS,
    SPARE,
    TUPLE,
    TUPLE2,
    TUPLE3,
)
from openfield.objectives.pickle.number_forms import Bytes
from openfield.objectives.pickle.scalars import Refused

BLOCK = 1 << 19
"""Half of the second-level cache, large enough that NumPy's call overhead does not show."""
STRIDE = 1 << 14
"""Bytes that are stepped through before somebody looks again at how much has come together."""
LONGEST_STEP = 1 << 11
"""More bytes than any allowed opcode takes."""
STARTS = 1 << 11
"""More bytes than a name and a key of the longest numbers take."""
FRAME = 0x95
HEADER = 9
SHORTEST_FRAME = 4
"""Writers leave the mark of a shorter one away."""
FULL_FRAME = 1 << 16
"""Writers close a frame when it has so many bytes, or at the end."""


_LENGTHS = {
    **{TUPLE3: 1, TUPLE2: 1, TUPLE: 1, REDUCE: 1, SETITEMS: 1, MARK: 1, PUT_NEXT: 1},
    **{INT1: 2, INT2: 3, INT4: 5, LONG1: 2, BYTES1: 2, GET1: 2, GET4: 5, PUT1: 2, PUT4: 5, FLOAT: 9},
}
"""Bytes of every opcode in entries; two of them are followed by as many as they say."""


class Source:
    """A window on a file: `data` holds the bytes, positions count within it."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.size = file.seek(0, 2)
        """Bytes in the file."""
        file.seek(0)
        self.data = b""
        self.view: np.ndarray[Any, np.dtype[np.uint8]] = np.empty(0, np.uint8)
        self.safe = 0
        """Before this position every opcode can be read without a further look at the file."""
        self.borders: list[int] = []
        """Where frame marks were taken out, ahead of the reader; an opcode begins at each of them."""
        self._start = 0
        self._ended = False
        self.start = file.read(STARTS)
        """The first bytes, by which the protocol is known."""
        file.seek(0)
        self._framed = self.start[:1] == b"\x80" and self.start[2:3] == bytes((FRAME,))
        self._left = 2 if self._framed else 0
        """Bytes to come before the next frame mark; the first mark follows that of the protocol."""
        self._full = True

    def refill(self, at: int) -> int:
        """The same place, where an opcode begins, in a window that has half a block after it or ends with the file.

        Raises:
            Refused: Frames are not what writers make of them, or one began in the middle of an opcode.
        """
        while self.borders and self.borders[0] <= at:
            if self.borders[0] < at:
                raise Refused("a frame begins in the middle of an opcode")
            self.pass_border()
        if not self._ended and len(self.data) - at <= BLOCK // 2:
            self.borders = [border - at for border in self.borders]
            self.data = self._read(self.data[at:])
            self._start += at
            self.view = np.frombuffer(self.data, np.uint8)
            at = 0
        end = len(self.data) if self._ended else len(self.data) - LONGEST_STEP
        self.safe = min([end, at + STRIDE, *self.borders[:1]])
        return at

    def pass_border(self) -> None:
        """The next border is where an opcode begins."""
        del self.borders[0]
        self._start += HEADER

    def pass_borders(self, at: int) -> None:
        """An opcode begins at each border before this place."""
        while self.borders and self.borders[0] < at:
            self.pass_border()

    @property
    def up_to_border(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """The window as far as no frame mark was taken out."""
        return self.view[: self.borders[0]] if self.borders else self.view

    def offset(self, at: int) -> int:
        """How many bytes of the file come before this place."""
        return self._start + at

    def beyond_end(self, at: int) -> bool:
        """Whether an opcode at this place can have run out of bytes."""
        return self._ended and at + LONGEST_STEP > len(self.data)

    def _read(self, kept: bytes) -> bytes:
        """What is kept and about a block of further bytes, frame marks taken out."""
        parts, size, wanted = [kept], len(kept), len(kept) + BLOCK
        while size < wanted and not self._ended:
            if self._framed and not self._left:
                self._begin_frame(size)
            raw = self.file.read(min(self._left, BLOCK) if self._framed else BLOCK)
            self._ended = not raw
            self._left -= len(raw)
            parts.append(raw)
            size += len(raw)
        if self._ended and self._framed and self._left > 0:
            raise Refused("the pickle ends in the middle of a frame")
        return b"".join(parts)

    def _begin_frame(self, place: int) -> None:
        """Take a frame mark out, or find that the rest of the file is too short to have one."""
        raw = self.file.read(HEADER)
        if len(raw) < SHORTEST_FRAME:
            self.file.seek(-len(raw), 1)
            self._framed = False
            return
        if len(raw) < HEADER or raw[0] != FRAME or not self._full:
            raise Refused("its frames do not follow each other as writers make them")
        self._left = struct.unpack_from("<Q", raw, 1)[0]
        if self._left < SHORTEST_FRAME:
            raise Refused("a frame that is too short to be one")
        self._full = self._left >= FULL_FRAME
        self.borders.append(place)


def hits_border(view: Bytes, at: int, border: int) -> bool:
    """Whether an opcode begins at the border, where at most a few entries lie between it and the entry at `at`."""
    if border - at > 2 * SPARE:
        return False
    data = view[at : border + 1].tobytes()
    border, at = border - at, 0
    while at < border:
        length = _LENGTHS.get(data[at], 0)
        if not length:
            return False
        at += length + (data[at + 1] if data[at] in (LONG1, BYTES1) else 0)
    return at == border
