"""The little protocol for agents in any language: one JSON message a line, over stdio or TCP.

The agent speaks first (`hello`), gets the task (`welcome`), then answers every `turn` that asks for something with a
`reply`, until `bye`.
Everything up to `JsonLinesWire` is bytes in, values out; the wire and `agents/program.py` do the talking.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from openfield.core import Ask, Belief, Reply, Spec, Turn
from openfield.errors import AgentProtocol, AgentTimeout, OpenfieldError
from openfield.journal.receipt import Receipt, find_loop_queue
from openfield.record import MAX_VALUES, SMALL_ARRAY
from openfield.serving.listen import BACKLOG, FORGET_SECONDS, ConnectionTasks, MemoryBudget

if TYPE_CHECKING:
    from openfield.serving.remote import RemoteRollout
    from openfield.serving.wire import Dispatcher

PROTOCOL: Literal[1] = 1
ArrayForm = Literal["lists", "base64"]
"""How an agent is shown large arrays: as nested lists, or as their bytes with type and shape, a third of the size."""
MAX_JOINING = 32
"""How many agents are given a trial at the same time; opening one takes milliseconds."""
MAX_LINE = 16 << 20
"""Bytes; an agent that writes more without a line break is flooding."""
MAX_LINES = 256 << 20
"""Bytes that the lines of all agents together may take while they are not read to the end."""
READ_AHEAD = 1 << 16
"""Bytes of further lines that are read before the first one is answered."""
TOO_LONG = f"a line of more than {MAX_LINE >> 20} MB"
Hear = Callable[["bytes | Exception"], None]
"""Takes a line with its line break, or why none will come."""


class HelloMessage(msgspec.Struct, frozen=True, tag="hello"):
    """An agent introduces itself."""

    protocol: Literal[1] = PROTOCOL
    name: str | None = None
    saves: bool = False
    """Whether it answers `save` and `load`."""
    remembers: bool = False
    """Whether it takes `remember`."""
    token: str | None = None
    """What the server was started with, where it wants one."""
    session: str | None = None
    """What it was given in an earlier `welcome`, to go on with the same trial."""
    arrays: ArrayForm = "lists"
    """How it wants arrays of more than 64 numbers."""


class ReplyMessage(msgspec.Struct, frozen=True, tag="reply"):
    """An agent answers a turn."""

    action: Any = None
    belief: Belief | None = None
    note: Any = None
    """What the agent wants on record beside its answer; no world sees it."""


class StateMessage(msgspec.Struct, frozen=True, tag="state"):
    """An agent hands over its state, in base64."""

    state: bytes


class LoadedMessage(msgspec.Struct, frozen=True, tag="loaded"):
    """An agent has become what a state says."""


FromAgent = HelloMessage | ReplyMessage | StateMessage | LoadedMessage


class _TurnMessage(msgspec.Struct, frozen=True, tag="turn"):
    """A turn with every field, under the names that agents know."""

    ask: Ask
    observation: Any
    reward: float
    feedback: Any
    phase: str
    first: bool
    last: str | None
    red_light: bool | float | None


class LineDecoder:
    """Cuts a stream of bytes into messages of an agent."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[FromAgent]:
        """Yield the messages that are complete now.

        Raises:
            AgentProtocol: A line is not a message, or is too long.
        """
        self._rest += data
        if len(self._rest) > MAX_LINE + len(data):
            raise AgentProtocol(TOO_LONG)
        if b"\n" not in data:
            return
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            if line.strip():
                yield _decode(bytes(line))


def welcome(spec: Spec, seed: int, session: str | None = None) -> bytes:
    """Return the line that gives an agent its task and its seed."""
    return _line(type="welcome", protocol=PROTOCOL, spec=spec, seed=seed, session=session)


def turn_line(turn: Turn, arrays: ArrayForm = "lists") -> bytes:
    """Return the line that shows an agent a turn, with every field."""
    return _ENCODERS[arrays].encode(_show(turn)) + b"\n"


def remember_line(turn: Turn, reply: Reply, arrays: ArrayForm = "lists") -> bytes:
    """Return the line that reminds an agent of a recorded turn and its own reply to it."""
    message = {"type": "remember", "turn": _show(turn), "reply": _show_reply(reply)}
    return _ENCODERS[arrays].encode(message) + b"\n"


def save_line() -> bytes:
    """Return the line that asks an agent for its state."""
    return _line(type="save")


def load_line(state: bytes) -> bytes:
    """Return the line that gives an agent its saved state."""
    return _line(type="load", state=state)


def bye(note: str = "") -> bytes:
    """Return the line that ends a trial."""
    return _line(type="bye", note=note)


