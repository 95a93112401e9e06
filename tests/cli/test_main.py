"""The command line as the shell sees it: real processes, signals, and how little `--help` loads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from openfield.journal.reader import Run
from openfield.journal.writer import Journal
from support.places import MAZE

INTERRUPTING = """
import os, pathlib, subprocess
import openfield as of

class Interrupting:
    '''Presses Ctrl-C in its 50th turn, once.'''
    turns = 0

    def __init__(self, spec, seed):
        self.target = os.getppid() if {workers} else os.getpid()

    def __call__(self, turn):
        self.turns += 1
        if self.turns == 50 and not pathlib.Path("pressed").exists():
            pathlib.Path("pressed").touch()
            subprocess.run(["kill", "-INT", str(self.target)])  # as the user does: an agent itself may not
        return of.Reply("left")
"""


def shell(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "openfield", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


ONE_KIND = ("--set", "unchanged=0")


@pytest.mark.parametrize("workers", [0, 1])
def test_ctrl_c_ends_cleanly_and_says_how_to_go_on(tmp_path: Path, workers: int) -> None:
    (tmp_path / "interrupting.py").write_text(INTERRUPTING.format(workers=workers))
    words = ("run", MAZE, "--agent", "interrupting.py:Interrupting", "--trials", "2", "-o", "x.sqlite", *ONE_KIND)
    done = shell(tmp_path, *words, "--workers", str(workers))
    assert done.returncode == 130
    assert "all that was recorded is safe. To go on: openfield resume x.sqlite" in done.stderr
    with Run(tmp_path / "x.sqlite") as run:
        cells = run.cells()
        assert cells[0].outcome == "cancelled"
        assert cells[0].steps >= 50
    done = shell(tmp_path, "resume", "x.sqlite", "--workers", str(workers))
    assert done.returncode == 0, done.stderr
    with Run(tmp_path / "x.sqlite") as run:
        assert [(cell.outcome, cell.attempt) for cell in run.cells()] == [("done", 1)] * 2


def test_ctrl_c_before_anything_has_begun_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "cyclopts.py").write_text("raise KeyboardInterrupt")  # as if it had been pressed while this is imported
    done = shell(tmp_path, "list")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "openfield: Interrupted.\n")


def test_ctrl_c_before_a_run_begins_is_not_left_without_a_word(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("raise KeyboardInterrupt")
    done = shell(tmp_path, "run", "slow.py")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "openfield: Interrupted.\n")


def test_a_full_disk_behind_the_output_is_said_in_a_line(tmp_path: Path, finished: Path) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "openfield", "show", str(finished)]
        done = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (75, "openfield: No room left for the output.\n")


def test_a_run_that_was_stopped_before_it_began_says_what_to_do(tmp_path: Path) -> None:
    Journal(tmp_path / "x.sqlite").close()
    done = shell(tmp_path, "resume", "x.sqlite")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.lstrip() == (  # after the bars of no agent
        "openfield: x.sqlite has no cells yet: it was stopped before it began. The command that made it begins anew.\n"
    )


def test_help_and_version_load_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; from openfield.cli import run_command\n"
        "assert run_command(['--help']) == run_command(['run', '--help']) == run_command(['--version']) == 0\n"
        "heavy = {'numpy', 'duckdb', 'gymnasium', 'numba', 'sqlite3', 'asyncio'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "openfield demo" in done.stdout


def test_a_closed_pipe_is_no_error(tmp_path: Path, finished: Path) -> None:
    command = f"{sys.executable} -m openfield show {finished} --json | head -1"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "[\n"
    assert done.stderr == ""


def test_a_table_into_a_closed_pipe_is_no_error(tmp_path: Path, finished: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "openfield", "show", str(finished)]
    done = subprocess.run(command, cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_mistakes_in_a_real_shell(tmp_path: Path) -> None:
    done = shell(tmp_path, "show", "nowhere.sqlite")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "openfield: There is no run file nowhere.sqlite. Make a run: openfield demo\n"


def test_warnings_of_other_packages_come_without_their_colours(tmp_path: Path) -> None:
    (tmp_path / "coloured.py").write_text(
        "import warnings, gymnasium\n"
        "warnings.warn('\\x1b[33mWARN: odd\\x1b[0m \\x1b]8;;x')\n"
        "def make():\n"
        "    return gymnasium.make('CartPole-v1')\n"
    )
    done = shell(tmp_path, "run", "gym:coloured.py:make", "-a", "random", "--trials", "1", "--dry-run")
    assert "openfield: WARN: odd \\x1b]8;;x\n" in done.stderr


def test_a_removed_directory_is_said_in_one_line(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = f"rmdir {gone} && exec {sys.executable} -m openfield list domains"
    done = subprocess.run(command, shell=True, cwd=gone, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "openfield: The current directory does not exist any more. Go to another one: cd\n"
