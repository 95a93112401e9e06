"""Runs that are killed the hard way, at chosen and at random instants, and then go on."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import openfield as of
from conftest import Spawn
from openfield.journal.reader import Run
from openfield.runner.executors import WORKER_NAME, _Worker
from support.players import Learner
from support.stories import attempts, rows, story, wait_until
from support.worlds import tiny_trials

WHOLE: dict[str, object] = {}
AGENTS = ["Learner", "Redriven", "Stateless"]


def episodes(path: Path) -> set[tuple[object, ...]]:
    return set(rows(path, "SELECT cell, attempt, number, turns, performance, belief, ended FROM episodes"))


@pytest.fixture
def whole(tmp_path: Path, spawn: Spawn, request: pytest.FixtureRequest) -> object:
    """The story of a run that nobody disturbed."""
    agent = request.getfixturevalue("agent")
    if agent not in WHOLE:
        path = tmp_path / "whole.sqlite"
        assert spawn("tests/support/run_program.py", path, agent).wait(60) == 0
        WHOLE[agent] = story(path)
    return WHOLE[agent]


def finish(path: Path, agent: str, workers: int, spawn: Spawn) -> None:
    """Runs to the end what was killed, and sees that nothing finished was lost or done again."""
    before = episodes(path) if path.exists() and path.stat().st_size else set()
    assert spawn("tests/support/run_program.py", path, agent, str(workers)).wait(60) == 0
    assert before <= episodes(path)
    assert [(number, outcome) for number, outcome, _ in attempts(path)] == [(1, "done")] * 3


@pytest.mark.slow
@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_killed_again_and_again_ends_as_if_nothing_had_happened(
    path: Path, agent: str, workers: int, whole: object, spawn: Spawn
) -> None:
    fates = random.Random(f"{agent} {workers}")
    for _ in range(3):
        entries = str(fates.randrange(1, 160))
        assert spawn("tests/support/run_program.py", path, agent, str(workers), entries).wait(60) in (
            -signal.SIGKILL,
            0,
        )
    finish(path, agent, workers, spawn)
    assert story(path) == whole


@pytest.mark.parametrize("agent", ["Learner"])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_killed_at_any_instant_ends_as_if_nothing_had_happened(
    path: Path, agent: str, workers: int, whole: object, spawn: Spawn
) -> None:
    fates = random.Random(workers)
    for _ in range(3):
        program = spawn("tests/support/run_program.py", path, agent, str(workers))
        wait_until(path.exists)
        time.sleep(fates.uniform(0, 0.25))
        os.kill(program.pid, signal.SIGKILL)
        program.wait()
    finish(path, agent, workers, spawn)
    assert story(path) == whole


def test_a_fickle_agent_loses_only_the_cell_under_way(path: Path, spawn: Spawn) -> None:
    assert spawn("tests/support/run_program.py", path, "Fickle", "0", "200").wait(60) == -signal.SIGKILL
    finished = {cell for (cell,) in rows(path, "SELECT cell FROM attempts WHERE outcome = 'done'")}
    begun = {cell for (cell,) in rows(path, "SELECT DISTINCT cell FROM chunks")} - finished
    before = {row for row in episodes(path) if row[0] in finished}
    assert spawn("tests/support/run_program.py", path, "Fickle").wait(60) == 0
    assert finished
    assert before <= episodes(path)
    with Run(path) as run:
        assert [cell.outcome for cell in run.cells()] == ["done"] * 3
    assert [(number, outcome) for number, outcome, _ in attempts(path)] == [
        *[(1, "done")] * len(finished),
        *[(1, "superseded"), (2, "done")] * len(begun),
        *[(1, "done")] * (3 - len(finished) - len(begun)),
    ]


def test_a_fickle_agent_that_can_be_saved_loses_no_finished_episode(path: Path, spawn: Spawn) -> None:
    before: set[tuple[object, ...]] = set()
    for entries in (20, 77, 0):
        assert spawn("tests/support/run_program.py", path, "FickleSaver", "0", str(entries)).wait(60) in (
            -signal.SIGKILL,
            0,
        )
        assert before <= (before := episodes(path))
    with Run(path) as run:
        assert [(cell.outcome, len(cell.episodes)) for cell in run.cells()] == [("done", 12)] * 3


@pytest.mark.parametrize("workers", [0, 2])
def test_ctrl_c_ends_a_program_gently_and_a_terminal_reaches_its_workers_too(
    path: Path, workers: int, spawn: Spawn
) -> None:
    """A terminal sends Ctrl-C to the whole process group; workers leave it to their parent."""
    code = f"""
import sys
from support import run_program
from openfield.errors import Cancelled
if __name__ == "__main__":
    try:
        run_program.TRIALS = 400
        run_program.main({str(path)!r}, "Learner", "{workers}")
    except Cancelled as stopped:
        print(stopped)
        sys.exit(stopped.exit_status)
"""
    script = path.with_suffix(".py")
    script.write_text(code)
    program = spawn(script, start_new_session=True, stdout=-1, stderr=-1)

    def has_begun() -> bool:
        with suppress(sqlite3.OperationalError):  # its tables are still to come
            return path.exists() and bool(episodes(path))
        return False

    wait_until(has_begun)
    os.killpg(program.pid, signal.SIGINT)
    out, err = program.communicate(timeout=60)
    assert (program.returncode, err) == (
        130,
        b"Stopping after the turn under way. Ctrl-C again stops at once.\n",
    )
    assert out.decode() == f"Stopped; all that was recorded is safe. To go on: openfield resume {path}\n"
    with Run(path) as run:
        assert run.verify() == []
        assert {cell.outcome for cell in run.cells()} <= {"done", "cancelled", None}


def test_ctrl_c_while_workers_are_ended_leaves_none(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first waits for them to end, the second does not."""
    end = _Worker.end

    def press_and_end(worker: Any, patience: float = 0.0) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        end(worker, patience)

    monkeypatch.setattr(_Worker, "end", press_and_end)
    with pytest.raises(KeyboardInterrupt):
        of.run([Learner], tiny_trials(2), path, workers=2)
    wait_until(lambda: not [child for child in multiprocessing.active_children() if child.name == WORKER_NAME])
    opened = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
    assert str(path.resolve()) not in opened, "the run file is closed, too"


SLOW_START = """
import pathlib, signal, sys, time
if "--multiprocessing-fork" in sys.orig_argv:
    here = pathlib.Path(__file__).parent
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # which the parent sends next, and would hide what Ctrl-C does
    (here / "begun").touch()
    while not (here / "go").exists():
        time.sleep(0.01)
"""


def test_ctrl_c_finds_workers_that_are_only_starting(path: Path, tmp_path: Path, spawn: Spawn) -> None:
    slow, script = tmp_path / "slow", tmp_path / "script.py"
    slow.mkdir()
    (slow / "sitecustomize.py").write_text(SLOW_START)
    script.write_text(f"""
import os
from support import run_program
if __name__ == "__main__":
    os.environ["PYTHONPATH"] += os.pathsep + {str(slow)!r}
    run_program.main({str(path)!r}, "Learner", "1")
""")
    program = spawn(script, start_new_session=True, stdout=-1, stderr=-1)
    wait_until((slow / "begun").exists)
    os.killpg(program.pid, signal.SIGINT)
    (slow / "go").touch()
    _, err = program.communicate(timeout=60)
    assert err.startswith(b"Stopping after the turn under way.")
    assert b"sitecustomize" not in err
    assert b"KeyboardInterrupt" not in err
