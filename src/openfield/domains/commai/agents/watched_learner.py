"""Show the conversation of a learner on the terminal while it plays.

This is the original's ConsoleView and `--time-delay` for learners that are programs.
"""

from __future__ import annotations

import time
from typing import Any

from openfield.core import Agent, AgentFactory, Ask, Reply, Spec, Turn
from openfield.domains.commai.agents.terminal_view import LineView, ScreenView, Streams
from openfield.registry import AgentSource, find_agent, find_domain


def make_watched(source: AgentSource, shown: bool, screen: bool, delay: float) -> AgentFactory:
    """Return a factory for a learner that is shown while it plays.

    Args:
        source: The learner, as `--agent` names it.
        shown: Whether the conversation is printed at every reward.
        screen: Whether it is shown on the whole screen instead.
        delay: Seconds to wait after each step.
    """

    def make(spec: Spec, seed: int) -> Agent:
        learner = find_agent(source, find_domain("commai"))(spec, seed)
        return WatchedLearner(learner, ScreenView(delay) if screen else None, shown, delay)

    return make


class WatchedLearner:
    """Passes turns on and shows them: on the screen at every step, in print at every reward."""

    def __init__(self, learner: Any, screen: ScreenView | None, shown: bool, delay: float) -> None:
        self._learner, self._screen = learner, screen
        self._lines = LineView() if shown and screen is None else None
        self._delay = delay
        self._streams = Streams()

    def __call__(self, turn: Turn) -> Reply:
        """Return the learner's reply."""
        reply: Reply = self._learner(turn)
        self._streams.hear(chr(turn.observation), int(turn.reward), turn.feedback or "")
        if self._screen is not None:
            self._screen.show(self._streams)
        elif self._delay:
            time.sleep(self._delay)
        if self._lines is not None and (turn.reward or turn.ask is Ask.NONE):
            self._lines.print(self._streams)
        if isinstance(reply.action, int):
            self._streams.say(chr(reply.action))
        return reply

    def close(self) -> None:
        """Restore the terminal and close the learner."""
        if self._screen is not None:
            self._screen.close()
        if hasattr(self._learner, "close"):
            self._learner.close()
