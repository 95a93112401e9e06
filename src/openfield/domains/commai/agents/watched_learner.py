"""A learner somebody watches: the same agent, with the conversation shown as it goes.

The original's ConsoleView and `--time-delay` for learners that are programs.
"""

from __future__ import annotations

import time
from typing import Any

from openfield.core import Agent, AgentFactory, Ask, Reply, Spec, Turn
from openfield.domains.commai.agents.terminal_view import LineView, ScreenView, Streams
from openfield.registry import AgentSource, find_agent, find_domain


def make_watched(source: AgentSource, shown: bool, screen: bool, delay: float) -> AgentFactory:
    """A factory for the learner behind a source, watched."""

    def make(spec: Spec, seed: int) -> Agent:
        learner = find_agent(source, find_domain("commai"))(spec, seed)
        return WatchedLearner(learner, ScreenView(delay) if screen else None, shown, delay)

    return make


class WatchedLearner:
    """Passes turns on and shows them: on the screen all the time, on paper whenever there is a reward."""

    def __init__(self, learner: Any, screen: ScreenView | None, shown: bool, delay: float) -> None:
        self._learner, self._screen = learner, screen
        self._paper = LineView() if shown and screen is None else None
        self._delay = delay
        self._streams = Streams()

    def __call__(self, turn: Turn) -> Reply:
        """The learner's reply."""
        reply: Reply = self._learner(turn)
        self._streams.hear(chr(turn.observation), int(turn.reward), turn.feedback or "")
        if self._screen is not None:
            self._screen.show(self._streams)
        elif self._delay:
            time.sleep(self._delay)
        if self._paper is not None and (turn.reward or turn.ask is Ask.NONE):
            self._paper.print(self._streams)
        if isinstance(reply.action, int):
            self._streams.say(chr(reply.action))
        return reply

    def close(self) -> None:
        """Gives the terminal back."""
        if self._screen is not None:
            self._screen.close()
        if hasattr(self._learner, "close"):
            self._learner.close()
