"""What it takes to ask an agent something: a deadline that somebody outside may watch, and whom to blame.

Stands under rollout, which asks for replies, and cell, which asks an agent to be made, to load, to save and to close.
"""

from __future__ import annotations

import signal
import time
import warnings
from collections.abc import Callable, MutableSequence
from typing import TypeVar

from openfield.core import Agent, Saves
from openfield.errors import AgentCrashed, AgentFault, AgentProtocol, Cancelled

NEVER = 1 << 62
"""A moment, or a number of turns, that is not reached."""
Heartbeat = MutableSequence[int] | memoryview
"""A shared place for the moment by which the agent must have answered, in nanoseconds; 0 while it is not asked."""
LEAST_PATIENCE, PATIENCE = 10.0, 10.0
"""What is not a reply may take ten times as long as one, and ten seconds at least: models are loaded there."""
T = TypeVar("T")


class Deadline:
    """Asks an agent for what is not a reply, in time."""

    def __init__(self, heartbeat: Heartbeat | None = None, reply_seconds: float | None = None) -> None:
        self._heartbeat: Heartbeat = [0] if heartbeat is None else heartbeat
        patience = None if reply_seconds is None else max(LEAST_PATIENCE, PATIENCE * reply_seconds)
        self._patience = nanoseconds(patience)

    def __call__(self, question: Callable[[], T], complaint: str) -> T:
        """The answer; what goes wrong is the agent's fault, and the complaint says where."""
        self._heartbeat[0] = time.monotonic_ns() + self._patience
        try:
            return question()
        except (AgentFault, Cancelled):
            raise
        except BaseException as error:
            raise crash(complaint, error) from error
        finally:
            self._heartbeat[0] = 0

    def load(self, agent: Saves, state: bytes) -> None:
        """Has an agent become the one that was saved."""
        self(lambda: agent.load(state), "load() raised")

    def save(self, agent: Saves) -> bytes:
        """The agent's state."""
        state: object = self(agent.save, "save() raised")
        if not isinstance(state, bytes):
            raise AgentProtocol(f"save() gave {shorten(state)}; it must give bytes.")
        return state

    def close(self, agent: Agent) -> None:
        """Lets an agent free what it holds; what goes wrong then no longer matters to the record."""
        close = getattr(agent, "close", None)
        if close is not None:
            try:
                self(close, "An agent's close() raised")
            except AgentFault as fault:
                warnings.warn(str(fault), RuntimeWarning, stacklevel=2)


def crash(complaint: str, error: BaseException) -> AgentCrashed:
    """The fault of an agent that raised something; Ctrl-C is nobody's fault, unless nobody can have pressed it here."""
    if isinstance(error, KeyboardInterrupt) and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        raise error
    return AgentCrashed(f"{complaint} {type(error).__name__}: {error}")


def nanoseconds(seconds: float | None, start: int = 0) -> int:
    """A stretch of time from a moment on; None never ends."""
    return NEVER if seconds is None else start + int(seconds * 1e9)


def shorten(value: object) -> str:
    """Something an agent gave, for a message."""
    text = repr(value)
    return f"{text[:60]}{'...' if len(text) > 60 else ''} ({type(value).__name__})"
