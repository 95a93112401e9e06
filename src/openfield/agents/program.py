"""An agent that is a program in any language: it speaks JSON lines on its standard input and output.

`process:COMMAND` on the command line. The protocol is in `serving/jsonlines.py` and in docs/stdio.md.
"""

from __future__ import annotations

import os
import selectors
import shlex
import subprocess
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import IO, TypeVar

from openfield.clock import monotonic
from openfield.core import AgentFactory, Ask, Reply, Spec, Turn
from openfield.errors import AgentGone, AgentProtocol, AgentTimeout, InvalidInput
from openfield.processes.program import Guard
from openfield.serving import jsonlines
from openfield.serving.jsonlines import FromAgent

M = TypeVar("M", bound=FromAgent)
FAREWELL_SECONDS = 2.0


def process_agent(command: str, confine: Callable[[], Guard] | None = None) -> AgentFactory:
    """Return a factory that starts the command anew for every cell, each time confined anew."""
    words = split_command(f"process:{command}")
    guard = confine or partial(Guard, keep_errors=True)
    return lambda spec, seed: Program(words, spec, seed, guard())


def split_command(source: str) -> list[str]:
    """Split the command in `process:COMMAND` or `wire:COMMAND` into words."""
    kind, _, command = source.partition(":")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InvalidInput(f"'{source}' is not a command: {str(error).lower()}.") from None
    if not words:
        raise InvalidInput(f"{kind}: needs a command, for instance {kind}:'python3 agent.py'.")
    return words


class Program:
    """A program that is running, as an agent."""

    def __init__(self, words: list[str], spec: Spec, seed: int, guard: Guard) -> None:
        self._patience = spec.reply_seconds
        self._lines = jsonlines.LineDecoder()
        self._guard = guard
        pipe = subprocess.PIPE
        try:
            command = guard.wrap(words)
            options = {**guard.options(), "stdin": pipe, "stdout": pipe, "bufsize": 0}
            self._process = subprocess.Popen(command, **options)  # noqa: S603 - the user's own command
        except OSError as error:
            self._guard.end()
            raise AgentGone(f"'{words[0]}' cannot be started: {error.strerror}.") from None
        self._guard.watch(self._process.pid)
        self._inbox, self._outbox = selectors.DefaultSelector(), selectors.DefaultSelector()
        self._inbox.register(self._pipe(self._process.stdout), selectors.EVENT_READ)
        self._outbox.register(self._pipe(self._process.stdin), selectors.EVENT_WRITE)
        os.set_blocking(self._pipe(self._process.stdin).fileno(), False)
        try:
            hello = self.read(jsonlines.HelloMessage)
            self._arrays = hello.arrays
            if hello.saves:  # else it has no `save`, as an agent that cannot
                self.save, self.load = self._save, self._load
            if hello.remembers:
                self.remember = self._remember
            self.write(jsonlines.welcome(spec, seed))
        except BaseException:
            self.close()
            raise

    def __call__(self, turn: Turn) -> Reply:
        """Answer a turn. One that asks nothing is shown, and no answer is waited for."""
        if turn.ask is Ask.NONE:
            self.write(jsonlines.turn_line(turn, self._arrays))
            return Reply()
        answer = self.ask(jsonlines.turn_line(turn, self._arrays), jsonlines.ReplyMessage)
        return Reply(answer.action, answer.belief, note=answer.note)

    def ask(self, message: bytes, kind: type[M]) -> M:
        """Send a message and return the answer. The program must have sent nothing since its last answer."""
        if self._inbox.select(0):
            raise AgentProtocol(f"got {_names(self._messages())} without having asked")
        self.write(message)
        return self.read(kind)

    def write(self, message: bytes) -> None:
        """Send a message. A program that does not read it in time ends in `AgentTimeout`."""
        rest, end = memoryview(message), self._deadline()
        try:
            while rest:
                self._await(self._outbox, end)
                rest = rest[self._pipe(self._process.stdin).write(rest) or 0 :]
        except BrokenPipeError:
            raise self._gone() from None

    def read(self, kind: type[M]) -> M:
        """Return the next message, which must be of this kind and must not be followed by another."""
        message, *more = self._messages()
        if more or not isinstance(message, kind):
            raise AgentProtocol(f"expected one {kind.__struct_config__.tag}, got {_names([message, *more])}")
        return message

    def close(self) -> None:
        """Send `bye`, wait a little, then end the program and all processes it started."""
        with suppress(AgentGone, AgentTimeout, OSError):
            self._patience = FAREWELL_SECONDS
            self.write(jsonlines.bye())
        self._inbox.close()
        self._outbox.close()
        for pipe in (self._process.stdin, self._process.stdout):
            self._pipe(pipe).close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(FAREWELL_SECONDS)
        self._guard.end()  # it may have ended and left others behind
        self._process.wait()

    def _save(self) -> bytes:
        """Ask the program for its state."""
        return self.ask(jsonlines.save_line(), jsonlines.StateMessage).state

    def _load(self, state: bytes) -> None:
        """Give the program the state it saved."""
        self.ask(jsonlines.load_line(state), jsonlines.LoadedMessage)

    def _remember(self, turn: Turn, reply: Reply) -> None:
        """Tell the program of a recorded turn and its reply; no answer is waited for."""
        self.write(jsonlines.remember_line(turn, reply, self._arrays))

    def _messages(self) -> list[FromAgent]:
        """Wait for a message and return all that have come."""
        end, messages = self._deadline(), list[FromAgent]()
        while not messages:
            self._await(self._inbox, end)
            data = self._pipe(self._process.stdout).read(1 << 16)
            if not data:
                raise self._gone()
            messages += self._lines.feed(data)
        return messages

    def _deadline(self) -> float | None:
        return None if self._patience is None else monotonic() + self._patience

    def _await(self, selector: selectors.BaseSelector, end: float | None) -> None:
        while not selector.select(None if end is None else max(end - monotonic(), 0)):
            if end is not None and monotonic() < end:  # this process was stopped meanwhile
                continue
            if self._process.poll() is not None:  # its children keep its pipes open
                raise self._gone()
            raise AgentTimeout(f"No message within {self._patience:g} s.")

    def _gone(self) -> AgentGone:
        """Return the error for a program that has ended, with the last line of its standard error."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(FAREWELL_SECONDS)
        if self._guard.reason:
            return AgentGone(self._guard.reason)
        words = self._guard.last_words()
        return AgentGone(f"The program ended (status {self._process.poll()}){f': {words}' if words else '.'}")

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        if pipe is None:
            raise AgentGone("The program has no pipe.")
        return pipe


def _names(messages: list[FromAgent]) -> str:
    names = [str(each.__struct_config__.tag) for each in messages]
    return ", ".join(names[:4]) + (" and more" if len(names) > 4 else "")
