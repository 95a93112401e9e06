"""The bytes of a pickle, a block at a time, without the frame marks of protocol 4.

Feeds `pickles` and `records`: at most two blocks are in memory, whatever the size of the file.
"""

from __future__ import annotations

import struct
from typing import Any, BinaryIO

import numpy as np

from openfield.objectives.scalars import Refused

BLOCK = 1 << 17
"""Small enough for the second-level cache, large enough that NumPy's call overhead does not show."""
LONGEST_STEP = 1 << 11
"""More bytes than any allowed opcode takes."""
FRAME = 0x95
HEADER = 9


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
        self._start = 0
        self._ended = False
        self._held = b""
        self._left: int | None = None
        self._fresh = True

    def refill(self, at: int) -> int:
        """The same place in a window that has at least half a block after it, or ends with the file."""
        if self._ended or len(self.data) - at > BLOCK // 2:
            return at
        self._start += at
        self.data = self.data[at:] + self._read()
        self.view = np.frombuffer(self.data, np.uint8)
        self.safe = len(self.data) if self._ended else len(self.data) - LONGEST_STEP
        return 0

    def offset(self, at: int) -> int:
        """How many bytes of the pickle come before this place."""
        return self._start + at

    def beyond_end(self, at: int) -> bool:
        """Whether an opcode at this place can have run out of bytes."""
        return self._ended and at + LONGEST_STEP > len(self.data)

    def _read(self) -> bytes:
        """About a block of further bytes, frame marks taken out."""
        parts: list[bytes] = []
        size = 0
        while size < BLOCK and not self._ended:
            raw = self._held + self.file.read(BLOCK)
            self._ended = len(raw) - len(self._held) < BLOCK
            self._held = b""
            part = self._unframe(raw)
            if self._ended and self._left:
                raise Refused("the pickle ends in the middle of a frame")
            parts.append(part)
            size += len(part)
        return b"".join(parts)

    def _unframe(self, raw: bytes) -> bytes:
        parts: list[bytes] = []
        at = 0
        if self._fresh:
            self._fresh = False
            if len(raw) > 2 and raw[0] == 0x80 and raw[2] == FRAME:
                self._left, at = 0, 2
                parts.append(raw[:2])
        while self._left is not None and at < len(raw):
            taken = raw[at : at + self._left]
            parts.append(taken)
            at += len(taken)
            self._left -= len(taken)
            if self._left == 0 and at < len(raw):
                at = self._next_frame(raw, at)
                if self._held:
                    return b"".join(parts)
        return b"".join([*parts, raw[at:]])

    def _next_frame(self, raw: bytes, at: int) -> int:
        """Read a frame mark; bytes without one are passed through to the end of the file."""
        if raw[at] != FRAME:
            self._left = None
        elif len(raw) - at >= HEADER:
            self._left = struct.unpack_from("<Q", raw, at + 1)[0]
            at += HEADER
        elif not self._ended:
            self._held = raw[at:]
        else:
            self._left = None
        return at
