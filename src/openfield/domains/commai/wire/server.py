"""Serve remote learners of the original over ZeroMQ PAIR: send a reward and a symbol, receive a symbol.

The codec is bytes in, values out. `PairWire` talks to each learner in one thread, because a thread or an event loop's
turn per step would cost more than the step. The protocol has no acknowledgement: replies are written in good time, and
a learner that comes back is shown the turn it has not answered.
"""

from __future__ import annotations

import asyncio
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from openfield.core import Ask, Reply, Spec, Turn
from openfield.domains.commai.environment.serializers import speaks_bits
from openfield.domains.commai.environment.task import BYTES
from openfield.domains.commai.wire.zmtp import Connection, encode_frame
from openfield.errors import AgentFault, AgentProtocol, AgentTimeout, InvalidInput
from openfield.serving.listen import FORGET_SECONDS, refusing_place

if TYPE_CHECKING:
    from openfield.serving.remote import RemoteRollout
    from openfield.serving.wire import Dispatcher


HELLO = b"hello"
POLL_SECONDS = 0.1
"""Seconds between checks whether the learner is late or the listener was closed."""
UNREAD_SECONDS = 5.0
"""Seconds a learner may answer without reading, once nothing more can be sent to it."""
MAX_PEERS = 256
"""Connected programs that may wait in silence. If there are more, the first one is disconnected."""
MAX_LEARNERS = 256
"""Learners that may play at the same time."""
PORT_TRIES = 20
"""How often a row of free ports is looked for."""
_BITS = (b"0", b"1")
_BYTES = tuple(symbol.encode() for symbol in BYTES)


class Codec:
    """Encodes and decodes the messages of a trial in bytes or in bits."""

    def __init__(self, spec: Spec) -> None:
        bits = speaks_bits(spec)
        self._symbols = _BITS if bits else _BYTES
        self._replies = {symbol: Reply(code) for code, symbol in enumerate(self._symbols)}
        self.plain = {encode_frame(symbol): reply for symbol, reply in self._replies.items()}
        """Replies by the bytes of an ordinary message."""
        self._wanted = "'0' or '1'" if bits else "one character with a code from 0 to 255, in UTF-8"

    def encode(self, turn: Turn) -> bytes:
        """Encode a turn as the two messages a learner reads: the reward in decimal, then the symbol."""
        reward = str(int(turn.reward)).encode()
        return encode_frame(reward) + encode_frame(self._symbols[turn.observation])

    def read(self, message: Sequence[bytes]) -> Reply | None:
        """Return the reply in a learner's message, or None for a hello.

        Raises:
            AgentProtocol: The message is neither.
        """
        reply = self._replies.get(message[0]) if len(message) == 1 else None
        if reply is None and not is_hello(message):
            raise AgentProtocol(f"the learner sent {_shown(message)}; a symbol is {self._wanted}")
        return reply


def is_hello(message: Sequence[bytes]) -> bool:
    """Return whether a message is a hello, with or without a token behind a space."""
    return len(message) == 1 and message[0].split(b" ")[0] == HELLO


def hello_token(message: Sequence[bytes]) -> str | None:
    """Return the token of a hello, or None; learners of the original have none."""
    return message[0].partition(b" ")[2].decode(errors="replace") or None


async def play_pair(host: str, port: int, replies: Sequence[Reply]) -> None:
    """Play a learner that says these replies, and leave when the turn after the last one is shown."""
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


class ServedLearner:
    """One of the learners of a port: the name it is recorded under, and the trial it has not finished."""

    def __init__(self, name: str | None) -> None:
        self.name = name
        self.session: str | None = None
        self.plays = False


