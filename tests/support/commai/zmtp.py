"""ZeroMQ's protocol as bytes, written by hand from its descriptions: what peers of versions 1, 2 and 3 send."""

import socket

SIGNATURE = b"\xff" + bytes(7) + b"\x01\x7f"
GREETING = SIGNATURE + b"\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)


def frame(body, more=False):
    """A frame of versions 2 and 3."""
    if len(body) < 256:
        return bytes((more, len(body))) + body
    return bytes((2 | more,)) + len(body).to_bytes(8, "big") + body


def old_frame(body):
    """A frame of version 1: the length counts the flags."""
    return bytes((len(body) + 1, 0)) + body


def ready(kind=b"PAIR"):
    command = b"\x05READY\x0bSocket-Type" + len(kind).to_bytes(4, "big") + kind + b"\x08Identity" + bytes(4)
    return bytes((4, len(command))) + command


HANDSHAKES = {
    1: old_frame(b""),  # an identity, and nothing else: version 1 has no greeting
    2: SIGNATURE + b"\x01" + b"\x00" + frame(b""),  # its revision, a PAIR, an identity
    3: GREETING + ready(),
}


class RawPeer:
    """A peer of a version of ZeroMQ's protocol on a plain socket."""

    def __init__(self, port, version=3, said=b""):
        self._frame = old_frame if version == 1 else frame
        self.socket = connect(port)
        self._version, self._heard, self._greeted = version, b"", False
        try:
            self.socket.sendall(HANDSHAKES[version])
            if version == 3:  # it may speak only when both sides are ready
                self.read_greeting()
            self.socket.sendall(said)
        except OSError:
            self.close()
            raise

    def say(self, *bodies):
        self.socket.sendall(b"".join(map(self._frame, bodies)))

    def hear(self):
        """The next message; None if the other side has hung up."""
        if not self._greeted:
            self.read_greeting()
        head = self._take(2)
        if head is None:
            return None
        return self._take(head[0] - 1) if self._version == 1 else self._take(head[1])

    def hear_turn(self):
        reward = self.hear()
        return reward if reward is None else (reward, self.hear())

    def close(self):
        self.socket.close()

    def read_greeting(self):
        """Reads what libzmq answers to the handshake of a peer of this version."""
        self._greeted = True
        if self._version == 1:  # it begins with a signature, which version 1 takes for a long identity
            self._take(10)
        elif self._version == 2:  # signature, revision, kind, identity
            self._take(14)
        else:
            self._take(64)
            size = self._take(2)
            self._take(size[1] if size else 0)

    def _take(self, count):
        while len(self._heard) < count:
            try:
                data = self.socket.recv(4096)
            except ConnectionError:
                data = b""
            if not data:
                return None
            self._heard += data
        taken, self._heard = self._heard[:count], self._heard[count:]
        return taken


def connect(port):
    """A connection, as soon as the port is open."""
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            continue