class JsonLinesWire:
    """Serves the protocol over TCP, a trial per `hello`."""

    port = 5570

    def __init__(self) -> None:
        self._joining = asyncio.Semaphore(MAX_JOINING)

    async def serve(self, dispatcher: Dispatcher, host: str, port: int, ready: Callable[[int], None]) -> None:
        """Serve until cancelled. Then every conversation ends at once."""
        tasks, talk, memory = ConnectionTasks(), partial(self._talk, dispatcher), MemoryBudget(MAX_LINES)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: LineConnection(tasks, talk, memory), host, port, backlog=BACKLOG)
        async with tasks.until_closed(server) as opened:
            ready(opened)
            await asyncio.Event().wait()

    async def _talk(self, dispatcher: Dispatcher, lines: LineConnection) -> None:
        try:
            while True:
                await self._play(dispatcher, lines)
        except (EOFError, ConnectionError):
            pass  # an agent that comes back with the session goes on
        except OpenfieldError as error:
            with suppress(ConnectionError):
                lines.write(bye(str(error)))
        finally:
            lines.close()

    async def _play(self, dispatcher: Dispatcher, lines: LineConnection) -> None:
        hello = _decode(await lines.read())
        if not isinstance(hello, HelloMessage):
            raise AgentProtocol("the first message must be a hello")
        async with self._joining:
            if lines.is_lost:  # an agent that gave up while it waited takes no trial
                raise EOFError
            remote = await dispatcher.join(hello.name, hello.token, hello.session)
        with remote:
            lines.write(welcome(remote.spec, remote.seed, remote.session))
            await _Exchange(lines, remote, hello.arrays).finished
            lines.write(bye())


class _Exchange:
    """Plays a trial over a connection. Each step calls the next when it can be done."""

    def __init__(self, lines: LineConnection, remote: RemoteRollout, arrays: ArrayForm) -> None:
        loop = asyncio.get_running_loop()
        self.finished: asyncio.Future[None] = loop.create_future()
        self._lines, self._remote, self._loop_queue = lines, remote, find_loop_queue(loop)
        self._arrays = arrays
        self._written: Receipt[Any] | None = None
        self._show()

    def _show(self) -> None:
        """Show the present turn, and wait for the reply."""
        if self.finished.done():
            return
        rollout = self._remote.rollout
        if rollout.over:
            self.finished.set_result(None)
            return
        is_asked = rollout.turn.ask is not Ask.NONE
        try:
            self._lines.write(turn_line(rollout.turn, self._arrays))
        except (OpenfieldError, OSError, TypeError) as error:
            # An agent that has said its last words may leave before it learns how the episode ended.
            if is_asked or not isinstance(error, ConnectionError):
                self.finished.set_exception(error)
                return
        if is_asked:
            self._lines.listen(self._hear, self._remote.spec.reply_seconds)
        else:
            self._take(Reply())

    def _hear(self, line: bytes | Exception) -> None:
        """Take the agent's reply, or end because none will come."""
        if self.finished.done():
            return
        try:
            if isinstance(line, Exception):
                raise line
            answer = _decode(line)
            if not isinstance(answer, ReplyMessage):
                raise AgentProtocol(f"Turn {self._remote.rollout.turns}: expected a reply")
        except (OpenfieldError, OSError, EOFError) as error:
            self.finished.set_exception(error)
        else:
            self._take(Reply(answer.action, answer.belief, note=answer.note))

    def _take(self, reply: Reply) -> None:
        try:
            self._written = self._remote.post(reply)
        except (OpenfieldError, OSError) as error:
            self.finished.set_exception(error)
        else:
            self._written.then_in_loop(self._loop_queue, self._go_on)

    def _go_on(self) -> None:
        """Show the next turn once the reply is on disk and the agent has read the turns before."""
        if self.finished.done():
            return
        if self._written is not None and self._written.failure is not None:
            self.finished.set_exception(self._written.failure)
        elif self._lines.drained is not None:
            self._lines.drained.add_done_callback(lambda _: self._show())
        else:
            self._show()


def _decode(line: bytes) -> FromAgent:
    if len(line) > MAX_VALUES // 8 and line.count(b",") + 8 * (line.count(b"[") + line.count(b"{")) > MAX_VALUES:
        raise AgentProtocol(f"a message of more than {MAX_VALUES:,} values")
    try:
        return _FROM_AGENT.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise AgentProtocol(f"not a message of the protocol: {line[:80]!r} ({error})") from None


def _show(turn: Turn) -> _TurnMessage:
    shown = turn.observation, turn.reward, turn.feedback, turn.phase, turn.first, turn.last, turn.red_light
    return _TurnMessage(turn.ask, *shown)


def _show_reply(reply: Reply) -> dict[str, Any]:
    message = {"action": reply.action, "belief": reply.belief}
    return message if reply.note is None else {**message, "note": reply.note}


def _line(**message: Any) -> bytes:
    return _TO_AGENT.encode(message) + b"\n"


def _listed(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} cannot be shown over a wire")


def _packed(value: Any) -> Any:
    """Return a large array as its bytes in row order, little-endian, which JSON has in base64."""
    if isinstance(value, np.ndarray) and value.size > SMALL_ARRAY:
        ordered = value.astype(value.dtype.newbyteorder("<"), copy=False)
        return {"dtype": value.dtype.name, "shape": value.shape, "base64": ordered.tobytes()}
    return _listed(value)


_FROM_AGENT: msgspec.json.Decoder[FromAgent] = msgspec.json.Decoder(FromAgent)
_TO_AGENT = msgspec.json.Encoder(enc_hook=_listed)
_ENCODERS: dict[ArrayForm, msgspec.json.Encoder] = {
    "lists": _TO_AGENT,
    "base64": msgspec.json.Encoder(enc_hook=_packed),
}


