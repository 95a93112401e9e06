"""A monotonic clock that stands still while this process is stopped by Ctrl-Z: that time is not the agent's.

Deadlines of agents are kept by it. The clock of a worker and that of its parent agree as long as both are stopped
together, which a terminal sees to.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
LATE_NANOSECONDS = 50_000_000
"""A request to stop that comes this soon after one to go on was overtaken by it, while code other than Python's ran."""
stopped = 0
"""Nanoseconds for which the process was stopped so far."""
_continued = 0


def monotonic_ns() -> int:
    """Return nanoseconds that have passed since some moment, without those in which the process was stopped."""
    return time.monotonic_ns() - stopped


def monotonic() -> float:
    """Return the same in seconds."""
    return monotonic_ns() / 1e9


def outlast_stops(wait: Callable[[], T]) -> T:
    """Return the result of a wait; wait again after a timeout in which the process was stopped."""
    while True:
        before = stopped
        try:
            return wait()
        except TimeoutError:
            if before == stopped:
                raise


def notice_stops() -> None:
    """Measure from now on for how long Ctrl-Z stops this process. Call it in the main thread."""
    signal.signal(signal.SIGCONT, _go_on)
    signal.signal(signal.SIGTSTP, _stop)


@contextmanager
def noticing_stops() -> Iterator[None]:
    """Measure for how long Ctrl-Z stops this process, if this is its main thread and the system has Ctrl-Z."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGTSTP"):
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGCONT, signal.SIGTSTP)}
    if before[signal.SIGTSTP] is signal.SIG_DFL:  # a shell may have it ignored, and a program handle it
        notice_stops()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _go_on(*_: object) -> None:
    global _continued
    _continued = time.monotonic_ns()


def _stop(*_: object) -> None:
    """Stop, and count how long that took. Python calls the handler of SIGCONT first if both signals came."""
    global stopped
    began = time.monotonic_ns()
    if began - _continued > LATE_NANOSECONDS:
        os.kill(os.getpid(), signal.SIGSTOP)
        stopped += time.monotonic_ns() - began
