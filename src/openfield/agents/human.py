"""A person as an agent: turns are shown in the words of a `TurnWriter`, and answers are typed.

`openfield play --terminal` uses it; it works on a terminal and on a pipe.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from openfield.agents.turn_writer import BELIEF_QUESTION, TurnWriter, find_writer, read_probability
from openfield.console import escape_controls
from openfield.core import AgentFactory, Ask, Belief, Reply, Turn
from openfield.domain import Domain
from openfield.errors import Cancelled

BELIEF_RANGE = "A belief is a number from 0 to 1."


def make_human(domain: Domain[Any]) -> AgentFactory:
    """Return a factory for the person at this terminal."""
    return lambda spec, seed: LineHuman(find_writer(domain, spec))


class LineHuman:
    """Shows turns on one stream and reads from another, a line at a time.

    Args:
        writer: Says turns in words, and reads the person's input.
        source: Where lines are read; by default standard input.
        target: Where turns are shown; by default standard output.
    """

    may_leave = True

    def __init__(self, writer: TurnWriter, source: TextIO | None = None, target: TextIO | None = None) -> None:
        self._writer = writer
        self._source, self._target = source or sys.stdin, target or sys.stdout
        self._belief: Belief | None = None
        self._say("\n".join(part for part in (writer.task, writer.rules, writer.help) if part))

    def __call__(self, turn: Turn) -> Reply:
        """Show a turn and wait for an answer that makes sense. A turn to act in that needs no line is not shown."""
        writer = self._writer
        shown, prompt = writer.show(turn), writer.prompt(turn)
        if turn.ask is Ask.ACT and not prompt:
            return writer.pass_over(turn) or Reply()
        self._say(shown)
        if prompt:
            return self._ask_reply(turn)
        return Reply(None, self._ask_belief(turn) if writer.asks_belief(turn) else None)

    def remember(self, turn: Turn, reply: Reply) -> None:
        """Take note of a turn that was played before, and of its belief."""
        self._writer.describe(turn)
        self._belief = reply.belief or self._belief

    def _ask_reply(self, turn: Turn) -> Reply:
        """Ask until a line is an action or a belief."""
        while True:
            line = self._ask(self._writer.prompt(turn))
            if answer := self._writer.explain(line):
                self._say(answer)
            elif line.startswith("?"):
                if (belief := self._read_belief(line)) is not None:
                    return Reply(None, belief)
            elif (action := self._read_action(line, turn)) is not None:
                asks = turn.ask is Ask.ACT and self._writer.asks_belief(turn)
                return Reply(action, self._ask_belief(turn) if asks else None)

    def _read_action(self, line: str, turn: Turn) -> Any:
        """Return the action of a line, or None if the line is not an action. Any line is a go-ahead."""
        try:
            return self._writer.read_line(line)
        except ValueError as error:
            if turn.ask is Ask.READY:
                return True
            problem = str(error)
            self._say(f"{problem[:1].upper()}{problem[1:]}. Type ? for help.")
            return None

    def _ask_belief(self, turn: Turn) -> Belief | None:
        """Ask for the belief. An empty line means the same as before, and so does the end of the input.

        A world that asks for a belief itself must get one.
        """
        needed = turn.ask is Ask.BELIEF
        while True:
            text = self._ask(f"{BELIEF_QUESTION} ", may_end=not needed)
            if text.strip("? "):
                if (belief := self._read_belief(text)) is not None:
                    return belief
            elif not needed or self._belief is not None:
                return self._belief

    def _read_belief(self, text: str) -> Belief | None:
        """Keep the belief that was typed and return it; None if it makes no sense."""
        try:
            self._belief = Belief(read_probability(text.strip("? ")))
        except ValueError:
            self._say(BELIEF_RANGE)
            return None
        return self._belief

    def _ask(self, prompt: str, may_end: bool = False) -> str:
        """Return a typed line without blanks around it; empty at the end of the input if it may end here."""
        self._target.write(escape_controls(prompt))
        self._target.flush()
        line = read_line(self._source, self._target)
        text = line.strip()
        if text == "QUIT" or not (line or may_end):
            raise Cancelled("The player left.")
        return text

    def _say(self, text: str) -> None:
        if text:
            self._target.write(f"{escape_controls(text)}\n")


def read_line(source: TextIO, target: TextIO) -> str:
    """Read what a person types; the end of the input, which is empty, ends the line on the screen.

    Args:
        source: Where the line comes from.
        target: Where the person was asked.

    Raises:
        Cancelled: The person pressed Ctrl-C. The turn under way waits for them, so nothing would end it later.
    """
    try:
        with _raising_interrupts():
            line = source.readline()
    except KeyboardInterrupt:
        target.write("\n")
        raise Cancelled("The player left.") from None
    if not line:
        target.write("\n")
    return line


@contextmanager
def _raising_interrupts() -> Iterator[None]:
    """Let Ctrl-C interrupt at once, unless this process ignores it or another thread has to take it."""
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if ignored or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
