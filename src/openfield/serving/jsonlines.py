"""The little protocol for agents in any language: one JSON message a line, over stdio or TCP.

The agent speaks first (`hello`), is told the task (`welcome`), then answers every `turn` that asks for something with a
`reply`, until `bye`.
Everything up to `JsonLinesWire` is bytes in, values out; the wire and `agents/process.py` do the talking.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from openfield.core import Ask, Belief, Reply, Spec, Turn
from openfield.errors import AgentProtocol, AgentTimeout, OpenfieldError
from openfield.serving.listen import receiving

if TYPE_CHECKING:
    from openfield.serving.wire import Dispatcher

PROTOCOL: Literal[1] = 1
MAX_LINE = 16 << 20
"""Bytes; an agent that writes more without a line break is flooding."""


class HelloMessage(msgspec.Struct, frozen=True, tag="hello"):
    """An agent introduces itself."""

    protocol: Literal[1] = PROTOCOL
    name: str | None = None
    saves: bool = False
    """Whether it answers `save` and `load`."""
    token: str | None = None
    """What the server was started with, where it wants one."""
    session: str | None = None
    """What it was given in an earlier `welcome`, to go on with the same trial."""


class ReplyMessage(msgspec.Struct, frozen=True, tag="reply"):
    """An agent answers a turn."""

    action: Any = None
    belief: Belief | None = None


class StateMessage(msgspec.Struct, frozen=True, tag="state"):
    """An agent hands over its state, in base64."""

    state: bytes


class LoadedMessage(msgspec.Struct, frozen=True, tag="loaded"):
    """An agent has become what a state says."""


FromAgent = HelloMessage | ReplyMessage | StateMessage | LoadedMessage


class LineDecoder:
    """Cuts a stream of bytes into messages of an agent."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[FromAgent]:
        """Yield the messages that are complete now.

        Raises:
            AgentProtocol: A line is no message, or too long.
        """
        self._rest += data
        if len(self._rest) > MAX_LINE + len(data):
            raise AgentProtocol(f"a line of more than {MAX_LINE >> 20} MB")
        if b"\n" not in data:
            return
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            if line.strip():
                yield _decode(bytes(line))


def welcome(spec: Spec, seed: int, session: str | None = None) -> bytes:
    """Return the line that tells an agent its task and its seed."""
    return _line(type="welcome", protocol=PROTOCOL, spec=spec, seed=seed, session=session)


def turn_line(turn: Turn) -> bytes:
    """Return the line that shows an agent a turn, with every field."""
    return _line(type="turn", **{name: getattr(turn, name) for name in turn.__struct_fields__})


def save_line() -> bytes:
    """Return the line that asks an agent for its state."""
    return _line(type="save")


def load_line(state: bytes) -> bytes:
    """Return the line that gives an agent its saved state."""
    return _line(type="load", state=state)


def bye(note: str = "") -> bytes:
    """Return the line that tells an agent that the trial is over."""
    return _line(type="bye", note=note)


class JsonLinesWire:
    """Serves the protocol over TCP, a trial per `hello`."""

    port = 5570

    async def serve(self, dispatcher: Dispatcher, host: str, port: int, ready: Callable[[int], None]) -> None:
        """Serve until cancelled. Then every conversation ends at once."""
        async with receiving(partial(self._talk, dispatcher), host, port, limit=MAX_LINE) as opened:
            ready(opened)
            await asyncio.Event().wait()

    async def _talk(self, dispatcher: Dispatcher, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = _Conversation(reader, writer)
        try:
            while True:
                await self._play(dispatcher, lines)
        except (EOFError, ConnectionError):
            pass  # an agent that comes back with the session goes on
        except OpenfieldError as error:
            with suppress(ConnectionError):
                await lines.write(bye(str(error)))
        finally:
            writer.close()

    async def _play(self, dispatcher: Dispatcher, lines: _Conversation) -> None:
        hello = await lines.read(None)
        if not isinstance(hello, HelloMessage):
            raise AgentProtocol("the first message must be a hello")
        remote = await dispatcher.join(hello.name, hello.token, hello.session)
        with remote:
            await lines.write(welcome(remote.spec, remote.seed, remote.session))
            while not remote.rollout.over:
                await lines.write(turn_line(remote.rollout.turn))
                if remote.rollout.turn.ask is Ask.NONE:
                    await remote.reply(Reply())
                    continue
                answer = await lines.read(remote.spec.reply_seconds)
                if not isinstance(answer, ReplyMessage):
                    raise AgentProtocol(f"Turn {remote.rollout.turns}: expected a reply")
                await remote.reply(Reply(answer.action, answer.belief))
            await lines.write(bye())


class _Conversation:
    """Reads and writes whole messages on a TCP connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self, patience: float | None) -> FromAgent:
        try:
            line = await asyncio.wait_for(self._reader.readline(), patience)
        except TimeoutError:
            raise AgentTimeout(f"no message within {patience:g} s") from None
        except ValueError:
            raise AgentProtocol(f"a line of more than {MAX_LINE >> 20} MB") from None
        if not line.endswith(b"\n"):
            raise EOFError
        return _decode(line)

    async def write(self, message: bytes) -> None:
        if self._writer.is_closing():  # some event loops refuse to write then
            raise ConnectionError("the agent has hung up")
        self._writer.write(message)
        await self._writer.drain()


def _decode(line: bytes) -> FromAgent:
    try:
        return _FROM_AGENT.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise AgentProtocol(f"not a message of the protocol: {line[:80]!r} ({error})") from None


def _line(**message: Any) -> bytes:
    return _TO_AGENT.encode(message) + b"\n"


def _listed(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} cannot be shown over a wire")


_FROM_AGENT: msgspec.json.Decoder[FromAgent] = msgspec.json.Decoder(FromAgent)
_TO_AGENT = msgspec.json.Encoder(enc_hook=_listed)
