"""The bytes of a pickle, a block at a time, without the frame marks of protocol 4.

At most two blocks are in memory, whatever the size of the file.
"""

from __future__ import annotations

import struct
from typing import Any, BinaryIO

import numpy as np

BLOCK = 1 << 19
"""Half of the second-level cache, large enough that NumPy's call overhead does not show."""
SPARE = 1 << 9
"""Zeros after the end of the file, so that the last entries can be compared with templates as others are."""
FRAME = 0x95
HEADER = 9
MIN_FRAME = 4
"""Writers leave out the mark of a shorter one."""
FULL_FRAME = 1 << 16
"""Writers close a frame when it has this many bytes, or at the end."""


class OddPickle(Exception):
    """A pickle that is not in the published form. It may be a table all the same."""


class Source:
    """A window on a file: `data` holds the bytes, positions count within it."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.data = b""
        self.view: np.ndarray[Any, np.dtype[np.uint8]] = np.empty(0, np.uint8)
        self.borders: list[int] = []
        """Where frame marks were taken out, ahead of the reader; an opcode begins at each of them."""
        self._ended = False
        start = file.read(3)
        file.seek(0)
        self._framed = start[:1] == b"\x80" and start[2:] == bytes((FRAME,))
        self._left = 2 if self._framed else 0
        """Bytes to come before the next frame mark; the first mark follows that of the protocol."""
        self._full = True

    def refill(self, at: int) -> int:
        """Return the same place in a window that has half a block after it or ends with the file.

        Raises:
            OddPickle: Frames are not what writers make of them.
        """
        if not self._ended and len(self.data) - at <= BLOCK // 2:
            self.borders = [border - at for border in self.borders]
            self.data = self._read(self.data[at:])
            self.view = np.frombuffer(self.data + bytes(SPARE) if self._ended else self.data, np.uint8)
            at = 0
        return at

    def pass_borders(self, at: int) -> None:
        """Forget the borders up to this place, once it is known that opcodes begin there."""
        while self.borders and self.borders[0] <= at:
            del self.borders[0]

    def _read(self, kept: bytes) -> bytes:
        """Return the kept bytes and about a block of further ones, with frame marks taken out."""
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
            raise OddPickle
        return b"".join(parts)

    def _begin_frame(self, place: int) -> None:
        """Take a frame mark out, or find that the rest of the file is too short to have one."""
        raw = self.file.read(HEADER)
        if len(raw) < MIN_FRAME:
            self.file.seek(-len(raw), 1)
            self._framed = False
            return
        if len(raw) < HEADER or raw[0] != FRAME or not self._full:
            raise OddPickle
        self._left = struct.unpack_from("<Q", raw, 1)[0]
        if self._left < MIN_FRAME:
            raise OddPickle
        self._full = self._left >= FULL_FRAME
        self.borders.append(place)
