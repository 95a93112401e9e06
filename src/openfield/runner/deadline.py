"""Call an agent in time: it is made, loads, saves and closes under a deadline too, and coroutines are waited for."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import TimeoutError as FutureTimeout
from functools import cache, partial
from typing import Any, TypeVar

from openfield.clock import monotonic_ns, outlast_stops
from openfield.core import Agent, Remembers, Reply, Saves, Turn
from openfield.errors import AgentFault, AgentProtocol, AgentTimeout, blame_agent, shorten
from openfield.limit_guard import Heartbeat, nanoseconds

MIN_SECONDS, FACTOR = 10.0, 10.0
"""Other calls than replies may take ten times as long, and ten seconds at least: they load models."""
MAX_STATE = 512 << 20
"""Bytes of a saved state; SQLite takes less than twice as much in one piece."""
METHODS = ("save", "load", "remember", "close")
MARKS = ("stateless", "may_leave", "on_wait", "attend")
"""What else an agent may have that the runner asks for."""
T = TypeVar("T")
_LOOP_LOCK = threading.Lock()


class Deadline:
    """Calls an agent for anything that is not a reply, and blames it for what goes wrong."""

    def __init__(self, heartbeat: Heartbeat | None = None, reply_seconds: float | None = None) -> None:
        self._heartbeat: Heartbeat = [0] if heartbeat is None else heartbeat
        patience = None if reply_seconds is None else max(MIN_SECONDS, FACTOR * reply_seconds)
        self._patience = nanoseconds(patience)

    def __call__(self, question: Callable[[], T], complaint: str) -> T:
        """Return the answer to a question. If it raises, the complaint says where."""
        self._heartbeat[0] = monotonic_ns() + self._patience
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
        """Give an agent a recorded turn and its reply."""
        for turn, reply in past:
            self(partial(agent.remember, turn, reply), "remember() raised")

    def close(self, agent: Agent) -> None:
        """Let an agent free its resources. An error then is a warning: the outcome is known already."""
        close = getattr(agent, "close", None)
        if close is not None:
            try:
                self(close, "An agent's close() raised")
            except AgentFault as fault:
                warnings.warn(str(fault), RuntimeWarning, stacklevel=2)


def save_at_intervals(save: Callable[[], bytes], seconds: float) -> Callable[[bool], bytes | None]:
    """Return a function that saves an agent's state if the last one is old enough, or if the trial is over."""
    saved = time.monotonic_ns()

    def save_if_due(over: bool) -> bytes | None:
        nonlocal saved
        if not over and time.monotonic_ns() < nanoseconds(seconds, saved):
            return None
        state = save()
        saved = time.monotonic_ns()
        return state

    return save_if_due


class AsyncAgent:
    """An agent that is called like any other, while its coroutines run in the event loop."""

    def __init__(self, agent: Any, seconds: float | None) -> None:
        self._agent, self._seconds = agent, seconds
        for name in METHODS:
            if hasattr(agent, name):
                setattr(self, name, _as_function(getattr(agent, name)))
        for name in MARKS:
            if hasattr(agent, name):
                setattr(self, name, getattr(agent, name))

    def __call__(self, turn: Turn) -> Reply:
        """Answer a turn."""
        reply: Reply = _run(self._agent(turn), self._seconds)
        return reply


def adapt_async(agent: Agent, seconds: float | None) -> Agent:
    """Return an agent whose coroutines run in the event loop of this process; any other is returned as it is.

    Args:
        agent: The agent that a factory made.
        seconds: How long a reply may take.
    """
    call = agent if inspect.isroutine(agent) else getattr(type(agent), "__call__", None)  # noqa: B004
    return AsyncAgent(agent, seconds) if inspect.iscoroutinefunction(call) else agent


def _as_function(method: Callable[..., Any]) -> Callable[..., Any]:
    if not inspect.iscoroutinefunction(method):
        return method
    return lambda *values: _run(method(*values), None)


def _run(coroutine: Any, seconds: float | None) -> Any:
    """Return the result of a coroutine. It is cancelled if it takes too long, or if the call is interrupted."""
    with _LOOP_LOCK:  # else a cache makes a loop for each of several cells that ask at once
        loop = _find_loop()
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    try:
        return outlast_stops(lambda: future.result(seconds))
    except FutureTimeout:
        if future.done():  # the agent itself raised it
            raise
        raise AgentTimeout(f"No answer within {seconds:g} s.") from None
    finally:
        future.cancel()


@cache
def _find_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of this process, which runs in a thread of its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="openfield agents", daemon=True).start()
    return loop
