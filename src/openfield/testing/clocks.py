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
        return self.seconds


_drift = _Drift()


def replace_clocks() -> None:
    """Puts the clocks in place, for good: before any domain is imported, so that none gets hold of a real one."""
    for name in NAMES:
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


def _drifting(clock: Callable[[], Any], unit: int) -> Callable[[], Any]:
    return lambda: clock() + _drift.look() * unit


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
    def today(cls) -> _DriftingTime:
        return cls.now()


class _DriftingDate(dates.date, metaclass=_StandsIn):
    """The day, for worlds that ask for it."""

    @classmethod
    def today(cls) -> _DriftingDate:
        return super().today() + dates.timedelta(days=_drift.look())
