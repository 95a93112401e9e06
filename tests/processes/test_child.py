"""Processes that run a function: they answer, hang or die, and all they forked ends with them."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from conftest import Spawn
from openfield.errors import OpenfieldError
from openfield.processes.channel import Channel
from openfield.processes.child import Caller, Child, Hung, describe_exit, send_heartbeat
from support.stories import alive, wait_until

OWNER = """
import sys
from processes.test_child import start_program_and_hang
from openfield.processes.child import Child
if __name__ == "__main__":
    Child(start_program_and_hang, sys.argv[1]).process.join()
"""


def start_program_and_hang(channel: Channel, pids: str) -> None:
    """Start a program, tell who is there, and notice nothing from then on."""
    program = subprocess.Popen(["sleep", "600"])
    Path(pids + ".part").write_text(f"{os.getpid()} {program.pid}")
    os.replace(pids + ".part", pids)
    signal.pause()


def hang() -> None:
    for _ in range(3):
        send_heartbeat()
    signal.pause()


def show_environment(name: str) -> str:
    return os.environ[name]


def test_a_process_calls_functions_and_dies_or_hangs_at_no_cost_to_this_one() -> None:
    caller = Caller(60.0, environment={"OPENFIELD_TEST": "yes"})
    assert caller.call(str, show_environment, "OPENFIELD_TEST") == "yes"
    assert "OPENFIELD_TEST" not in os.environ
    with pytest.raises(OpenfieldError, match="KeyError: 'nothing'"):
        caller.call(str, show_environment, "nothing")
    with pytest.raises(OpenfieldError, match="the process it ran in died"):
        caller.call(type(None), os._exit, 3)  # type: ignore[func-returns-value, arg-type]
    caller.ask(hang)
    caller._patience = 0.05
    with pytest.raises(Hung, match=r"no answer within 0\.05 s"):
        caller.answer(str)
    assert caller._child is None
    caller.close()


def test_a_process_ends_with_the_programs_it_started(tmp_path: Path) -> None:
    child = Child(start_program_and_hang, str(tmp_path / "pids"))
    wait_until((tmp_path / "pids").exists)
    pids = [int(each) for each in (tmp_path / "pids").read_text().split()]
    assert all(map(alive, pids))
    child.end()
    child.kill()  # which may be said at any time
    wait_until(lambda: not any(map(alive, pids)))


def test_a_process_ends_with_its_parent_and_so_do_its_programs(tmp_path: Path, spawn: Spawn) -> None:
    script = tmp_path / "owner.py"
    script.write_text(OWNER)
    owner = spawn(script, tmp_path / "pids")
    wait_until((tmp_path / "pids").exists)
    pids = [int(each) for each in (tmp_path / "pids").read_text().split()]
    owner.kill()
    wait_until(lambda: not any(map(alive, pids)))


@pytest.mark.parametrize(
    ("status", "wrapped", "text"),
    [
        (None, False, "exit status None"),
        (3, False, "exit status 3"),
        (-9, False, "signal SIGKILL"),
        (137, False, "exit status 137"),
        (137, True, "signal SIGKILL"),
        (200, True, "exit status 200"),
        (-9, True, "signal SIGKILL"),
    ],
)
def test_the_end_of_a_process_in_words(status: int | None, wrapped: bool, text: str) -> None:
    assert describe_exit(status, wrapped) == text
