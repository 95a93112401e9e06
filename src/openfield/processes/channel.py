"""Whole messages between a process and its child, over a socket.

A message is its length and its bytes. A parent may send pickles. What a child sends is never unpickled, as it may run
code of agents and domains: the parent reads known types of MessagePack, up to a size.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading
import time

HEAD = struct.Struct("<Q")
READ_BYTES = 1 << 16
JOIN_BYTES = 1 << 14
"""Longer messages are sent apart from their head, so that they are not copied."""
_clock = time.monotonic
"""The real one, where the conformance kit replaces clocks."""


class Channel:
    """A socket that carries whole messages. One thread may receive while any others send."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._buffer = bytearray()
        self._sending = threading.Lock()
        self._sent = 0.0

    def fileno(self) -> int:
        """Return the handle of the socket, for `select` and the like."""
        return self._line.fileno()

    def wait_at_most(self, seconds: float | None) -> None:
        """Raise TimeoutError from now on when the other side is silent for this long; None waits for ever."""
        if self._line.gettimeout() != seconds:
            self._line.settimeout(seconds)

    def send(self, message: bytes) -> None:
        """Send a message."""
        head = HEAD.pack(len(message))
        with self._sending:
            if len(message) > JOIN_BYTES:
                self._line.sendall(head)
                self._line.sendall(message)
            else:
                self._line.sendall(head + message)
            self._sent = _clock()

    def beat(self, seconds: float, message: bytes = b"") -> None:
        """Send a sign of life, unless something was sent in the last seconds."""
        if _clock() > self._sent + seconds:
            self.send(message)

    def receive(self, max_bytes: int = sys.maxsize) -> bytes:
        """Wait for a message and return it.

        Raises:
            EOFError: The other side is gone.
            TimeoutError: It said nothing for too long, see `wait_at_most`.
            ValueError: The message is too long.
        """
        while (message := self._take(max_bytes)) is None:
            self._feed(self._line.recv(READ_BYTES))
        return message

    async def receive_soon(self, seconds: float, max_bytes: int = sys.maxsize) -> bytes:
        """Receive a message in an event loop within these seconds, or raise TimeoutError. Needs `wait_at_most(0)`."""
        import asyncio  # most processes have no use for it

        async with asyncio.timeout(seconds):
            while (message := self._take(max_bytes)) is None:
                self._feed(await asyncio.get_running_loop().sock_recv(self._line, READ_BYTES))
        return message

    @property
    def waiting(self) -> bool:
        """Whether more of a message has come than was asked for."""
        return bool(self._buffer)

    def close(self) -> None:
        """Close the socket: the other side sees the end."""
        self._line.close()

    def _take(self, max_bytes: int) -> bytes | None:
        """Return the first message, if all of it has come."""
        if len(self._buffer) < HEAD.size:
            return None
        (size,) = HEAD.unpack_from(self._buffer)
        if size > max_bytes:
            raise ValueError(f"a message of {size:,} bytes; at most {max_bytes:,} are taken")
        end = HEAD.size + size
        if len(self._buffer) < end:
            return None
        message = bytes(memoryview(self._buffer)[HEAD.size : end])
        del self._buffer[:end]
        return message

    def _feed(self, data: bytes) -> None:
        if not data:
            raise EOFError
        self._buffer += data


def open_channel() -> Channel:
    """Return the channel to the parent in a process that `program` started. Programs started here do not inherit it."""
    os.dup2(2, 1)  # what agents and domains print must not end up in what the parent prints for programs to read
    number = int(sys.argv[1])
    os.set_inheritable(number, False)
    return Channel(socket.socket(fileno=number))
