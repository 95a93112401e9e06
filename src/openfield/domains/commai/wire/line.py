"""The socket of one learner: libzmq's PAIR, with a monitor for the events that libzmq keeps to itself.

libzmq negotiates with every version of ZeroMQ's protocol. It does not say when a peer has left or was refused; the
events of the socket's monitor do.
"""

from __future__ import annotations

import functools
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from openfield.errors import AgentTimeout
from openfield.lazy import import_extra

POLL_SECONDS = 0.1
"""Seconds between checks whether the learner is late or has left, or the port was closed."""
UNREAD_SECONDS = 5.0
"""Seconds a learner may answer without reading, once nothing more can be sent to it."""
LINGER_SECONDS = 1.0
"""Seconds in which the last turn must be sent once a line is closed."""
STRANGER_SECONDS = 1.0
"""Seconds after which a peer that has sent bytes, and none that libzmq can read, is no learner.

libzmq does not say what it has read. So a peer of version 1 that has an identity, which few have, must say hello within
this time, too; one without, and any of a later version, such as those of libzmq 3 or NetMQ, may be silent for longer.
"""
MAX_MESSAGE_BYTES = 1 << 16
"""A peer that sends a longer message is not a learner."""
MAX_SOCKETS = 4_096
_SIGNATURE = 10
"""Bytes that libzmq sends first. It sends no more before it knows that the peer is of version 2 or newer."""
_OLD_BEGINNINGS = (0, 2)
"""Bytes that a peer of version 1 has sent before its hello: nothing, or an empty identity."""
_SENT_AND_RECEIVED = struct.Struct("120xQQ")
"""Where the counts of a connection are in what the system tells of it."""
HELLO = b"hello"
WANTED = "a learner connects with a ZeroMQ PAIR socket without security"


def load_zmq() -> Any:
    """Import and return pyzmq."""
    return import_extra("zmq", "zmq", "The protocol of remote learners")


@functools.cache
def open_context(process: int) -> Any:
    """Make the context of all lines of a process: a line has three of its sockets."""
    context = load_zmq().Context()
    context.set(load_zmq().MAX_SOCKETS, MAX_SOCKETS)
    return context


class Handshake(NamedTuple):
    """The protocol that a peer has begun with."""

    line: Line
    first: list[bytes]
    """The first message, which should be a hello."""
    problem: str = ""
    """Why the peer cannot be understood."""
    gone: bool = False
    """Whether libzmq has disconnected it, so that the next peer may be connected already."""


