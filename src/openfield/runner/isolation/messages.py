"""What the harness and an isolated agent exchange: messages of a kind and some bytes, over a socket.

The harness sends Python's own pickles, so that an agent is shown exactly what it is shown in the harness's process. The
agent answers in MessagePack with the encoder of the record: nothing that comes from an agent is ever unpickled.
"""

from __future__ import annotations

import pickle
import socket
import struct
from typing import Any

from openfield.core import Ask, Turn

HEAD = struct.Struct("<cQ")
"""The kind of a message and its length."""
READ_BYTES = 1 << 16
FIND, MAKE, TURN, SAVE, LOAD, REMEMBER, CLOSE = b"f", b"m", b"t", b"s", b"l", b"p", b"c"
"""What the harness asks for."""
READY, REPLY, STATE, RAISED, FAULT = b"k", b"r", b"b", b"e", b"a"
"""What the agent answers: done, a reply, a state, an exception, or a fault of its own."""


def pack_turn(turn: Turn) -> bytes:
    """Return a turn as bytes, field by field: a pickle of the whole object takes five times as long."""
    shown = turn.observation, turn.reward, turn.feedback, turn.phase, turn.first, turn.last, turn.red_light
    return pickle.dumps((turn.ask.value, shown), 5)


def unpack_turn(body: bytes) -> Turn:
    """Return the turn that `pack_turn` wrote."""
    ask, (observation, reward, feedback, phase, first, last, red_light) = unpickle(body)
    return Turn(
        ask=_ASKS[ask],
        observation=observation,
        reward=reward,
        feedback=feedback,
        phase=phase,
        first=first,
        last=last,
        red_light=red_light,
    )


def unpickle(body: bytes) -> Any:
    """Return what the harness sent. Only the isolated process calls this, which is the side that is not trusted."""
    return pickle.loads(body)  # noqa: S301


class Channel:
    """A socket that carries whole messages."""

    def __init__(self, line: socket.socket) -> None:
        self.line = line
        self._buffer = bytearray()

    def send(self, kind: bytes, body: bytes = b"") -> None:
        """Send a message."""
        self.line.sendall(HEAD.pack(kind, len(body)) + body)

    def receive(self, max_bytes: int) -> tuple[bytes, bytes]:
        """Wait for a message and return its kind and its bytes.

        Raises:
            EOFError: The other side is gone.
            ValueError: The message is too long.
        """
        self._fill(HEAD.size)
        kind, size = HEAD.unpack_from(self._buffer)
        if size > max_bytes:
            raise ValueError(f"a message of {size:,} bytes; at most {max_bytes:,} are taken")
        end = HEAD.size + size
        self._fill(end)
        body = bytes(self._buffer[HEAD.size : end])
        del self._buffer[:end]
        return kind, body

    @property
    def waiting(self) -> bool:
        """Whether more has come than was asked for."""
        return bool(self._buffer)

    def _fill(self, size: int) -> None:
        while len(self._buffer) < size:
            data = self.line.recv(max(READ_BYTES, size - len(self._buffer)))
            if not data:
                raise EOFError
            self._buffer += data


_ASKS = {each.value: each for each in Ask}
