"""`openfield compare`: two agents of a run, or the agents of two run files."""

from __future__ import annotations

import csv
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from support.places import MAZE


def test_an_agent_is_not_compared_with_itself(openfield: Any, run: Path) -> None:
    said = openfield("compare", "random", "random", "--run", run)
    assert (said.status, said.out) == (2, "")
    assert "Compare two different agents" in said.err


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
    assert "either two run files, or two agents" in openfield("compare", run, "b.sqlite", "--run", run).err


def test_two_run_files_are_compared(openfield: Any) -> None:
    small = ("--trials", 2, "--set", "training=0", "--set", "before=1", "--set", "after=1", "--workers", 0)
    for name in ("compass", "random"):
        assert openfield("run", MAZE, "-a", name, *small, "-o", f"{name}.sqlite").status == 0
    told = json.loads(openfield("compare", "compass.sqlite", "random.sqlite", "--json").out)
    assert [(one["first"], one["second"]) for one in told["comparisons"]] == [("compass", "random")]


VERSION = "import openfield as of\n\n\ndef agent(turn):\n    return of.Reply({move!r}, of.Belief({belief}))\n"


def play_versions(openfield: Any, *files: str) -> None:
    """Play the same trials with two versions of an agent, each into its file."""
    small = ("--trials", 5, "--set", "training=0", "--set", "before=1", "--set", "after=1", "--workers", 0)
    for move, belief, file in zip(("up", "right"), (0.1, 0.9), files, strict=True):
        Path("mine.py").write_text(VERSION.format(move=move, belief=belief))
        sys.modules.pop("openfield_file_mine", None)
        assert openfield("run", MAZE, "-a", "mine.py:agent", *small, "-o", file).status == 0


def read_csv(path: str) -> list[dict[str, str]]:
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def list_agents(said: Any) -> list[str]:
    return sorted({group["agent"] for group in json.loads(said.out)["groups"]})


def test_versions_of_an_agent_in_two_files_are_told_apart(openfield: Any) -> None:
    play_versions(openfield, "v1.sqlite", "v2.sqlite")
    old, new = "mine.py:agent (v1)", "mine.py:agent (v2)"
    files = "v1.sqlite", "v2.sqlite"
    assert list_agents(openfield("report", *files, "--json")) == [old, new]
    said = openfield("compare", *files, "--json", "--rename", f"{old}=before", "--rename", f"{new}=now")
    assert list_agents(said) == ["before", "now"]
    (pair,) = json.loads(said.out)["comparisons"]
    assert ({pair["first"], pair["second"]}, pair["paired"]) == ({"before", "now"}, True)
    openfield("export", *files, "-f", "markdown", "-o", "t.md", "--rename", "agent (v1)=before")  # as tables show it
    assert "|  | agent (v2) | before |" in Path("t.md").read_text()
    assert "Unknown agent 'mine'" in openfield("report", *files, "--rename", "mine=x").err
    assert "would be called" in openfield("report", *files, "--rename", f"{old}={new}").err
    assert "cannot be printed" in openfield("report", *files, "--rename", f"{old}=a\nb").err
    assert "--rename takes AGENT=NAME" in openfield("report", *files, "--rename", "mine").err


@pytest.mark.filterwarnings("ignore:An earlier version of")
def test_superseded_versions_are_shown_on_request(openfield: Any) -> None:
    play_versions(openfield, "both.sqlite", "both.sqlite")
    assert list_agents(openfield("report", "both.sqlite", "--json")) == ["mine.py:agent"]
    latest, earlier = list_agents(openfield("report", "both.sqlite", "--superseded", "--json"))
    assert latest == "mine.py:agent"
    assert openfield("export", "both.sqlite", "--superseded", "-o", "both.csv").status == 0
    assert {row["agent"] for row in read_csv("both.csv")} == {latest, earlier}
    assert re.fullmatch(r"mine\.py:agent \(version [0-9a-f]{8}\)", earlier)
