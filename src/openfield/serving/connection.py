"""A connection that carries lines: hands over whole lines and writes messages, within limits of memory and time.

Between the event loop and `jsonlines`. It calls back rather than being awaited: with a thousand agents, waking a task
for each line would cost as much as the turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from openfield.errors import AgentProtocol, AgentTimeout
from openfield.serving.listen import FORGET_SECONDS, MemoryBudget, Talks

MAX_LINE = 16 << 20
"""Bytes; an agent that writes more without a line break is flooding."""
MAX_LINES = 256 << 20
"""Bytes that the lines of all agents together may take while they are not read to the end."""
READ_AHEAD = 1 << 16
"""Bytes of further lines that are read before the first one is answered."""
TOO_LONG = f"a line of more than {MAX_LINE >> 20} MB"
Hear = Callable[["bytes | Exception"], None]
"""Takes a line with its line break, or why none will come."""


class LineConnection(asyncio.Protocol):
    """One agent's connection. Its conversation is a task that ends with it."""

    def __init__(
        self, talks: Talks, talk: Callable[[LineConnection], Awaitable[None]], memory: MemoryBudget | None = None
    ) -> None:
        self._talks, self._talk, self._memory = talks, talk, memory or MemoryBudget(MAX_LINES)
        self._loop, self._data = asyncio.get_running_loop(), bytearray()
        self._end = -1  # where the first line break is; -1 if there is none
        self._over: Exception | None = None  # why nothing more will come
        self._hear: Hear | None = None
        self._patience: float | None = None
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._paused = False
        self._drained: asyncio.Future[None] | None = None

    def listen(self, hear: Hear, patience: float | None) -> None:
        """Have the next line handed to `hear`, or why there is none.

        That is `AgentTimeout` if it takes longer than `patience` seconds, `AgentProtocol` if it is too long, and
        `EOFError` if the agent has left, or has said nothing for an hour.
        """
        self._hear, self._patience = hear, patience
        self._due = self._loop.time() + (FORGET_SECONDS if patience is None else patience)
        if self._end >= 0 or self._over is not None:
            self._loop.call_soon(self._tell)
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

    def _tell(self) -> None:
        """Hand over the first line, or why there is none."""
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
        self._talks.begin(self._talk(self), transport)

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
        self._tell()

    def eof_received(self) -> bool:
        """Let the conversation take the lines that are left, and end."""
        self._over = self._over or EOFError()
        self._tell()
        return True

    def connection_lost(self, error: Exception | None) -> None:
        """Free what the connection holds."""
        self._stop(EOFError())
        self.resume_writing()
        if self._timer is not None:
            self._timer.cancel()
        self._tell()

    def pause_writing(self) -> None:
        """Let the conversation wait: the agent does not read."""
        self._drained = self._loop.create_future()

    def resume_writing(self) -> None:
        """Let the conversation go on."""
        waiting, self._drained = self._drained, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)