class PairWire:
    """Serves learners. A new `hello` goes on with an unfinished trial.

    Learners of the original say no name. Those that play at the same time on one port become agents of their own by the
    order in which they come; on ports of their own they are told apart by the port.
    """

    port = 5556

    def __init__(self, ports: int = 1, at_once: int = 1, agent: str = "remote") -> None:
        """Make a wire.

        Args:
            ports: How many ports there are, one above the other.
            at_once: How many learners may play on a port at the same time.
            agent: The name of the first learner; a number is appended for the others.
        """
        self._ports, self._at_once, self._agent = ports, at_once, agent
        self._threads, self._joining = ThreadPoolExecutor(ports * (at_once + 1), "learner"), asyncio.Lock()

    async def serve(self, dispatcher: Dispatcher, host: str, port: int, ready: Callable[[int], None]) -> None:
        """Serve until cancelled."""
        listeners = open_listeners(host, port, self._ports)
        try:
            first, last = listeners[0].port, listeners[-1].port
            if self._ports > 1:
                self.offer = f"{self._ports} learners on {host}:{first} to {last}, each on its own port"
            ready(first)
            names = [self._name(place) for place in range(1, self._ports + 1)]
            each = zip(names, listeners, strict=True)
            await asyncio.gather(*(self._serve_port(dispatcher, [ServedLearner(name)], port) for name, port in each))
        finally:
            for listener in listeners:
                listener.close()  # here, not in another thread: a second cancellation would skip it
            self._threads.shutdown(wait=False)

    def _name(self, place: int) -> str | None:
        return None if place == 1 else f"{self._agent}.{place}"

    async def _serve_port(self, dispatcher: Dispatcher, learners: list[ServedLearner], listener: PairListener) -> None:
        """Let each learner that says hello on a port play, at once if there is room."""
        loop, playing = asyncio.get_running_loop(), set[asyncio.Task[str | None]]()
        try:
            while (handshake := await loop.run_in_executor(self._threads, listener.wait_for_handshake)) is not None:
                full = len(playing) >= self._at_once
                if playing and (full or listener.has_hung_up(handshake.peer)):  # it may be the one that comes again
                    patience = None if full else UNREAD_SECONDS
                    await asyncio.wait(playing, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
                playing.add(begun := loop.create_task(self._play(dispatcher, learners, listener, handshake)))
                begun.add_done_callback(playing.discard)
        finally:
            for task in playing:
                task.cancel()
            await asyncio.gather(*playing, return_exceptions=True)

    async def _play(
        self, dispatcher: Dispatcher, learners: list[ServedLearner], listener: PairListener, handshake: Handshake
    ) -> str | None:
        """Play a trial as far as the learner goes; return the session if the trial is not finished."""
        loop = asyncio.get_running_loop()
        try:
            async with self._joining:
                learner, remote = await self._join(dispatcher, learners, hello_token(handshake.first))
            try:
                with remote:
                    await loop.run_in_executor(self._threads, listener.converse, handshake, remote)
            finally:
                learner.plays = False
                learner.session = None if remote.rollout.over or remote.fault else remote.session
        except AgentFault:
            return None  # recorded with the remote; a refused learner hears nothing, as in the original
        finally:
            listener.drop(handshake.peer)
        return learner.session

    async def _join(
        self, dispatcher: Dispatcher, learners: list[ServedLearner], token: str | None
    ) -> tuple[ServedLearner, RemoteRollout]:
        """Return the learner that a newcomer is: one with an unfinished trial, one with trials left, or a new one.

        Only a newcomer that plays at the same time as others can be new.
        """
        free = sorted((each for each in learners if not each.plays), key=lambda each: each.session is None)
        if any(each.plays for each in learners) and self._at_once > 1:
            free.append(ServedLearner(self._name(len(learners) + 1)))
        for learner in free:
            learner.plays = True
            try:
                remote = await dispatcher.join(learner.name, token, learner.session)
            except AgentFault:
                learner.plays = False
                if learner is free[-1]:
                    raise
            else:
                if learner not in learners:
                    learners.append(learner)
                return learner, remote
        raise AgentFault("Another learner plays on this port.")


def open_listeners(host: str, port: int, count: int) -> list[PairListener]:
    """Open ports, one above the other; for port 0 from any port on that has enough free ones above it."""
    for _ in range(PORT_TRIES):
        opened: list[PairListener] = []
        try:
            for _ in range(count):
                opened.append(PairListener(host, opened[-1].port + 1 if opened else port))
        except (InvalidInput, OverflowError):
            for listener in opened:
                listener.close()
            if port:
                raise
        else:
            return opened
    raise InvalidInput(f"There are no {count} free ports in a row. Choose the first one: --port NUMBER.")


class Peer:
    """A connected program, which may be a learner."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.connection = Connection()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(None)
        for limit, seconds in ((socket.SO_RCVTIMEO, POLL_SECONDS), (socket.SO_SNDTIMEO, UNREAD_SECONDS)):
            whole, part = divmod(int(seconds * 1e6), 1_000_000)  # one system call a step less than Python's timeouts
            sock.setsockopt(socket.SOL_SOCKET, limit, struct.pack("ll", whole, part))

    def feed(self, data: bytes) -> Iterator[list[bytes]]:
        """Yield the messages in these bytes, and send the answers that ZeroMQ's protocol asks for."""
        yield from self.connection.feed(data)
        self.greet()

    def greet(self) -> None:
        """Send what must be sent before or between messages."""
        if outgoing := self.connection.take_outgoing():
            self.socket.sendall(outgoing)


class Handshake(NamedTuple):
    """The first messages of a peer."""

    peer: Peer
    first: list[bytes]
    """The first message, which should be a hello."""
    rest: list[list[bytes]]
    """The messages right behind it."""


class PairListener:
    """A port that learners connect to. Its methods block, and return soon after `close`."""

    def __init__(self, host: str, port: int) -> None:
        place = "" if host in ("", "*") else host
        with refusing_place(host, port):
            self._listener = socket.create_server((place, port))
        self.port: int = self._listener.getsockname()[1]
        self._peers: dict[int, Peer] = {}  # those that wait in silence
        self._playing: dict[int, Peer] = {}
        self._stopping = threading.Event()

    def wait_for_handshake(self) -> Handshake | None:
        """Return the first messages of the next peer that speaks, or None after `close`. Silent peers may wait."""
        while not self._stopping.is_set():
            for number in self._ready():
                if number == self._listener.fileno():
                    self._admit()
                elif number in self._peers and (handshake := self._listen(self._peers[number])) is not None:
                    self._playing[number] = self._peers.pop(number)
                    return handshake
        return None

    def has_hung_up(self, newcomer: Peer) -> bool:
        """Return whether a learner that played before a newcomer has closed its side of the connection."""
        poll = select.poll()
        for number, peer in list(self._playing.items()):
            if peer is not newcomer:
                poll.register(number, select.POLLRDHUP)
        return bool(poll.poll(0))

    def converse(self, handshake: Handshake, remote: RemoteRollout) -> None:
        """Play until the trial is over, the learner is gone or breaks a rule, or `close` is called."""
        if not is_hello(handshake.first):
            raise AgentProtocol(f"the learner sent {_shown(handshake.first)} first; it must send {HELLO!r}")
        peer, codec = handshake.peer, Codec(remote.spec)
        conversation = _Conversation(peer.socket, remote, codec)
        try:
            conversation.show(remote.rollout.turn)
            conversation.take(handshake.rest)
            while not remote.rollout.over:
                data = self._receive(peer.socket, remote.spec.reply_seconds)
                heard = None if peer.connection.midway else codec.plain.get(data)
                if heard is not None:
                    conversation.answer(heard)
                else:
                    conversation.take(peer.feed(data))
        except (EOFError, ConnectionError):
            return  # the next learner that says hello goes on
        except BlockingIOError:
            raise AgentTimeout(f"the learner has read nothing for {UNREAD_SECONDS:g} s") from None

    def drop(self, peer: Peer) -> None:
        """Close the connection to a peer; another thread that is sending there stops."""
        for peers in (self._peers, self._playing):
            peers.pop(peer.socket.fileno(), None)
        with suppress(OSError):
            peer.socket.shutdown(socket.SHUT_RDWR)
        peer.socket.close()

    def close(self) -> None:
        """Let all blocking calls return, and close all connections."""
        self._stopping.set()
        for peer in [*self._peers.values(), *self._playing.values()]:
            self.drop(peer)
        self._listener.close()

    def _ready(self) -> list[int]:
        """Return the sockets with something to read. `select` would allow no more than a thousand."""
        poll = select.poll()
        try:
            for number in (self._listener.fileno(), *list(self._peers)):
                poll.register(number, select.POLLIN)
            return [number for number, _ in poll.poll(POLL_SECONDS * 1_000)]
        except (OSError, ValueError):  # closed meanwhile
            return []

    def _admit(self) -> None:
        """Accept a connection if the peer is still there and there is room for it."""
        try:
            peer = Peer(self._listener.accept()[0])
        except OSError:  # no file is left to be opened, or the peer is gone
            self._stopping.wait(POLL_SECONDS)
            return
        self._peers[peer.socket.fileno()] = peer
        try:
            peer.greet()
        except OSError:
            self.drop(peer)
        if len(self._peers) > MAX_PEERS:
            self.drop(next(iter(self._peers.values())))

    def _listen(self, peer: Peer) -> Handshake | None:
        """Return the first messages of a peer, without answers to a past conversation, sent after reconnecting."""
        try:
            data = peer.socket.recv(4096)
            messages = list(peer.feed(data))
        except (OSError, AgentProtocol):
            data, messages = b"", []
        if not data:
            self.drop(peer)
        while messages and len(messages[0]) == 1 and len(messages[0][0].decode(errors="replace")) == 1:
            messages.pop(0)
        return Handshake(peer, messages[0], messages[1:]) if messages else None

    def _receive(self, sock: socket.socket, seconds: float | None) -> bytes:
        """Return the next bytes of the learner; one that says nothing for an hour has left."""
        end = time.monotonic() + (FORGET_SECONDS if seconds is None else seconds)
        while True:
            try:
                data = sock.recv(4096)
            except BlockingIOError:
                if self._stopping.is_set():
                    raise EOFError from None
                if time.monotonic() > end:
                    if seconds is None:
                        raise EOFError from None
                    raise AgentTimeout(f"the learner sent no symbol within {seconds:g} s") from None
                continue
            if not data:
                raise EOFError
            return data


class _Conversation:
    """A remote rollout and the socket its turns are shown on. Every turn is encoded once."""

    def __init__(self, sock: socket.socket, remote: RemoteRollout, codec: Codec) -> None:
        self.remote = remote
        self._send, self._codec = sock.sendall, codec
        self._known: dict[tuple[int, float], bytes] = {}

    def take(self, messages: Iterable[list[bytes]]) -> None:
        """Handle what rarely arrives: several messages at once, pieces of one, a hello in between."""
        for message in messages:
            heard = self._codec.read(message)
            if heard is None:
                self.show(self.remote.rollout.turn)
            elif not self.remote.rollout.over:
                self.answer(heard)

    def answer(self, heard: Reply) -> None:
        """Take a reply and show the next turn. The last turn is shown, and no answer is awaited."""
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
