"""Time in which Ctrl-Z stopped the process is not the agent's."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from conftest import Spawn
from openfield import clock, limit_guard
from openfield.limit_guard import LimitGuard
from openfield.trial import Limits
from support.stories import attempts

HOUR = 3600 * 10**9


@pytest.fixture
def stopping(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A process that is stopped for an hour whenever it stops itself."""
    now = SimpleNamespace(ns=10**12, stops=0)

    def stop(process: int, number: int) -> None:
        assert (process, number) == (os.getpid(), signal.SIGSTOP)
        now.ns += HOUR
        now.stops += 1

    for module in (clock, limit_guard):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic_ns=lambda: now.ns))
    monkeypatch.setattr(clock, "os", SimpleNamespace(kill=stop, getpid=os.getpid))
    monkeypatch.setattr(clock, "stopped", 0)
    monkeypatch.setattr(clock, "_continued", 0)
    return now


def test_a_stopped_process_is_not_late(stopping: SimpleNamespace) -> None:
    heartbeat = [0]
    guard = LimitGuard(Limits(reply_seconds=2.0, trial_seconds=5.0), heartbeat)
    guard.start_clock()
    stopping.ns += 10**9
    with clock.noticing_stops():
        signal.raise_signal(signal.SIGTSTP)
    assert stopping.stops == 1
    assert heartbeat[0] > clock.monotonic_ns()  # nor does its watchdog think so
    assert guard.stop_clock(0) == 10**9 & -1024
    assert guard.seconds == 1.0
    assert signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL


def test_a_request_to_stop_that_one_to_go_on_overtook_stops_nothing(stopping: SimpleNamespace) -> None:
    """Both come while code other than Python's runs. To stop then would be for ever."""
    with clock.noticing_stops():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCONT})
        clock._go_on()
        signal.raise_signal(signal.SIGTSTP)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCONT})
    assert stopping.stops == 0


def test_a_timeout_counts_unless_the_process_was_stopped(stopping: SimpleNamespace) -> None:
    tried: list[int] = []

    def wait() -> str:
        tried.append(len(tried))
        if len(tried) == 1:
            clock._stop()
            raise TimeoutError
        if len(tried) == 2:
            return "an answer"
        raise TimeoutError

    assert clock.outlast_stops(wait) == "an answer"
    with pytest.raises(TimeoutError):
        clock.outlast_stops(wait)
    assert tried == [0, 1, 2]


def test_other_threads_leave_signals_alone() -> None:
    def enter() -> None:
        with clock.noticing_stops():
            assert signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1])
def test_a_run_that_was_stopped_for_longer_than_a_reply_may_take_goes_on(
    tmp_path: Path, spawn: Spawn, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setenv("SIGNS", str(tmp_path))
    program = spawn("tests/support/stopped_program.py", tmp_path / "run.sqlite", workers, start_new_session=True)
    while not (tmp_path / "asked").exists():
        assert program.poll() is None
    os.killpg(program.pid, signal.SIGTSTP)
    _, status = os.waitpid(program.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    until = time.monotonic() + 2.5  # a reply may take two seconds
    while time.monotonic() < until:
        pass
    (tmp_path / "go").touch()
    os.killpg(program.pid, signal.SIGCONT)
    assert program.wait() == 0
    assert attempts(tmp_path / "run.sqlite") == [(1, "done", "")]
