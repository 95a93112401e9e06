"""`openfield show`: from cells to turns to one turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import openfield as of
from openfield.journal.writer import Journal
from openfield.provenance.people import person_fact
from support.places import MAZE
from support.players import copycat
from support.worlds import tiny_trials

SMALL = (
    "--set",
    "training=0",
    "--set",
    "before=1",
    "--set",
    "after=1",
    "--set",
    "patience=3",
    "--set",
    "unchanged=0",
    "--trials",
    "1",
)


def test_show_goes_from_cells_to_turns_to_one_turn(openfield: Any, run: Path) -> None:
    cells = json.loads(openfield("show", run, "--json").out)
    assert [cell["agent"] for cell in cells] == ["compass", "random"] * 5
    assert {cell["outcome"] for cell in cells} == {"done"}
    cell = cells[0]
    turns = json.loads(openfield("show", run, "--cell", cell["cell"], "--json").out)
    assert len(turns) == cell["turns"]
    assert turns[0]["reply"] is None
    assert turns[-1]["turn"] is None
    said = openfield("show", run, "--cell", cell["cell"][:6], "--turn", "1")
    assert json.loads(said.out) == turns[1]
    table = openfield("show", run, "--cell", cell["cell"]).out.splitlines()
    assert len(table) == cell["turns"] + 1
    assert any("novel" in line for line in table)


def test_an_unchanged_trial_is_marked(openfield: Any) -> None:
    openfield("run", MAZE, *SMALL, "--set", "unchanged=1", "--workers", "0", "-o", "twins.sqlite")
    cells = json.loads(openfield("show", "twins.sqlite", "--json").out)
    assert sorted(cell["novelty"] for cell in cells) == ["swapped", "swapped (unchanged)"]


def test_cells_of_people_have_their_names(openfield: Any, path: Path) -> None:
    of.run({"human": copycat}, tiny_trials(1), path, repeats=2)
    columns = openfield("show", path).out.splitlines()[0].split()
    assert columns[:3] == ["cell", "agent", "domain"]
    with Journal(path) as journal:
        journal.enter([], {}, {person_fact("human", number): f"p0{number + 1}" for number in range(2)})
    assert openfield("show", path).out.splitlines()[0].split()[:3] == ["cell", "agent", "person"]
    assert sorted(cell["person"] for cell in json.loads(openfield("show", path, "--json").out)) == ["p01", "p02"]


def test_why_a_cell_failed_is_said_in_one_line(narrow: Any) -> None:
    narrow("run", MAZE, "--agent", "some-rather-long-name=wire:/nonexist", *SMALL, "-o", "q.sqlite")
    said = narrow("show", "q.sqlite")
    lines = [line.rstrip() for line in said.out.splitlines()]
    assert "    '/nonexist' cannot be started: No such file or directory." in lines
    assert "agent_gone  0         1" in said.out


@pytest.mark.filterwarnings("always::openfield.runner.scheduler.RunWarning")
def test_sources_are_listed_and_printed(openfield: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        text := "import near, openfield as of\ndef left(turn):\n    return of.Reply('left')\n"
    )
    words = ("run", MAZE, "--agent", "me=mine.py:left", "--workers", "0", *SMALL, "-o", "x.sqlite")
    for version in (1, 2):
        (tmp_path / "near.py").write_text(f"x = {version}\n")
        assert openfield(*words).status == 0
    listed = openfield("show", "x.sqlite", "--source").out.splitlines()
    assert [line.split()[:2] for line in listed[1:]] == [
        ["maze.py", "maze"],
        ["mine.py", "me"],
        *sorted([["near.py", "an"], ["near.py", "me"]], key=lambda row: listed[3].split()[1] != row[1]),
    ]
    assert openfield("show", "x.sqlite", "--source", "mine.py").out == text
    assert openfield("show", "x.sqlite", "--source", "near.py").out == "x = 2\n"
    both = openfield("show", "x.sqlite", "--source", "me").out
    assert text in both
    assert "x = 2" in both
    rows = json.loads(openfield("show", "x.sqlite", "--source", "--json").out)
    (earlier,) = [row for row in rows if row["of"] == ["an earlier version"]]
    assert openfield("show", "x.sqlite", "--source", earlier["digest"][:8]).out == "x = 1\n"
    said = openfield("show", "x.sqlite", "--source", "mime.py")
    assert (said.status, said.out) == (2, "")
    assert "Unknown source 'mime.py'. Did you mean 'mine.py'?" in said.err
