"""`openfield run --isolate` and `openfield resume`: options, experiment files, and what the run file says."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from openfield.journal.reader import Run
from support.places import MAZE, ROOT

pytestmark = pytest.mark.sandbox
SMALL = ("--workers", "0", "--trials", "1", "--set", "training=1", "--set", "before=1", "--set", "after=1")


def kept(path: str = "runs/maze.sqlite") -> str:
    with Run(Path(path)) as run:
        return run.facts["isolation"]


def test_a_run_is_isolated_with_what_the_options_say(openfield: Any) -> None:
    shutil.copy(ROOT / "examples" / "my_agent.py", "mine.py")
    Path("weights.txt").touch()
    options = "--isolate", "--memory", "1GB", "--grant", "weights.txt", "--env", "HOME", "--network"
    said = openfield("run", MAZE, "-a", "mine.py:Walker", *SMALL, *options)
    assert said.status == 0
    assert kept() == f'{{"memory":"1GB","grant":["{Path("weights.txt").absolute()}"],"env":["HOME"],"network":true}}'
    assert openfield("run", MAZE, "-a", "mine.py:Walker", *SMALL, "--isolate").status == 0  # all is done
    said = openfield("resume", "runs/maze.sqlite", "--memory", "3GB")
    assert said.status == 0


def test_a_domain_in_a_file_of_the_working_folder_is_found(openfield: Any) -> None:
    shutil.copy(MAZE, "labyrinth.py")
    assert openfield("run", "labyrinth.py", "-a", "compass", *SMALL, "--isolate").status == 0


def test_an_experiment_file_may_isolate_and_options_change_it(openfield: Any) -> None:
    lines = f'domain = "{MAZE}"', 'agents = ["compass"]', "trials = 1", "workers = 0", "[settings]", "after = 1"
    Path("plain.toml").write_text("\n".join([lines[0], "isolate = true", *lines[1:]]))
    assert openfield("run", "plain.toml", "-o", "plain.sqlite").status == 0
    assert kept("plain.sqlite") == "{}"
    Path("table.toml").write_text("\n".join([*lines, "[isolate]", 'memory = "1GB"', "processes = 50"]))
    assert openfield("run", "table.toml", "-o", "table.sqlite", "--memory", "3GB").status == 0
    assert kept("table.sqlite") == '{"memory":"3GB","processes":50}'


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--memory", "1GB"], "openfield: --memory is for isolated agents. Add --isolate.\n"),
        (["--isolate", "--memory", "much"], "openfield: 'much' is not a size; write 500MB or 2GB.\n"),
        (["--isolate", "--grant", "nothing"], "--grant {here}/nothing: there is no such file or folder.\n"),
        (["--isolate", "--env", "NOTHING"], "--env NOTHING: there is no such environment variable.\n"),
        (["--isolate", "-a", "mine.py:Agent"], "'{here}/mine.py:Agent' cannot be imported: ZeroDivisionError: "),
    ],
)
def test_mistakes_are_explained_in_one_line(openfield: Any, words: list[str], message: str) -> None:
    Path("mine.py").write_text("1 / 0")
    said = openfield("run", MAZE, *SMALL, *words)
    assert (said.status, said.err.count("\n")) == (2, 1)
    assert message.format(here=Path.cwd()) in said.err


def test_an_isolated_run_is_resumed_in_isolation_only(openfield: Any, run: Path) -> None:
    said = openfield("resume", run, "--isolate")
    assert (said.status, "was begun without --isolate. Leave it out" in said.err) == (2, True)
