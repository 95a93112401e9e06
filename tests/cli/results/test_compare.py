"""`openfield compare`: two agents of a run, or the agents of two run files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from support.places import MAZE


def test_only_the_two_agents_are_compared(openfield: Any, run: Path) -> None:
    told = json.loads(openfield("compare", "random", "compass", "--run", run, "--json").out)
    assert {group["agent"] for group in told["groups"]} == {"compass", "random"}
    assert [one["family"] for one in told["comparisons"]] == [1]
    assert "P(first is better)" in openfield("compare", "random", "compass", "--run", run).out


def test_runs_of_both_agents_are_found_in_the_usual_folder(openfield: Any, run: Path) -> None:
    Path("runs").mkdir()
    shutil.copy(run, "runs/maze.sqlite")
    assert openfield("compare", "compass", "random").status == 0
    said = openfield("compare", "compass", "nobody")
    assert (said.status, said.err.count("\n")) == (2, 1)
    assert "No run in runs has both compass and nobody" in said.err


def test_mistakes_are_said_in_a_line(openfield: Any, run: Path) -> None:
    assert (
        "Unknown agent 'compas'. Did you mean 'compass'?" in openfield("compare", "compas", "random", "--run", run).err
    )
    assert "either two agents or two run files" in openfield("compare", run, "random").err
    assert "either two run files, or two agents" in openfield("compare", run, run, "--run", run).err


def test_two_run_files_are_compared(openfield: Any) -> None:
    small = ("--trials", 2, "--set", "training=0", "--set", "before=1", "--set", "after=1", "--workers", 0)
    for name in ("compass", "random"):
        assert openfield("run", MAZE, "-a", name, *small, "-o", f"{name}.sqlite").status == 0
    told = json.loads(openfield("compare", "compass.sqlite", "random.sqlite", "--json").out)
    assert [(one["first"], one["second"]) for one in told["comparisons"]] == [("compass", "random")]
