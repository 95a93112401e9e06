"""Clocks that drift while a world reads them: a world that depends on a clock then shows other turns.

Used only in the conformance kit's worker process, where they replace the real ones from the start.
"""

from __future__ import annotations

import datetime as dates
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

NAMES = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
CALENDARS = ("localtime", "gmtime", "ctime")
"""Take seconds, and the present ones if none are given."""
FAR = 400 * 86_400
"""Seconds that drifting clocks are off from the start: another day, month and year."""


class _Drift:
    """How far the clocks are off, and how often a world read one."""

    inside_world = False
    rate = 0
    seconds = 0
    reads = 0

    def read(self) -> int:
        """Count a read of a clock and return by how many seconds it is off."""
        if not self.inside_world:
            return 0
        self.reads += 1
        self.seconds += self.rate
        return self.seconds + (FAR if self.rate else 0)


_drift = _Drift()


def replace_clocks() -> None:
    """Replace the clocks for good. Call it before any domain is imported, so that none keeps a real one."""
    for name in CALENDARS:
        setattr(time, name, _at_present(getattr(time, name)))
    for name in ("strftime", "asctime"):
        setattr(time, name, _saying(getattr(time, name)))
    for name in (*NAMES, "clock_gettime"):
        setattr(time, name, _drifting(getattr(time, name), 1))
        setattr(time, f"{name}_ns", _drifting(getattr(time, f"{name}_ns"), 10**9))
    dates.datetime = _DriftingTime  # type: ignore[misc]
    dates.date = _DriftingDate  # type: ignore[misc]


@contextmanager
def drifting_clocks() -> Iterator[None]:
    """Move the clocks by an hour each time a world reads one."""
    _drift.rate = 3600
    try:
        yield
    finally:
        _drift.rate = _drift.seconds = 0


@contextmanager
def inside_world() -> Iterator[None]:
    """Mark the code inside as code of a world: reads of a clock are counted."""
    _drift.inside_world = True
    try:
        yield
    finally:
        _drift.inside_world = False


def count_clock_reads() -> int:
    """Return how often worlds have read a clock so far."""
    return _drift.reads


def _drifting(clock: Callable[..., Any], unit: int) -> Callable[..., Any]:
    return lambda *which: clock(*which) + _drift.read() * unit


def _at_present(calendar: Callable[[float], Any]) -> Callable[..., Any]:
    """Return the calendar function, which reads the drifting clock when no time is given."""
    return lambda seconds=None: calendar(time.time() if seconds is None else seconds)


def _saying(words: Callable[..., str]) -> Callable[..., str]:
    """Return the formatting function, whose last argument defaults to the drifting time."""
    wanted = 2 if words.__name__ == "strftime" else 1
    return lambda *given: words(*given, *([time.localtime()] if len(given) < wanted else []))


class _StandsIn(type):
    """Takes instances of the class it stands in for as its own."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.__mro__[1])


class _DriftingTime(dates.datetime, metaclass=_StandsIn):
    """The time of day, for worlds that ask for it."""

    @classmethod
    def now(cls, tz: dates.tzinfo | None = None) -> _DriftingTime:
        return super().now(tz) + dates.timedelta(seconds=_drift.read())

    @classmethod
    def utcnow(cls) -> _DriftingTime:
        return cls.now(dates.UTC).replace(tzinfo=None)

    @classmethod
    def today(cls) -> _DriftingTime:
        return cls.now()


class _DriftingDate(dates.date, metaclass=_StandsIn):
    """The day, for worlds that ask for it."""

    @classmethod
    def today(cls) -> _DriftingDate:
        return cls.fromtimestamp(time.time())
