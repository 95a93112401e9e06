"""Programs that are agents: none outlives the process that started it, however that one went."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Spawn
from openfield.processes.program import Guard, run_bounded
from support.stories import alive, wait_until

PROGRAM = """
import os, signal, socket, subprocess, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-S", "-c", "import signal; signal.pause()"])
if sys.argv[1:]:
    line = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    line.sendall(b'{"type": "hello"}\\n')
    line.recv(1)
else:
    print('{"type": "hello"}', flush=True)
    os.read(0, 1)
with open(__file__ + ".part", "w") as file:
    file.write(f"{os.getpid()} {child.pid} {os.getppid()}")
os.replace(__file__ + ".part", __file__ + ".pids")
signal.pause()
"""
"""Started a child, is known to its owner, and from then on neither reads what it is sent nor notices who is gone."""
OWNER = """
import sys
import openfield as of
from support.worlds import tiny_trials
if __name__ == "__main__":
    of.run([sys.argv[1]], tiny_trials(), sys.argv[2], workers=int(sys.argv[3]))
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["process", "wire"])
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("how", ["killed", "worker killed", "Ctrl-C twice"])
def test_no_program_outlives_its_owner(
    path: Path, program: Path, kind: str, workers: int, how: str, spawn: Spawn
) -> None:
    script = path.with_suffix(".py")
    script.write_text(OWNER)
    command = f"{kind}:{sys.executable} -S {program} " + "{port}" * (kind == "wire")
    owner = spawn(script, command, path, str(workers), stderr=subprocess.PIPE, start_new_session=True)
    pids = program.with_name("program.py.pids")
    wait_until(pids.exists)
    *programs, parent = map(int, pids.read_text().split())
    if how == "Ctrl-C twice":
        owner.send_signal(signal.SIGINT)
        assert owner.stderr is not None
        assert any(b"Ctrl-C again stops at once" in line for line in owner.stderr)
        owner.send_signal(signal.SIGINT)
    else:
        os.kill(owner.pid if how == "killed" else parent, signal.SIGKILL)
    wait_until(lambda: not any(alive(pid) for pid in programs))


def test_a_guard_that_was_ended_does_not_keep_a_program_alive() -> None:
    guard, program = Guard(), subprocess.Popen(["sleep", "600"], start_new_session=True)
    guard._shell.kill()
    guard._shell.wait()
    guard.watch(program.pid)
    guard.end()
    assert program.wait() == -signal.SIGKILL


def test_a_guard_that_was_told_of_nothing_just_ends() -> None:
    Guard().end()


def test_a_bounded_program_is_ended_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openfield.processes.program.PATIENCE", 0.2)
    sleeps = [sys.executable, "-c", "import time; time.sleep(60)"]
    assert run_bounded(sleeps, 1, subprocess.PIPE) is None
    monkeypatch.undo()
    ended = run_bounded([sys.executable, "-c", "print('read'); raise SystemExit(3)"], 1, subprocess.PIPE)
    assert ended is not None
    assert (ended.returncode, ended.stdout.strip()) == (3, b"read")
