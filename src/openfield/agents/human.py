"""A person as an agent: turns are printed, answers are typed.

`openfield play` uses it for domains without a view of their own; it works on a terminal and on a pipe.
"""

from __future__ import annotations

import json
import sys
from typing import Any, TextIO

import msgspec

from openfield.core import Ask, Belief, Reply, Spec, Turn
from openfield.errors import Cancelled
from openfield.spaces import Choice, Discrete

HELP = "Type an action; '? 0.7' says how sure you are that the world has changed; QUIT stops (and can be resumed)."


class LineHuman:
    """Asks on one stream and reads from another, a line a turn."""

    stateless = True

    def __init__(self, spec: Spec, seed: int, source: TextIO | None = None, target: TextIO | None = None) -> None:
        self._spec = spec
        self._source = source or sys.stdin
        self._target = target or sys.stdout
        self._say(f"{spec.task}\n{HELP}")

    def __call__(self, turn: Turn) -> Reply:
        """Shows a turn and waits for an answer that makes sense."""
        self._show(turn)
        if turn.ask is Ask.NONE:
            return Reply()
        while True:
            reply = self._read(self._prompt(turn))
            if reply is not None:
                return reply

    def _show(self, turn: Turn) -> None:
        seen = msgspec.json.encode(turn.observation, enc_hook=str).decode()
        parts = [f"[{turn.phase}]", seen, f"reward {turn.reward:g}"]
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
            return "Has your world changed (0 to 1)? "
        if turn.ask is Ask.READY:
            return "Ready? "
        if isinstance(space, Choice):
            return f"{' | '.join(space.options)}: "
        return f"0 .. {space.n - 1}: " if isinstance(space, Discrete) else "action (JSON): "

    def _read(self, prompt: str) -> Reply | None:
        """A reply, or None if what was typed is none."""
        self._target.write(prompt)
        self._target.flush()
        line = self._source.readline()
        text = line.strip()
        if not line or text == "QUIT":
            raise Cancelled("The player left.")
        if text.startswith("?") or prompt.startswith("Has"):
            return self._belief(text.lstrip("? "))
        if prompt.startswith("Ready"):
            return Reply(True)
        action = text if isinstance(self._spec.actions, Choice) else _parse(text)
        if not text or (self._spec.actions is not None and not self._spec.actions.contains(action)):
            self._say(f"'{text}' is no action here. {HELP}")
            return None
        return Reply(action)

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


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
