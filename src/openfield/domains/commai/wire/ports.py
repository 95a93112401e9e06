"""The ports that learners connect to: one for a learner at a time, and one for many.

A PAIR socket has one peer, and libzmq gives away no connection. On a port for one learner libzmq itself listens. On a
port for many each connection gets a socket of its own, and a thread carries the bytes between the two: two system calls
a message more.
"""

from __future__ import annotations

import logging
import os
import secrets
import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from openfield.domains.commai.wire import line as lines
from openfield.domains.commai.wire.line import Handshake, Line, load_zmq
from openfield.errors import InvalidInput
from openfield.serving.listen import BACKLOG, refusing_place

LOG = logging.getLogger("openfield.commai")
MAX_PEERS = 256
"""Connected programs that may wait in silence. If there are more, the first one is disconnected."""
PORT_TRIES = 20
"""How often a row of free ports is looked for."""
CHUNK = 1 << 16


class PairPort(Protocol):
    """A port that learners connect to. Its methods block, and return soon after `close`."""

    port: int

    def wait_for_handshake(self) -> Handshake | None:
        """Return what the next peer begins with, or None after `close`. Silent peers may wait."""
        ...

    def has_hung_up(self, newcomer: Line) -> bool:
        """Return whether a learner that played before a newcomer has closed its side of the connection."""
        ...

    def drop(self, line: Line, left: bool = False) -> None:
        """Disconnect a peer, unless it has left by itself."""
        ...

    def close(self) -> None:
        """Let all blocking calls return, and close all connections."""
        ...


def open_ports(host: str, port: int, count: int, open_port: Callable[[str, int], PairPort]) -> list[PairPort]:
    """Open ports, one above the other; for port 0 from any port on that has enough free ones above it."""
    for _ in range(PORT_TRIES):
        opened: list[PairPort] = []
        try:
            for _ in range(count):
                opened.append(open_port(host, opened[-1].port + 1 if opened else port))
        except (InvalidInput, OverflowError):
            for each in opened:
                each.close()
            if port:
                raise
        else:
            return opened
    raise InvalidInput(f"There are no {count} free ports in a row. Choose the first one: --port NUMBER.")


