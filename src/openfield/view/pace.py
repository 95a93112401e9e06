"""How fast a run goes: turns per second and the time that is left, from what its file held a while ago."""

from __future__ import annotations

import threading
import time
from collections import deque

import msgspec

from openfield.journal.reader import AgentProgress, Run

WINDOW_SECONDS = 30.0
"""The time over which a pace is measured."""
MIN_SECONDS = 2.0
"""The shortest time it is measured over."""


class Pace(msgspec.Struct, frozen=True):
    """How far a run is and how fast it goes."""

    agents: dict[str, AgentProgress]
    episodes: int
    turns: int
    turns_per_second: float | None = None
    """None if it does not go on, or was not watched long enough."""
    seconds_left: float | None = None


class PaceMeter:
    """Remembers how far runs were, to say how fast they go."""

    def __init__(self) -> None:
        self._seen: dict[str, deque[tuple[float, int, float]]] = {}
        self._lock = threading.Lock()

    def read(self, key: str, run: Run, is_live: bool) -> Pace:
        """Return how far a run is and, if it is being played, how fast it goes.

        Args:
            key: The key of the run.
            run: The open file.
            is_live: Whether a process plays it.
        """
        agents = run.progress()
        episodes, turns = sum(each.episodes for each in agents.values()), sum(each.turns for each in agents.values())
        planned = sum(each.planned for each in agents.values())
        played = sum(each.played for each in agents.values())
        if not is_live:
            self._seen.pop(key, None)
            return Pace(agents, episodes, turns)
        now = time.monotonic()
        with self._lock:
            seen = self._seen.setdefault(key, deque())
            seen.append((now, turns, played))
            while len(seen) > 2 and now - seen[1][0] > WINDOW_SECONDS:
                seen.popleft()
            then, before, played_then = seen[0]
        seconds = now - then
        if seconds < MIN_SECONDS:
            return Pace(agents, episodes, turns)
        rate = (played - played_then) / seconds
        pace = max(turns - before, 0) / seconds  # an attempt that begins anew counts from nothing
        return Pace(agents, episodes, turns, pace, (planned - played) / rate if rate else None)
