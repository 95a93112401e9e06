"""What tests of the command line share: a way to give commands, a finished run, and the maze."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import openfield as of
from openfield.cli import run_command
from support.places import MAZE


class Said(NamedTuple):
    """What came of a command."""

    status: int
    out: str
    err: str


@pytest.fixture
def openfield(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Said]:
    """Gives a command in an empty folder, with a terminal wide enough for our tables."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def give(*words: str | Path) -> Said:
        capsys.readouterr()
        status = run_command([str(word) for word in words])
        return Said(status, *capsys.readouterr())

    return give


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two agents in five small trials. Not to be written to: take `run`."""
    path = tmp_path_factory.mktemp("finished") / "maze.sqlite"
    trials = of.trials(MAZE, count=5, training=1, before=2, after=2, unchanged=0)
    of.run(agents=["compass", "random"], trials=trials, journal=path)
    return path


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished run."""
    return Path(shutil.copy(finished, tmp_path / "maze.sqlite"))


@pytest.fixture
def narrow(openfield: Callable[..., Said], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Said]:
    """Gives a command on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    return openfield