class SinglePort:
    """A port for one learner at a time. libzmq turns others away while one is connected, as in the original."""

    def __init__(self, host: str, port: int) -> None:
        self._zmq, self._waker = load_zmq(), Waker()
        self._listener = listen(host, port)
        self.port: int = self._listener.getsockname()[1]
        self._stopping = threading.Event()
        self._free = threading.Event()
        self._free.set()
        self._using = threading.Lock()
        self._line = Line(self._bind)

    def wait_for_handshake(self) -> Handshake | None:
        """Return what the next peer begins with, or None after `close`."""
        while not self._stopping.is_set():
            if self._free.wait(lines.POLL_SECONDS):
                with self._using:
                    handshake = None if self._stopping.is_set() else self._wait()
                if handshake is not None:
                    self._free.clear()
                    return handshake
        return None

    def has_hung_up(self, newcomer: Line) -> bool:
        """Return False: there is no other learner."""
        return False

    def drop(self, line: Line, left: bool = False) -> None:
        """Disconnect a peer; one that has left may come back on the same line."""
        if not left:
            line.close()
            if not self._stopping.is_set():
                self._line = Line(self._bind)
        self._free.set()

    def close(self) -> None:
        """Let `wait_for_handshake` return, and close the connection."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._waker.wake()
        with self._using:
            self._listener.close()
            self._line.close()
            self._waker.close()

    def _wait(self) -> Handshake | None:
        poller = self._zmq.Poller()
        self._line.register(poller)
        self._waker.register(poller)
        poller.poll(lines.POLL_SECONDS * 1_000 if self._line.greeting else None)
        return self._line.begin()

    def _bind(self, pair: Any) -> None:
        pair.setsockopt(self._zmq.USE_FD, os.dup(self._listener.fileno()))  # the port stays open between two lines
        pair.bind(f"tcp://127.0.0.1:{self.port}")


class SharedPort:
    """A port for many learners at a time. A thread accepts connections, and carries bytes to a socket for each."""

    def __init__(self, host: str, port: int) -> None:
        self._zmq = load_zmq()
        self._waker, self._ending = Waker(), Waker()
        self._listener = listen(host, port)
        self.port: int = self._listener.getsockname()[1]
        self._stopping = threading.Event()
        self._using = threading.Lock()
        self._silent: dict[int, socket.socket] = {}  # connected, and nothing was heard yet
        self._waiting: list[Line] = []  # in the middle of a handshake
        self._playing: list[Line] = []
        self._epoll = select.epoll()
        self._handlers: dict[int, Callable[[int, int], None]] = {}
        self._watch(self._listener.fileno(), lambda *_: self._admit())
        self._watch(self._ending.fileno(), lambda *_: self._end())
        self._carries = True
        self._channels: dict[Line, _Channel] = {}
        self._carrier = threading.Thread(target=self._carry, name="learners", daemon=True)
        self._carrier.start()

    def wait_for_handshake(self) -> Handshake | None:
        """Return what the next peer begins with, or None after `close`."""
        with self._using:
            while not self._stopping.is_set():
                poller, waiting = self._zmq.Poller(), list(self._waiting)
                for line in waiting:
                    line.register(poller)
                self._waker.register(poller)
                poller.poll()
                self._waker.clear()
                for line in waiting:
                    if (handshake := line.begin()) is not None:
                        self._waiting.remove(line)
                        self._playing.append(line)
                        return handshake
                    if line.hung_up:
                        self._waiting.remove(line)
                        line.close()
        return None

    def has_hung_up(self, newcomer: Line) -> bool:
        """Return whether a learner that played before a newcomer has closed its side of the connection."""
        return any(line.hung_up for line in list(self._playing) if line is not newcomer)

    def drop(self, line: Line, left: bool = False) -> None:
        """Disconnect a peer."""
        with suppress(ValueError):
            self._playing.remove(line)
        line.close()

    def close(self) -> None:
        """Let all blocking calls return, and close all connections."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._waker.wake()
        with self._using:
            for line in [*self._waiting, *self._playing]:
                line.close()
            self._ending.wake()
            self._carrier.join()
            for peer in (*self._silent.values(), self._listener):
                peer.close()
            for channel in self._channels.values():
                channel.close()
            for each in (self._epoll, self._waker, self._ending):
                each.close()

    def _carry(self) -> None:
        while self._carries:
            for number, mask in self._epoll.poll():
                if number in self._handlers:  # otherwise an earlier handler has closed it
                    self._handlers[number](number, mask)

    def _end(self) -> None:
        self._carries = False

    def _watch(self, number: int, handler: Callable[[int, int], None]) -> None:
        self._handlers[number] = handler
        self._epoll.register(number, select.EPOLLIN)

    def _forget(self, number: int) -> None:
        self._epoll.unregister(number)
        del self._handlers[number]

    def _admit(self) -> None:
        """Accept a connection if the peer is still there and there is room for it."""
        try:
            peer = self._listener.accept()[0]
        except OSError:  # no file is left to be opened, or the peer is gone
            self._stopping.wait(lines.POLL_SECONDS)
            return
        peer.setblocking(False)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._silent[peer.fileno()] = peer
        self._watch(peer.fileno(), self._hear)
        if len(self._silent) > MAX_PEERS:
            self._hang_up(next(iter(self._silent)))

    def _hang_up(self, number: int) -> None:
        self._forget(number)
        self._silent.pop(number).close()

    def _hear(self, number: int, _: int) -> None:
        """Give a peer that speaks ZeroMQ a socket of its own, and name and disconnect any other."""
        peer = self._silent[number]
        try:
            began = peer.recv(16, socket.MSG_PEEK)
        except OSError:
            began = b""
        if began and not is_zeromq(began):
            LOG.warning("%s", f"A program that does not speak ZeroMQ was disconnected: it began with {began!r}.")
        if not is_zeromq(began):
            self._hang_up(number)
            return
        try:
            line, inner = self._open_line()
        except (OSError, self._zmq.ZMQError):  # no file is left to be opened
            self._hang_up(number)
            return
        self._forget(number)
        del self._silent[number]
        self._channels[line] = channel = _Channel(peer, inner, self._epoll)
        for each in (peer, inner):
            self._watch(each.fileno(), lambda number, mask: self._move(line, channel, number, mask))
        self._waiting.append(line)
        present = [each for each in list(self._waiting) if not each.hung_up]
        if len(present) > MAX_PEERS:
            self._part(present[0])
        self._waker.wake()

    def _open_line(self) -> tuple[Line, socket.socket]:
        """Open a socket for a peer, and connect to it."""
        name = secrets.token_hex(16)
        line, inner = Line(lambda pair: pair.bind(f"ipc://@{name}")), socket.socket(socket.AF_UNIX)
        inner.connect("\0" + name)
        inner.setblocking(False)
        return line, inner

    def _move(self, line: Line, channel: _Channel, number: int, mask: int) -> None:
        if not channel.move(number, mask):
            self._part(line)

    def _part(self, line: Line) -> None:
        """Close the connection of a line, if that was not done before."""
        line.hung_up = True
        channel = self._channels.pop(line, None)
        if channel is not None:
            for each in (channel.peer, channel.inner):
                self._forget(each.fileno())
            channel.close()
        self._waker.wake()