class Line:
    """A PAIR socket that one learner at a time is connected to. One thread at a time may use it."""

    def __init__(self, bind: Callable[[Any], None]) -> None:
        self._zmq = zmq = load_zmq()
        self._again = zmq.Again
        self._socket = open_context(os.getpid()).socket(zmq.PAIR)
        for option, value in (
            (zmq.RCVTIMEO, int(POLL_SECONDS * 1_000)),
            (zmq.LINGER, int(LINGER_SECONDS * 1_000)),
            (zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES),
        ):
            self._socket.setsockopt(option, value)
        events = zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED
        refusals = zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_AUTH
        ends = zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_SUCCEEDED
        self._monitor = self._socket.get_monitor_socket(events | refusals | ends)
        bind(self._socket)
        plain: Any = super(zmq.Socket, self._socket)  # without what pyzmq adds for other kinds of sockets
        self._send = functools.partial(plain.send, flags=zmq.DONTWAIT)
        self._receive, self._get, self._more = self._socket.recv, self._socket.get, zmq.RCVMORE
        self.greeting = False
        """Whether a peer is in the middle of its handshake. For peers of versions 1 and 2 it never ends."""
        self._peer, self._since = -1, 0.0
        self._lost = False
        """Whether a peer has been disconnected."""
        self.hung_up = False
        """Whether the port knows that the learner has closed its connection."""
        self.closing = False
        """Whether a conversation must end."""
        self.using = threading.Lock()

    def send(self, reward: bytes, symbol: bytes) -> None:
        """Send a turn as its two messages.

        Raises:
            EOFError: The learner has left.
            AgentTimeout: It does not read.
        """
        try:
            self._send(reward)
        except self._again:
            self._send_late(reward)
        try:
            self._send(symbol)
        except self._again:
            self._send_late(symbol)

    def receive(self) -> list[bytes] | None:
        """Return the next message, or None if none has come for a moment.

        Raises:
            EOFError: The learner has left.
        """
        try:
            first = self._receive()
        except self._again:
            if self._has_left():
                raise EOFError from None
            return None
        if not self._get(self._more):
            return [first]
        message = [first]
        while self._get(self._more):
            message.append(self._receive())
        return message

    def register(self, poller: Any) -> None:
        """Let a poller of libzmq wait for what may become a handshake."""
        for each in (self._socket, self._monitor):
            poller.register(each, self._zmq.POLLIN)

    def begin(self) -> Handshake | None:
        """Return the first message of a peer, or why it cannot be understood; None if there is neither yet.

        Answers to a past conversation, sent after reconnecting, are let pass.
        """
        problem, is_earlier = self._find_problem()
        while not is_earlier and self._socket.poll(0):
            message = self.receive()
            if message is not None and not _is_symbol(message):
                return Handshake(self, message)
        if problem:
            return Handshake(self, [], problem, gone=True)
        if self.greeting and time.monotonic() - self._since > STRANGER_SECONDS and _is_unreadable(self._peer):
            return Handshake(self, [], f"the peer does not speak ZeroMQ; {WANTED}")
        return None

    def close(self) -> None:
        """Send the rest, and close the connection and the port. A conversation in another thread ends before."""
        self.closing = True
        with self.using:
            if self._socket.closed:
                return
            self._socket.close()
            while self._monitor.poll(LINGER_SECONDS * 1_000):  # until the port can be used again
                if self._next_event()[0] in (self._zmq.EVENT_CLOSED, self._zmq.EVENT_MONITOR_STOPPED):
                    break
            self._monitor.close()

    def _send_late(self, message: bytes) -> None:
        end = time.monotonic() + UNREAD_SECONDS
        while not self._socket.poll(POLL_SECONDS * 1_000, self._zmq.POLLOUT):
            if self._has_left():
                raise EOFError
            if time.monotonic() > end:
                raise AgentTimeout(f"the learner has read nothing for {UNREAD_SECONDS:g} s")
        self._send(message)

    def _has_left(self) -> bool:
        """Return whether no learner is connected any more; one that does not read still is."""
        self._find_problem()
        return self._lost and not self._socket.poll(0, self._zmq.POLLOUT)

    def _find_problem(self) -> tuple[str, bool]:
        """Read the events of the monitor.

        Returns:
            Why a peer cannot be understood, and whether another one has come since.
        """
        zmq, problem, is_earlier = self._zmq, "", False
        while self._monitor.poll(0):
            event, value = self._next_event()
            if event in (zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL, zmq.EVENT_HANDSHAKE_FAILED_AUTH):
                problem = f"ZeroMQ refuses the peer ({_name(zmq, value)}); {WANTED}"
            elif event == zmq.EVENT_DISCONNECTED:
                if self.greeting and not problem:  # no event reports sockets of another kind
                    problem = f"the peer is not a PAIR socket; {WANTED}"
                self._lost = True
            self.greeting = event == zmq.EVENT_ACCEPTED
            if self.greeting:
                is_earlier = problem != ""
                self._peer, self._since = value, time.monotonic()
        return problem, is_earlier

    def _next_event(self) -> tuple[int, int]:
        first = self._monitor.recv_multipart()[0]
        return int.from_bytes(first[:2], "little"), int.from_bytes(first[2:6], "little")


def is_hello(message: Sequence[bytes]) -> bool:
    """Return whether a message is a hello, with or without a token behind a space."""
    return len(message) == 1 and message[0].split(b" ")[0] == HELLO


def _is_unreadable(number: int) -> bool:
    """Return whether libzmq has read bytes on a connection and waits for more of what it takes for version 1.

    Any text looks like that, such as a request of HTTP.
    """
    try:
        with socket.socket(fileno=os.dup(number)) as peer:
            info = peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        sent, received = _SENT_AND_RECEIVED.unpack_from(info)
    except (OSError, struct.error):  # it is gone, or the system does not count
        return False
    return bool(sent == _SIGNATURE and received not in _OLD_BEGINNINGS)


def _is_symbol(message: list[bytes]) -> bool:
    return len(message) == 1 and len(message[0].decode(errors="replace")) == 1


def _name(zmq: Any, value: int) -> str:
    """Return libzmq's name of the error in a handshake."""
    try:
        name = str(zmq.Event(value).name)
    except ValueError:
        return str(value)
    return name.removeprefix("PROTOCOL_ERROR_").replace("_", " ").lower()