class LineConnection(asyncio.Protocol):
    """One agent's connection, which hands over whole lines within limits of memory and time.

    Its conversation is a task that ends with it. It calls back rather than being awaited: with a thousand agents,
    waking a task for each line would cost as much as the turn.
    """

    def __init__(
        self,
        tasks: ConnectionTasks,
        talk: Callable[[LineConnection], Awaitable[None]],
        memory: MemoryBudget | None = None,
    ) -> None:
        self._tasks, self._talk, self._memory = tasks, talk, memory or MemoryBudget(MAX_LINES)
        self._loop, self._data = asyncio.get_running_loop(), bytearray()
        self._end = -1  # where the first line break is, or -1
        self._over: Exception | None = None  # why nothing more will come
        self._hear: Hear | None = None
        self._patience: float | None = None
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._paused = False
        self._drained: asyncio.Future[None] | None = None

    def listen(self, hear: Hear, patience: float | None) -> None:
        """Have the next line handed to `hear`, or why none comes.

        That is `AgentTimeout` if it takes longer than `patience` seconds, `AgentProtocol` if it is too long, and
        `EOFError` if the agent has left, or has said nothing for an hour.
        """
        self._hear, self._patience = hear, patience
        self._due = self._loop.time() + (FORGET_SECONDS if patience is None else patience)
        if self._end >= 0 or self._over is not None:
            self._loop.call_soon(self._make_calls)
        elif self._timer is None or self._timer.when() > self._due:
            self._watch()

    async def read(self) -> bytes:
        """Return the next line."""
        heard: asyncio.Future[bytes | Exception] = self._loop.create_future()
        self.listen(lambda line: None if heard.done() else heard.set_result(line), None)
        line = await heard
        if isinstance(line, Exception):
            raise line
        return line

    def write(self, message: bytes) -> None:
        """Write a message."""
        if self._over is not None or self._transport.is_closing():  # some event loops refuse to write then
            raise ConnectionError("the agent has hung up")
        self._transport.write(message)

    @property
    def drained(self) -> asyncio.Future[None] | None:
        """Done when the agent has read what was written; None if it has."""
        return self._drained

    @property
    def is_lost(self) -> bool:
        """Whether the connection is broken."""
        return self._over is not None and not self._data

    def close(self) -> None:
        """Close the connection when all is written."""
        self._transport.close()

    def _make_calls(self) -> None:
        """Hand over the first line, or why none comes."""
        hear = self._hear
        if hear is None or (self._end < 0 and self._over is None):
            return
        self._hear = None
        hear(self._take_line() if self._end >= 0 else self._over or EOFError())

    def _take_line(self) -> bytes:
        line = bytes(self._data[: self._end + 1])
        del self._data[: self._end + 1]
        self._memory.free(len(line))
        self._end = self._data.find(b"\n")
        if self._paused and self._end < 0:
            self._paused = False
            self._transport.resume_reading()
        return line

    def _watch(self) -> None:
        """Start the timer of the present question; it is not set anew for each of them, but looks again."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._due, self._check_time)

    def _check_time(self) -> None:
        self._timer = None
        if self._hear is None:
            return
        if self._loop.time() < self._due:
            self._watch()
            return
        hear, self._hear = self._hear, None
        hear(EOFError() if self._patience is None else AgentTimeout(f"no message within {self._patience:g} s"))

    def _stop(self, reason: Exception) -> None:
        """Forget all that was read: nothing more will be."""
        self._memory.free(len(self._data))
        self._data.clear()
        self._over, self._end = self._over or reason, -1

    # What the event loop calls.

    def connection_made(self, transport: Any) -> None:
        """Start the conversation."""
        self._transport: asyncio.Transport = transport
        self._tasks.begin(self._talk(self), transport)

    def data_received(self, data: bytes) -> None:
        """Take what has arrived, and stop reading where enough is waiting."""
        if self._over is not None:
            return
        size = len(self._data)
        self._data += data
        if not self._memory.take(len(data)):
            self._stop(ConnectionError("the agents of this server write too much at once"))
        elif self._end < 0:
            self._end = self._data.find(b"\n", size)
            if (size + len(data) if self._end < 0 else self._end) > MAX_LINE:
                self._stop(AgentProtocol(TOO_LONG))
        if self._end >= 0 and len(self._data) > READ_AHEAD and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._make_calls()

    def eof_received(self) -> bool:
        """Let the conversation take the lines that are left, and end."""
        self._over = self._over or EOFError()
        self._make_calls()
        return True

    def connection_lost(self, error: Exception | None) -> None:
        """Free what the connection holds."""
        self._stop(EOFError())
        self.resume_writing()
        if self._timer is not None:
            self._timer.cancel()
        self._make_calls()

    def pause_writing(self) -> None:
        """Let the conversation wait: the agent does not read."""
        self._drained = self._loop.create_future()

    def resume_writing(self) -> None:
        """Let the conversation go on."""
        waiting, self._drained = self._drained, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)