class _Channel:
    """Carries bytes between a peer and the socket that was opened for it."""

    def __init__(self, peer: socket.socket, inner: socket.socket, epoll: select.epoll) -> None:
        self.peer, self.inner, self._epoll = peer, inner, epoll
        self._others = {peer.fileno(): inner, inner.fileno(): peer}
        self._unsent: dict[int, bytes] = {}  # by the socket that takes no more

    def move(self, number: int, mask: int) -> bool:
        """Carry what can be carried for a socket that is ready, and return whether both sides are still there."""
        other = self._others[number]
        try:
            if mask & select.EPOLLOUT:
                self._send(self._others[other.fileno()], self._unsent[number])
            if mask & ~select.EPOLLOUT:
                if other.fileno() in self._unsent:
                    return False  # it has hung up on one that does not read
                data = self._others[other.fileno()].recv(CHUNK)
                if not data:
                    return False
                self._send(other, data)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Close both sides."""
        self.peer.close()
        self.inner.close()

    def _send(self, target: socket.socket, data: bytes) -> None:
        """Send data. While some of it is left, nothing more is read from the other side."""
        try:
            left = data[target.send(data) :]
        except BlockingIOError:
            left = data
        was_full = self._unsent.pop(target.fileno(), b"") != b""
        if left:
            self._unsent[target.fileno()] = left
        if was_full or left:
            for number, other in self._others.items():
                reads = 0 if other.fileno() in self._unsent else select.EPOLLIN
                self._epoll.modify(number, reads | (select.EPOLLOUT if number in self._unsent else 0))


class Waker:
    """Wakes a thread that waits for sockets."""

    def __init__(self) -> None:
        self._number = os.eventfd(0, os.EFD_NONBLOCK)

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._number

    def register(self, poller: Any) -> None:
        """Let a poller of libzmq wait for it."""
        poller.register(self._number, load_zmq().POLLIN)

    def wake(self) -> None:
        """Wake the thread."""
        with suppress(OSError):
            os.eventfd_write(self._number, 1)

    def clear(self) -> None:
        """Wait for the next `wake`."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._number)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._number)


def listen(host: str, port: int) -> socket.socket:
    """Listen on a port of a host; `*` is every one."""
    with refusing_place(host, port):
        listener = socket.create_server(("" if host in ("", "*") else host, port), backlog=BACKLOG)
    listener.setblocking(False)
    return listener


def is_zeromq(began: bytes) -> bool:
    """Return whether a peer may speak ZeroMQ: a signature, or a frame without flags as in version 1."""
    if began[:1] == b"\xff":
        return len(began) < 10 or bool(began[9] & 1)
    return began[:1] > b"\0" and began[1:2] in (b"", b"\0")
