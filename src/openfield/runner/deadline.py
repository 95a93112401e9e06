"""Call an agent's other methods in time: it is made, loads, saves and closes under a deadline too."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from openfield.core import Agent, Remembers, Reply, Saves, Turn
from openfield.errors import AgentFault, AgentProtocol, blame_agent, shorten
from openfield.rollout import Heartbeat, nanoseconds

MIN_SECONDS, FACTOR = 10.0, 10.0
"""What is not a reply may take ten times as long as one, and ten seconds at least: models are loaded there."""
MAX_STATE = 512 << 20
"""Bytes of a saved state; SQLite takes less than twice as much in one piece."""
T = TypeVar("T")


class Deadline:
    """Calls an agent for anything that is not a reply, and blames it for what goes wrong."""

    def __init__(self, heartbeat: Heartbeat | None = None, reply_seconds: float | None = None) -> None:
        self._heartbeat: Heartbeat = [0] if heartbeat is None else heartbeat
        patience = None if reply_seconds is None else max(MIN_SECONDS, FACTOR * reply_seconds)
        self._patience = nanoseconds(patience)

    def __call__(self, question: Callable[[], T], complaint: str) -> T:
        """Return the answer to a question. If it raises, the complaint says where."""
        self._heartbeat[0] = time.monotonic_ns() + self._patience
        try:
            return question()
        except AgentFault:
            raise
        except BaseException as error:
            raise blame_agent(complaint, error) from error
        finally:
            self._heartbeat[0] = 0

    def load(self, agent: Saves, state: bytes) -> None:
        """Let an agent load a state that was saved."""
        self(lambda: agent.load(state), "load() raised")

    def save(self, agent: Saves) -> bytes:
        """Return the agent's state."""
        state: object = self(agent.save, "save() raised")
        if not isinstance(state, bytes):
            raise AgentProtocol(f"save() gave {shorten(state)}; it must give bytes.")
        if len(state) > MAX_STATE:
            raise AgentProtocol(f"save() gave {len(state) >> 20} MB; {MAX_STATE >> 20} MB are allowed.")
        return state

    def remind(self, agent: Remembers, past: Iterable[tuple[Turn, Reply]]) -> None:
        """Tell an agent what it was shown and what it replied."""
        for turn, reply in past:
            self(partial(agent.remember, turn, reply), "remember() raised")

    def close(self, agent: Agent) -> None:
        """Let an agent free what it holds. What goes wrong then is a warning: the outcome is known already."""
        close = getattr(agent, "close", None)
        if close is not None:
            try:
                self(close, "An agent's close() raised")
            except AgentFault as fault:
                warnings.warn(str(fault), RuntimeWarning, stacklevel=2)
