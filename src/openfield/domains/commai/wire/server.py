"""The protocol of the original's remote learners: ZeroMQ PAIR, a reward and a symbol out, a symbol back.

The codec is bytes in, values out; `PairWire` does the talking, in one thread per conversation, because a thread or an
event loop's turn per step would cost more than the step. There is no acknowledgement in this protocol: what was said is
written in good time, and a learner that comes back is shown the turn it has not answered.
"""

from __future__ import annotations

import asyncio
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from openfield.core import Ask, Reply, Spec, Turn
from openfield.domains.commai.environment.serializers import speaks_bits
from openfield.domains.commai.environment.task import BYTES
from openfield.domains.commai.wire.zmtp import Connection, encode_frame
from openfield.errors import AgentFault, AgentProtocol, AgentTimeout
from openfield.serving.listen import refusing_place

if TYPE_CHECKING:
    from openfield.serving.remote import RemoteRollout
    from openfield.serving.wire import Dispatcher

HELLO = b"hello"
PATIENCE = 0.1
"""Seconds between looks at whether the learner is late or we shall stop."""
UNREAD_SECONDS = 5.0
"""How long a learner that answers may leave so much unread that nothing more can be sent to it."""
MAX_PEERS = 256
"""Connected programs that may wait in silence; of more, the one that has waited longest is hung up on."""
_BITS = (b"0", b"1")
_BYTES = tuple(symbol.encode() for symbol in BYTES)


class Codec:
    """Messages of the protocol for a trial in bytes or in bits."""

    def __init__(self, spec: Spec) -> None:
        bits = speaks_bits(spec)
        self._symbols = _BITS if bits else _BYTES
        self._replies = {symbol: Reply(code) for code, symbol in enumerate(self._symbols)}
        self.plain = {encode_frame(symbol): reply for symbol, reply in self._replies.items()}
        """Replies by all the bytes that arrive when nothing unusual does."""
        self._wanted = "'0' or '1'" if bits else "one character with a code from 0 to 255, in UTF-8"

    def encode(self, turn: Turn) -> bytes:
        """A turn as the two messages a learner reads: the reward in decimal, then the symbol."""
        reward = str(int(turn.reward)).encode()
        return encode_frame(reward) + encode_frame(self._symbols[turn.observation])

    def read(self, message: Sequence[bytes]) -> Reply | None:
        """What a learner sent: its symbol, or None for a hello.

        Raises:
            AgentProtocol: It is neither.
        """
        reply = self._replies.get(message[0]) if len(message) == 1 else None
        if reply is None and not is_hello(message):
            raise AgentProtocol(f"the learner sent {_shown(message)}, which is no symbol; a symbol is {self._wanted}")
        return reply


def is_hello(message: Sequence[bytes]) -> bool:
    """Whether a learner introduces itself, with a token behind a space if one is needed."""
    return len(message) == 1 and message[0].split(b" ")[0] == HELLO


def hello_token(message: Sequence[bytes]) -> str | None:
    """The token of a hello; learners of the original have none."""
    return message[0].partition(b" ")[2].decode(errors="replace") or None


def is_belated(message: Sequence[bytes]) -> bool:
    """Whether this is an answer to a conversation that is over: ZeroMQ sends it as soon as it is connected again."""
    return len(message) == 1 and len(message[0].decode(errors="replace")) == 1


async def play_pair(host: str, port: int, replies: Sequence[Reply]) -> None:
    """A learner that says what it was told to say, and leaves when it has been shown what came of it."""
    reader, writer = await asyncio.open_connection(host, port)
    connection = Connection()
    waiting: list[list[bytes]] = []

    async def read() -> None:
        data = await reader.read(4096)
        if not data:
            raise EOFError
        waiting.extend(connection.feed(data))
        writer.write(connection.take_outgoing())

    try:
        writer.write(connection.take_outgoing())
        while not connection.ready:
            await read()
        said = [HELLO, *(chr(reply.action).encode() for reply in replies)]
        for frame in said:
            writer.write(encode_frame(frame))
            while len(waiting) < 2:  # the reward and the symbol
                await read()
            waiting.clear()
    finally:
        writer.close()


