"""Ctrl-C during a study ends it and its workers at once, wherever they are; so does killing it."""

import errno
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

STUDY = """
import sys
from pathlib import Path
from openfield.objectives.study.study import StudyTask, _run_missing
if __name__ == "__main__":
    try:
        list(_run_missing([StudyTask("evaluate", (Path(name),)) for name in sys.argv[1:]], 2))
    except KeyboardInterrupt:
        sys.exit(130)
"""
SLOW_EXIT = """
import time
from concurrent.futures import process

def wakeup(self, usual=process._ThreadWakeup.wakeup):
    if not process._global_shutdown or self._closed:
        return usual(self)
    while not self._closed:
        time.sleep(0.01)
    self._writer.send_bytes(b"")

process._ThreadWakeup.wakeup = wakeup
"""
"""Python looks whether a pool is closed and then speaks to it; in between the pool closes, if it has not before."""
PATIENCE = 60
"""Seconds for a busy machine; nothing here waits as long."""


@pytest.fixture
def tables(tmp_path):
    """Tables that keep their reader waiting for ever."""
    names = [tmp_path / f"{number}.pkl" for number in range(3)]
    for name in names:
        os.mkfifo(name)
    return names


@pytest.fixture
def study(tmp_path, tables, request):
    script = tmp_path / "study.py"
    script.write_text(getattr(request, "param", "") + STUDY)
    command = [sys.executable, str(script), *map(str, tables)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    yield process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def being_read(name):
    """Whether a process has the table open."""
    try:
        os.close(os.open(name, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return False
    return True


def children(process):
    return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def assert_it_ends(process):
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, errors
    assert errors == ""
    wait_for(lambda: not alive(process.pid))


def alive(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("everyone", [True, False], ids=["the terminal", "the command alone"])
def test_a_study_whose_workers_are_busy_ends(study, tables, everyone):
    held = os.open(tables[0], os.O_RDWR)  # its reader gets past opening, and then no byte
    wait_for(lambda: being_read(tables[1]) or study.poll() is not None)
    (os.killpg if everyone else os.kill)(study.pid, signal.SIGINT)
    assert_it_ends(study)
    os.close(held)


@pytest.mark.parametrize("study", [SLOW_EXIT], indirect=True, ids=["slow exit"])
def test_a_study_ends_without_a_word_though_python_is_slow_to_leave(study, tables):
    held = os.open(tables[0], os.O_RDWR)
    wait_for(lambda: being_read(tables[1]) or study.poll() is not None)
    os.kill(study.pid, signal.SIGINT)
    assert_it_ends(study)
    os.close(held)


def test_a_study_that_is_killed_takes_its_workers_along(study, tables):
    held = os.open(tables[0], os.O_RDWR)
    wait_for(lambda: being_read(tables[1]) or study.poll() is not None)
    os.kill(study.pid, signal.SIGKILL)
    study.wait()
    try:
        wait_for(lambda: not alive(study.pid))
    finally:
        os.close(held)
        with suppress(ProcessLookupError):
            os.killpg(study.pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("begun", [2, 3])
def test_a_study_whose_workers_still_begin_ends(study, begun):
    """The first process is the one that Python keeps for cleaning up."""
    wait_for(lambda: len(children(study)) >= begun or study.poll() is not None)
    os.killpg(study.pid, signal.SIGINT)
    assert_it_ends(study)
