"""A person as an agent: turns are printed, answers are typed.

`openfield play` uses it for domains that bring no player of their own; it works on a terminal and on a pipe.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import msgspec

from openfield.agents.belief_question import BELIEF_QUESTION, asks_belief
from openfield.core import Ask, Belief, Reply, Spec, Turn
from openfield.errors import Cancelled
from openfield.spaces import Choice, Discrete

HELP = "Type an action; '? 0.7' says how sure you are that the world has changed; QUIT stops (and can be resumed)."


class LineHuman:
    """Asks on one stream and reads from another, a line a turn."""

    stateless = may_leave = True
    help = HELP

    def __init__(self, spec: Spec, seed: int, source: TextIO | None = None, target: TextIO | None = None) -> None:
        self._spec = spec
        self._source = source or sys.stdin
        self._target = target or sys.stdout
        self._last_belief: Belief | None = None
        self._say(f"{spec.task}\n{self.help}")

    def __call__(self, turn: Turn) -> Reply:
        """Show a turn and wait for an answer that makes sense."""
        self._show(turn)
        asked = asks_belief(turn, self._spec.ask)
        if turn.ask is Ask.NONE:
            return Reply(None, self._ask_belief() if asked else None)
        while True:
            reply = self._read(self._prompt(turn))
            if reply is not None:
                self._last_belief = reply.belief or self._last_belief
                unasked = reply.action is None or turn.ask is not Ask.ACT or not asked
                return reply if unasked else Reply(reply.action, self._ask_belief())

    def describe(self, observation: Any) -> str:
        """Return the observation as text. Subclasses may say it better."""
        return msgspec.json.encode(observation, enc_hook=str).decode()

    def parse(self, text: str) -> Any:
        """Return the action that was typed; None if the text is not an action."""
        action = text if isinstance(self._spec.actions, Choice) else read_json(text)
        fits = text and (self._spec.actions is None or self._spec.actions.contains(action))
        return action if fits else None

    def _show(self, turn: Turn) -> None:
        parts = [f"[{turn.phase}]", self.describe(turn.observation), f"reward {turn.reward:g}"]
        if turn.feedback is not None:
            parts.append(f"feedback {turn.feedback}")
        if turn.red_light:
            parts.append("RED LIGHT: the world has changed")
        if turn.last is not None:
            parts.append(f"-- episode {turn.last} --")
        self._say("  ".join(parts))

    def _prompt(self, turn: Turn) -> str:
        space = self._spec.actions
        if turn.ask is Ask.BELIEF:
            return f"{BELIEF_QUESTION} "
        if turn.ask is Ask.READY:
            return "Ready? "
        if isinstance(space, Choice):
            return f"{' | '.join(space.options)}: "
        return f"{space.start} .. {space.start + space.n - 1}: " if isinstance(space, Discrete) else "action (JSON): "

    def _read(self, prompt: str) -> Reply | None:
        """Read a line and return the reply it stands for; None if it stands for none."""
        self._target.write(prompt)
        self._target.flush()
        line = read_line(self._source, self._target)
        text = line.strip()
        if not line or text == "QUIT":
            raise Cancelled("The player left.")
        if text == "?":
            self._say(self.help)
            return None
        if text.startswith("?") or prompt.startswith(BELIEF_QUESTION):
            return self._belief(text.lstrip("? "))
        if prompt.startswith("Ready"):
            return Reply(True if (action := self.parse(text)) is None else action)
        action = self.parse(text)
        if action is None:
            self._say(f"'{text}' is not an action here. {self.help}")
            return None
        return Reply(action)

    def _ask_belief(self) -> Belief | None:
        """Ask for the belief; an empty line, or the end of the input, means the same as before."""
        while True:
            self._target.write(f"{BELIEF_QUESTION} ")
            self._target.flush()
            line = read_line(self._source, self._target)
            if line.strip() == "QUIT":
                raise Cancelled("The player left.")
            reply = self._belief(text) if (text := line.strip("? \n")) else Reply(None, self._last_belief)
            if reply is not None:
                self._last_belief = reply.belief
                return reply.belief

    def _belief(self, text: str) -> Reply | None:
        try:
            novel = float(text)
        except ValueError:
            novel = -1.0
        if 0 <= novel <= 1:
            return Reply(None, Belief(novel))
        self._say("A belief is a number from 0 to 1.")
        return None

    def _say(self, text: str) -> None:
        self._target.write(f"{text}\n")


def read_line(source: TextIO, target: TextIO) -> str:
    """Read what a person types; the end of the input, which is empty, ends the line on the screen.

    Args:
        source: Where the line comes from.
        target: Where the person was asked.

    Raises:
        Cancelled: The person pressed Ctrl-C. The turn under way waits for them, so nothing would end it later.
    """
    try:
        with _heeding_interrupts():
            line = source.readline()
    except KeyboardInterrupt:
        target.write("\n")
        raise Cancelled("The player left.") from None
    if not line:
        target.write("\n")
    return line


@contextmanager
def _heeding_interrupts() -> Iterator[None]:
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


def read_json(text: str) -> Any:
    """Return a line decoded from JSON, or the line itself if it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text
