"""Serve remote learners of the original over ZeroMQ PAIR: send a reward and a symbol, receive a symbol.

libzmq carries the messages. `PairWire` talks to each learner in one thread, because an event loop's turn per step would
cost more than the step. The protocol has no acknowledgement: replies are written in good time, and a learner that comes
back is shown the turn it has not answered.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import TYPE_CHECKING

from openfield.core import Ask, Reply, Spec, Turn
from openfield.domains.commai.environment.serializers import speaks_bits
from openfield.domains.commai.environment.task import BYTES
from openfield.domains.commai.wire import line as lines
from openfield.domains.commai.wire.line import HELLO, Handshake, Line, is_hello, load_zmq
from openfield.domains.commai.wire.ports import LOG, PairPort, SharedPort, SinglePort, open_ports
from openfield.errors import AgentFault, AgentProtocol, AgentTimeout, OpenfieldError, WorldFault
from openfield.serving.listen import FORGET_SECONDS

if TYPE_CHECKING:
    from openfield.serving.remote import RemoteRollout
    from openfield.serving.wire import Dispatcher


MAX_LEARNERS = 256
"""Learners that may play at the same time."""
_BITS = (b"0", b"1")
_BYTES = tuple(symbol.encode() for symbol in BYTES)


class Codec:
    """Encodes and decodes the messages of a trial in bytes or in bits."""

    def __init__(self, spec: Spec) -> None:
        bits = speaks_bits(spec)
        self._symbols = _BITS if bits else _BYTES
        self._replies = {symbol: Reply(code) for code, symbol in enumerate(self._symbols)}
        self._wanted = "'0' or '1'" if bits else "one character with a code from 0 to 255, in UTF-8"

    def encode(self, turn: Turn) -> tuple[bytes, bytes]:
        """Encode a turn as the two messages a learner reads: the reward in decimal, and the symbol."""
        return str(int(turn.reward)).encode(), self._symbols[turn.observation]

    def read(self, message: Sequence[bytes]) -> Reply | None:
        """Return the reply in a learner's message, or None for a hello.

        Raises:
            AgentProtocol: The message is neither.
        """
        reply = self._replies.get(message[0]) if len(message) == 1 else None
        if reply is None and not is_hello(message):
            raise AgentProtocol(f"the learner sent {_shown(message)}; a symbol is {self._wanted}")
        return reply


def hello_token(message: Sequence[bytes]) -> str | None:
    """Return the token of a hello, or None; learners of the original have none."""
    return b"".join(message[:1]).partition(b" ")[2].decode(errors="replace") or None


async def play_pair(host: str, port: int, replies: Sequence[Reply]) -> None:
    """Play a learner that says these replies, and leave when the turn after the last one is shown."""
    kind = load_zmq().PAIR
    learner = import_module("zmq.asyncio").Context.instance().socket(kind)
    try:
        learner.connect(f"tcp://{host}:{port}")
        for frame in (HELLO, *(chr(reply.action).encode() for reply in replies)):
            await learner.send(frame)
            for _ in ("the reward", "the symbol"):
                await learner.recv()
    finally:
        learner.close(linger=0)


class ServedLearner:
    """One of the learners of a port: the name it is recorded under, and the trial it has not finished."""

    def __init__(self, name: str | None) -> None:
        self.name = name
        self.session: str | None = None
        self.plays = False


class PairWire:
    """Serves learners. A new `hello` goes on with an unfinished trial.

    Learners of the original say no name. Those that play at the same time on one port become agents of their own by the
    order in which they come; on ports of their own the port distinguishes them.
    """

    port = 5556

    def __init__(self, ports: int = 1, at_once: int = 1, agent: str = "remote", public: bool = False) -> None:
        """Make a wire.

        Args:
            ports: How many ports there are, one above the other.
            at_once: How many learners may play on a port at the same time.
            agent: The name of the first learner; a number is appended for the others.
            public: Whether anything may connect. If not, a peer that cannot be understood is the agent.
        """
        load_zmq()
        self._ports, self._at_once, self._agent, self._public = ports, at_once, agent, public
        self._threads, self._joining = ThreadPoolExecutor(ports * (at_once + 1), "learner"), asyncio.Lock()

    async def serve(self, dispatcher: Dispatcher, host: str, port: int, ready: Callable[[int], None]) -> None:
        """Serve until cancelled."""
        listeners = open_ports(host, port, self._ports, SharedPort if self._at_once > 1 else SinglePort)
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

    async def _serve_port(self, dispatcher: Dispatcher, learners: list[ServedLearner], listener: PairPort) -> None:
        """Let each learner that says hello on a port play, at once if there is room."""
        loop, playing = asyncio.get_running_loop(), set[asyncio.Task[str | None]]()
        try:
            while (handshake := await loop.run_in_executor(self._threads, listener.wait_for_handshake)) is not None:
                if handshake.problem and self._public:
                    LOG.warning("%s", f"A program was disconnected: {handshake.problem}.")
                    listener.drop(handshake.line, left=handshake.gone)
                    continue
                full = len(playing) >= self._at_once
                if playing and (full or listener.has_hung_up(handshake.line)):  # it may be the one that comes again
                    patience = None if full else lines.UNREAD_SECONDS
                    await asyncio.wait(playing, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
                playing.add(begun := loop.create_task(self._play(dispatcher, learners, listener, handshake)))
                begun.add_done_callback(playing.discard)
        finally:
            for task in playing:
                task.cancel()
            await asyncio.gather(*playing, return_exceptions=True)

    async def _play(
        self, dispatcher: Dispatcher, learners: list[ServedLearner], listener: PairPort, handshake: Handshake
    ) -> str | None:
        """Play a trial as far as the learner goes; return the session if the trial is not finished."""
        loop, left = asyncio.get_running_loop(), False
        try:
            try:
                async with self._joining:
                    learner, remote = await self._join(dispatcher, learners, hello_token(handshake.first))
            except AgentFault as error:
                if self._public:
                    LOG.warning("%s", f"A learner was refused: {error}")
                return None  # it hears nothing, as in the original
            try:
                with remote:
                    left = await loop.run_in_executor(self._threads, converse, handshake, remote)
            finally:
                learner.plays = False
                learner.session = None if remote.rollout.over or remote.fault else remote.session
        except (AgentFault, WorldFault):
            return None  # recorded with the remote
        except (OpenfieldError, ConnectionError) as error:  # not even that could be written, or it plays elsewhere
            LOG.warning("%s", f"A learner was disconnected: {error}")
            return None
        finally:
            listener.drop(handshake.line, left)
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


def converse(handshake: Handshake, remote: RemoteRollout) -> bool:
    """Play until the trial is over, the learner breaks a rule, or the line is closed; return whether it has left."""
    line = handshake.line
    if handshake.problem:
        raise AgentProtocol(handshake.problem)
    if not is_hello(handshake.first):
        raise AgentProtocol(f"the learner sent {_shown(handshake.first)} first; it must send {HELLO!r}")
    with line.using:
        conversation = _Conversation(line, remote)
        try:
            conversation.show(remote.rollout.turn)
            while not remote.rollout.over and not line.closing:
                conversation.hear()
        except EOFError:
            return True  # the next learner that says hello goes on
    return False


class _Conversation:
    """A remote rollout and the line its turns are shown on. Every turn is encoded once."""

    def __init__(self, line: Line, remote: RemoteRollout) -> None:
        self.remote = remote
        self._send, self._receive, self._codec = line.send, line.receive, Codec(remote.spec)
        self._known: dict[tuple[int, float], tuple[bytes, bytes]] = {}
        self._seconds = remote.spec.reply_seconds
        self._due = 0.0

    def hear(self) -> None:
        """Take the learner's next message. One that says nothing for an hour has left."""
        message = self._receive()
        if message is None:
            if time.monotonic() < self._due:
                return
            if self._seconds is None:
                raise EOFError
            raise AgentTimeout(f"the learner sent no symbol within {self._seconds:g} s")
        heard = self._codec.read(message)
        if heard is None:
            self.show(self.remote.rollout.turn)
            return
        self.show(self.remote.take(heard, durable=False)[0])

    def show(self, turn: Turn) -> None:
        """Show a turn, and begin to wait for its answer. The last one awaits none, also if the learner has left."""
        if turn.ask is Ask.NONE:
            self.remote.take(Reply(), durable=False)
        key = turn.observation, turn.reward
        frames = self._known.get(key)
        if frames is None:
            frames = self._known[key] = self._codec.encode(turn)
        self._send(*frames)
        self._due = time.monotonic() + (FORGET_SECONDS if self._seconds is None else self._seconds)


def _shown(message: Sequence[bytes]) -> str:
    return repr(b" | ".join(message)[:40])
