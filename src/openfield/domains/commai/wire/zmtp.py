"""The part of ZeroMQ's protocol that learners need (ZMTP 3.0, no security, PAIR sockets): bytes in, messages out.

The wire speaks it on a plain socket. Through libzmq a step costs 35 µs and a second thread; this costs a third of that.
"""

from __future__ import annotations

from collections.abc import Iterator

from openfield.errors import AgentProtocol

GREETING = b"\xff" + bytes(8) + b"\x7f" + b"\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
MAX_FRAME_BYTES = 1 << 16
"""A peer that sends a longer frame is not a learner."""
MAX_FRAMES = 16
"""A peer that sends a message of more frames is not a learner."""
_MORE, _LONG, _COMMAND = 1, 2, 4


class Connection:
    """One peer's side of a connection: it joins received bytes to messages, and collects the bytes to send."""

    def __init__(self) -> None:
        self.outgoing = GREETING
        self.ready = False
        """Whether messages may be sent: the peer has introduced itself as a PAIR socket."""
        self._greeted = False
        self._data = b""
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> Iterator[list[bytes]]:
        """Yield the messages that are complete now, each a list of frames.

        Raises:
            AgentProtocol: The peer does not speak this protocol.
        """
        self._data += data
        if not self._greeted and not self._greet():
            return
        while (frame := self._next_frame()) is not None:
            flags, body = frame
            if flags & _COMMAND:
                self._obey(body)
                continue
            self._parts.append(body)
            if len(self._parts) > MAX_FRAMES:
                raise AgentProtocol(f"a message of more than {MAX_FRAMES} frames")
            if sum(map(len, self._parts)) > MAX_FRAME_BYTES:
                raise AgentProtocol(f"a message of more than {MAX_FRAME_BYTES} bytes")
            if not flags & _MORE:
                message, self._parts = self._parts, []
                yield message

    @property
    def midway(self) -> bool:
        """Whether a message has arrived in part: the next bytes are the rest of it, whatever they look like."""
        return bool(self._data or self._parts)

    def take_outgoing(self) -> bytes:
        """Return the bytes to send now, and forget them."""
        outgoing, self.outgoing = self.outgoing, b""
        return outgoing

    def _greet(self) -> bool:
        """Return whether the peer's greeting is complete; it must be version 3 without security."""
        data = self._data
        if data[:1] not in (b"", b"\xff") or (len(data) > 9 and data[9] != 0x7F):
            raise AgentProtocol("the peer does not speak ZeroMQ")
        if len(data) > 10 and data[10] < 3:
            raise AgentProtocol(f"the peer speaks ZMTP {data[10]}; version 3 is needed (libzmq 4 or newer)")
        if len(data) < len(GREETING):
            return False
        if data[12:32].rstrip(b"\0") != b"NULL":
            raise AgentProtocol("the peer wants a secured connection; there is none here")
        self._greeted, self._data = True, data[len(GREETING) :]
        self.outgoing += encode_command(b"READY", b"\x0bSocket-Type" + (4).to_bytes(4, "big") + b"PAIR")
        return True

    def _next_frame(self) -> tuple[int, bytes] | None:
        data = self._data
        if not data:
            return None
        start = 9 if data[0] & _LONG else 2
        size = int.from_bytes(data[1:start], "big") if len(data) >= start else 0
        if size > MAX_FRAME_BYTES:
            raise AgentProtocol(f"a frame of {size} bytes")
        if len(data) < start + size:
            return None
        self._data = data[start + size :]
        return data[0], data[start : start + size]

    def _obey(self, body: bytes) -> None:
        """Handle a command: the peer introduces itself, pings, or reports an error."""
        name, rest = body[1 : 1 + body[0]] if body else b"", body[1 + body[0] :] if body else b""
        if name == b"READY":
            kind = read_properties(rest).get(b"socket-type", b"")
            if kind != b"PAIR":
                raise AgentProtocol(f"the peer's socket is a {kind.decode('latin-1')}; it must be a PAIR")
            self.ready = True
        elif name == b"PING":
            self.outgoing += encode_command(b"PONG", rest[2:])
        elif name == b"ERROR":
            raise AgentProtocol(f"the peer refuses: {rest[1:].decode('latin-1')}")


def encode_frame(body: bytes, more: bool = False) -> bytes:
    """Encode a frame of a message."""
    flags = _MORE if more else 0
    if len(body) < 256:
        return bytes((flags, len(body))) + body
    return bytes((flags | _LONG,)) + len(body).to_bytes(8, "big") + body


def encode_command(name: bytes, data: bytes) -> bytes:
    """Encode a command with its data."""
    body = bytes((len(name),)) + name + data
    return bytes((_COMMAND, len(body))) + body


def read_properties(data: bytes) -> dict[bytes, bytes]:
    """Return the properties of a READY command, with names in lower case."""
    found: dict[bytes, bytes] = {}
    while data:
        name_end = 1 + data[0]
        value_start = name_end + 4
        value_end = value_start + int.from_bytes(data[name_end:value_start], "big")
        if value_end > len(data) or len(data) < value_start:
            raise AgentProtocol("a READY command that is cut off")
        found[data[1:name_end].lower()] = data[value_start:value_end]
        data = data[value_end:]
    return found
