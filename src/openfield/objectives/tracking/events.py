"""Write scalars for TensorBoard: an event file, with nothing but the standard library.

An event file is a row of records, each with its length and two checksums (CRC-32C). The few fields of a scalar are
written here, as a library for them would bring a framework along.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from openfield.errors import InvalidInput

POLYNOMIAL = 0x82F63B78
"""That of CRC-32C, with its bits reversed."""
MASK = 0xA282EAD8
"""What the format adds to a checksum, after turning its bits."""
VERSION = b"brain.Event:2"


class EventFile:
    """A file of scalars in a folder that TensorBoard reads."""

    def __init__(self, folder: str | Path) -> None:
        """Begin a new file; the folder is made if it is missing.

        Raises:
            InvalidInput: It cannot be written.
        """
        now = time.time()
        name = f"events.out.tfevents.{int(now)}.{socket.gethostname()}.{os.getpid()}.{time.monotonic_ns()}"
        self.path = Path(folder) / name
        self._waiting = bytearray()
        self._write(_double(1, now) + _bytes(3, VERSION))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.flush()
        except OSError as error:
            raise InvalidInput(f"{folder}: cannot be written ({error.strerror or error}).") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(self, tag: str, value: float, step: int) -> None:
        """Add a scalar under a tag, at a step."""
        scalar = _bytes(1, tag.encode()) + bytes([2 << 3 | 5]) + struct.pack("<f", value)
        self._write(_double(1, time.time()) + bytes([2 << 3]) + _varint(step) + _bytes(5, _bytes(1, scalar)))

    def flush(self) -> None:
        """Append what waits to the file, which is open only for that time.

        Raises:
            InvalidInput: It cannot be written.
        """
        try:
            with self.path.open("ab") as file:
                file.write(self._waiting)
        except OSError as error:
            raise InvalidInput(f"{self.path}: cannot be written ({error.strerror or error}).") from None
        self._waiting.clear()

    def close(self) -> None:
        """Write what waits."""
        self.flush()

    def _write(self, event: bytes) -> None:
        length = struct.pack("<Q", len(event))
        self._waiting += length + _checksum(length) + event + _checksum(event)


def crc32c(data: bytes) -> int:
    """Compute the CRC-32C of bytes."""
    table, value = _table(), 0xFFFFFFFF
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


@cache
def _table() -> tuple[int, ...]:
    values = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (POLYNOMIAL if value & 1 else 0)
        values.append(value)
    return tuple(values)


def _checksum(data: bytes) -> bytes:
    value = crc32c(data)
    return struct.pack("<I", ((value >> 15 | value << 17) + MASK) & 0xFFFFFFFF)


def _varint(number: int) -> bytes:
    parts = []
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def _bytes(field: int, content: bytes) -> bytes:
    return bytes([field << 3 | 2]) + _varint(len(content)) + content


def _double(field: int, value: float) -> bytes:
    return bytes([field << 3 | 1]) + struct.pack("<d", value)