class PairWire:
    """Serves learners one after the other on one port; a new `hello` goes on with the trial that was left."""

    port = 5556

    async def serve(self, dispatcher: Dispatcher, host: str, port: int, ready: Callable[[int], None]) -> None:
        """Serves until cancelled."""
        listener, session = PairListener(host, port), None
        try:
            ready(listener.port)
            while (caller := await asyncio.to_thread(listener.wait_for_caller)) is not None:
                session = await self._play(dispatcher, listener, caller, session)
        finally:
            listener.close()  # here and now: whoever is cancelled twice would never get to it in another thread

    async def _play(
        self, dispatcher: Dispatcher, listener: PairListener, caller: Handshake, session: str | None
    ) -> str | None:
        """Plays a trial as far as the learner goes; returns the session if that is not its end."""
        try:
            remote = await dispatcher.join(token=hello_token(caller.first), session=session)
            with remote:
                await asyncio.to_thread(listener.converse, caller, remote)
        except AgentFault:
            return None  # booked with the remote; whoever was refused one hears nothing, as ever in this protocol
        finally:
            listener.drop(caller.peer)
        return None if remote.rollout.over else remote.session


class Peer:
    """A connected program, which may or may not turn out to be a learner."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._connection = Connection()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(None)
        for limit, seconds in ((socket.SO_RCVTIMEO, PATIENCE), (socket.SO_SNDTIMEO, UNREAD_SECONDS)):
            whole, part = divmod(int(seconds * 1e6), 1_000_000)  # one system call a step less than Python's timeouts
            sock.setsockopt(socket.SOL_SOCKET, limit, struct.pack("ll", whole, part))

    @property
    def midway(self) -> bool:
        """Whether a message has come in part: what comes next is the rest of it, whatever it looks like."""
        return self._connection.midway

    def read(self) -> list[list[bytes]]:
        """The messages that have come in; raises EOFError if the peer is gone, BlockingIOError if it says nothing."""
        data = self.socket.recv(4096)
        if not data:
            raise EOFError
        return list(self.feed(data))

    def feed(self, data: bytes) -> Iterator[list[bytes]]:
        """The messages in some bytes; what the protocol wants to be answered is answered."""
        yield from self._connection.feed(data)
        self.greet()

    def greet(self) -> None:
        """Sends what has to be sent before or between messages."""
        if outgoing := self._connection.take_outgoing():
            self.socket.sendall(outgoing)


class Handshake(NamedTuple):
    """A peer that has spoken."""

    peer: Peer
    first: list[bytes]
    """What it said first, which should be a hello."""
    rest: list[list[bytes]]
    """What came right behind."""


class PairListener:
    """A port that learners connect to; its methods block, and return soon after somebody wants to close it."""

    def __init__(self, host: str, port: int) -> None:
        place = "" if host in ("", "*") else host
        with refusing_place(host, port):
            self._listener = socket.create_server((place, port))
        self.port: int = self._listener.getsockname()[1]
        self._peers: dict[int, Peer] = {}
        self._stopping = threading.Event()

    def wait_for_caller(self) -> Handshake | None:
        """Whoever speaks next; None if it is time to stop. Peers that say nothing may stay and wait."""
        while not self._stopping.is_set():
            for number in self._ready():
                if number == self._listener.fileno():
                    self._admit()
                elif number in self._peers and (caller := self._listen(self._peers[number])) is not None:
                    return caller
        return None

    def converse(self, caller: Handshake, remote: RemoteRollout) -> None:
        """Plays until the trial is over, the learner is gone or breaks a rule, or it is time to stop."""
        if not is_hello(caller.first):
            raise AgentProtocol(f"the learner sent {_shown(caller.first)} first; it must send {HELLO!r}")
        peer, codec = caller.peer, Codec(remote.spec)
        talk = _Talk(peer.socket, remote, codec)
        try:
            talk.show(remote.rollout.turn)
            talk.take(caller.rest)
            while not remote.rollout.over:
                data = self._receive(peer.socket, remote.spec.reply_seconds)
                heard = None if peer.midway else codec.plain.get(data)
                if heard is not None:
                    talk.answer(heard)
                else:
                    talk.take(peer.feed(data))
        except (EOFError, ConnectionError):
            return  # whoever comes next with a hello goes on
        except BlockingIOError:
            raise AgentTimeout(f"the learner has read nothing for {UNREAD_SECONDS:g} s") from None

    def drop(self, peer: Peer) -> None:
        """Hangs up; another thread that is just sending there stops."""
        self._peers.pop(peer.socket.fileno(), None)
        with suppress(OSError):
            peer.socket.shutdown(socket.SHUT_RDWR)
        peer.socket.close()

    def close(self) -> None:
        """Has whatever blocks return, and hangs up on everybody."""
        self._stopping.set()
        for peer in list(self._peers.values()):
            self.drop(peer)
        self._listener.close()

    def _ready(self) -> list[int]:
        """Who has something to say. However many there are: `select` knows no more than a thousand files."""
        poll = select.poll()
        try:
            for number in (self._listener.fileno(), *list(self._peers)):
                poll.register(number, select.POLLIN)
            return [number for number, _ in poll.poll(PATIENCE * 1_000)]
        except (OSError, ValueError):  # closed meanwhile
            return []

    def _admit(self) -> None:
        """Takes in whoever connects, if it is still there and there is room for it."""
        try:
            peer = Peer(self._listener.accept()[0])
        except OSError:  # no file is left to be opened, or the peer is gone
            self._stopping.wait(PATIENCE)
            return
        self._peers[peer.socket.fileno()] = peer
        try:
            peer.greet()
        except OSError:
            self.drop(peer)
        if len(self._peers) > MAX_PEERS:
            self.drop(next(iter(self._peers.values())))

    def _listen(self, peer: Peer) -> Handshake | None:
        """A peer that has something to say, if it is not what was meant for a conversation that is over."""
        try:
            messages = peer.read()
        except (EOFError, OSError, AgentProtocol):
            self.drop(peer)
            return None
        while messages and is_belated(messages[0]):
            messages.pop(0)
        return Handshake(peer, messages[0], messages[1:]) if messages else None

    def _receive(self, sock: socket.socket, seconds: float | None) -> bytes:
        """What the learner sends next."""
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            try:
                data = sock.recv(4096)
            except BlockingIOError:
                if self._stopping.is_set():
                    raise EOFError from None
                if end is not None and time.monotonic() > end:
                    raise AgentTimeout(f"the learner sent no symbol within {seconds:g} s") from None
                continue
            if not data:
                raise EOFError
            return data


class _Talk:
    """A remote and the socket its turns are shown on; every turn is encoded once."""

    def __init__(self, sock: socket.socket, remote: RemoteRollout, codec: Codec) -> None:
        self.remote = remote
        self._send, self._codec = sock.sendall, codec
        self._known: dict[tuple[int, float], bytes] = {}

    def take(self, messages: Iterable[list[bytes]]) -> None:
        """What rarely arrives: several messages at once, pieces of one, a hello in between."""
        for message in messages:
            heard = self._codec.read(message)
            if heard is None:
                self.show(self.remote.rollout.turn)
            elif not self.remote.rollout.over:
                self.answer(heard)

    def answer(self, heard: Reply) -> None:
        """Takes a reply and shows what follows; the last turn is shown, and nothing is waited for."""
        turn, _ = self.remote.take(heard, durable=False)
        self.show(turn)
        if turn.ask is Ask.NONE:
            self.remote.take(Reply(), durable=False)

    def show(self, turn: Turn) -> None:
        key = turn.observation, turn.reward
        data = self._known.get(key)
        if data is None:
            data = self._known[key] = self._codec.encode(turn)
        self._send(data)


def _shown(message: Sequence[bytes]) -> str:
    return repr(b" | ".join(message)[:40])
