"""The objectives section of a report: on the page, on the terminal and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import openfield as of
from openfield.agents.random import RandomAgent
from openfield.cli import run_command
from openfield.metrics import BUILT_IN, summarise
from openfield.report.page import ReportOptions, render_page
from openfield.result import Result


@pytest.fixture
def played(maze: of.Domain[Any], path: Path) -> Path:
    trials = maze.trials(2, size=3, patience=12, training=2, before=5, after=6, unchanged=0)
    of.run({"compass": maze.agents["compass"], "<random>": RandomAgent}, trials, path)
    return path


def test_a_report_has_plots_and_tables_per_stage(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["report", str(played), "--objectives"]) == 0
    text = capsys.readouterr().out
    assert "Objectives without reward" in text
    assert "permutation null" in text
    page = played.with_suffix(".html").read_text()
    section = page[page.index("<h2>Objectives without reward") : page.index(">How it was made</h2>")]
    assert section.count("<figure>") == 5
    for words in ("Input entropy", "Empowerment: plug-in value", "at equal numbers of transitions", "not identifiable"):
        assert words in section
    for stage in ("training", "before the onset", "after the onset"):
        assert section.count(f">{stage}</text>") == 5
        assert section.count(f'<th scope="col">{stage}</th>') == 2
    assert section.count("<circle") == 5 * 6
    assert "&lt;random&gt;" in section
    assert "<random>" not in page


def test_a_report_without_them_has_none(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["report", str(played)]) == 0
    assert "Objectives without reward" not in capsys.readouterr().out + played.with_suffix(".html").read_text()


def test_objectives_are_part_of_the_json(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["report", str(played), "--objectives", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["objectives"]
    assert [group["stage"] for group in found["groups"]] == ["training", "before", "after"] * 2
    assert found == json.loads(json.dumps(Result([played]).objectives()))


def test_a_run_that_cannot_be_counted_is_named() -> None:
    record = {"runs": [{"run": "a.sqlite", "error": "a.sqlite: <it> is damaged."}], "groups": []}
    page = render_page("x", [], {}, summarise([], BUILT_IN), ReportOptions(objectives=record))
    assert "<li>a.sqlite: &lt;it&gt; is damaged.</li>" in page
