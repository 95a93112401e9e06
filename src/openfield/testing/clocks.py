"""Clocks that drift while a world looks at them: a world that reads a clock then shows other turns.

Used only in the conformance kit's worker process, where they stand in for the real ones from the start.
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
    """How far the clocks are off, and how often a world looked at one."""

    inside_world = False
    rate = 0
    seconds = 0
    looks = 0

    def look(self) -> int:
        """Takes note of a look at a clock; returns by how many seconds it is off."""
        if not self.inside_world:
            return 0
        self.looks += 1
        self.seconds += self.rate
        return self.seconds + (FAR if self.rate else 0)


_drift = _Drift()


def replace_clocks() -> None:
    """Puts the clocks in place, for good: before any domain is imported, so that none gets hold of a real one."""
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
    """Every look a world takes at a clock finds it an hour further."""
    _drift.rate = 3600
    try:
        yield
    finally:
        _drift.rate = _drift.seconds = 0


@contextmanager
def inside_world() -> Iterator[None]:
    """Marks that whoever looks at a clock now is a world."""
    _drift.inside_world = True
    try:
        yield
    finally:
        _drift.inside_world = False


def clock_looks() -> int:
    """How often a world looked at a clock so far."""
    return _drift.looks


def _drifting(clock: Callable[..., Any], unit: int) -> Callable[..., Any]:
    return lambda *which: clock(*which) + _drift.look() * unit


def _at_present(calendar: Callable[[float], Any]) -> Callable[..., Any]:
    """The same calendar, which asks the drifting clock when it is not told a time."""
    return lambda seconds=None: calendar(time.time() if seconds is None else seconds)


def _saying(words: Callable[..., str]) -> Callable[..., str]:
    """The same words for a time, whose last argument is the present one if it is left out."""
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
        return super().now(tz) + dates.timedelta(seconds=_drift.look())

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
