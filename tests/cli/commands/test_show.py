"""`openfield show`: from cells to turns to one turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.places import MAZE

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


def test_why_a_cell_failed_is_said_in_one_line(narrow: Any) -> None:
    narrow("run", MAZE, "--agent", "some-rather-long-name=wire:/nonexist", *SMALL, "-o", "q.sqlite")
    said = narrow("show", "q.sqlite")
    lines = [line.rstrip() for line in said.out.splitlines()]
    assert "    '/nonexist' cannot be started: No such file or directory." in lines
    assert "agent_gone  0         1" in said.out
