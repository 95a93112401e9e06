"""`openfield report`: numbers, pages, metrics of one's own, baselines."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from openfield.result import Result
from support.places import MAZE, ROOT

KINDS = ("usual", "conservative")
KEPT = ROOT / "tests" / "data" / "kept"


def test_report_prints_the_numbers_and_writes_the_page(openfield: Any, run: Path, tmp_path: Path) -> None:
    said = openfield("report", run)
    assert said.status == 0
    assert "Correct detection" in said.out
    assert said.out.endswith(f"Page: {tmp_path / 'maze.html'}\n")
    assert "<html" in (tmp_path / "maze.html").read_text()


def test_in_a_pipe_each_row_of_a_table_is_one_line(openfield: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    small = ("--set", "training=0", "--set", "before=1", "--set", "after=1", "--trials", 1, "--workers", 0)
    agents = [word for number in range(9) for word in ("-a", f"a-long-name-{number}=random")]
    assert openfield("run", MAZE, *small, *agents, "-o", "many.sqlite").status == 0
    lines = openfield("report", "many.sqlite").out.splitlines()
    (row,) = [line for line in lines if "Performance after the onset" in line]
    assert row.count("trial") == 9  # one value for each agent
    pairs = [line for line in lines if line.startswith("│ a-long-name-") and line.count("a-long-name") == 2]
    assert len(pairs) == 8  # those with the best
    assert all("shared trial" in line for line in pairs)


def test_terminal_page_and_json_print_the_fingerprint(openfield: Any, run: Path, tmp_path: Path) -> None:
    (record,) = json.loads(openfield("report", run, "--json").out)["runs"]
    assert (record["run"], record["planned"], record["played"]) == ("maze.sqlite", 10, 10)
    said, page = openfield("report", run).out, (tmp_path / "maze.html").read_text()
    for text in (record["fingerprint"], record["plan"], "10 planned, 10 played; attempts: 0 retried, 0 superseded"):
        assert text in said
        assert text in page
    assert "signature" not in page
    assert json.loads(openfield("verify", run, "--json").out)["record"] == record


def test_terminal_page_and_json_say_how_a_run_was_made(openfield: Any, run: Path, tmp_path: Path) -> None:
    first = openfield("report", run, "--json").out
    (made,) = json.loads(first)["provenance"]
    assert openfield("report", run, "--json").out == first  # nothing depends on when it is printed
    assert made["agents"]["maze"].keys() == {"compass", "random"}
    said, page = openfield("report", run).out, (tmp_path / "maze.html").read_text()
    assert f"Made by {made['command']} ({made['started']})" in " ".join(said.split())
    assert f"python {made['versions']['python']}" in said
    assert ">How it was made</h2>" in page
    assert all(text in page for text in (made["machine"], made["started"], f"numpy {made['versions']['numpy']}"))
    assert "command 20" not in page  # the fact itself


def test_report_of_chosen_metrics(openfield: Any, run: Path, tmp_path: Path) -> None:
    summary = json.loads(openfield("report", run, "--metric", "detection", "--json").out)
    names = [number["name"] for number in summary["numbers"]]
    assert names[:4] == ["concordance", "correct", "detected", "delay"]
    assert "after" not in names
    assert not (tmp_path / "maze.html").exists()
    openfield("report", run, "--json", "-o", "page.html")
    assert (tmp_path / "page.html").exists()


def test_json_says_where_counting_finds_the_change(openfield: Any, run: Path) -> None:
    small = ("--set", "training=0", "--set", "before=1", "--set", "after=2", "--trials", 1, "--workers", 0)
    openfield("run", MAZE, *small, "--set", "onset=0-1", "-o", "blind.sqlite")
    fixed, blind = (json.loads(openfield("report", file, "--json").out)["groups"] for file in (run, "blind.sqlite"))
    said = "the onset is fixed or published, so agents can detect the change by counting"
    assert {group["note"] for group in fixed} == {said}
    assert {group["note"] for group in blind} == {""}


MEASURE = """
from openfield.metrics import Metric, Number

def length(cell):
    novel = [episode.turns for episode in cell.episodes if episode.novel]
    return {{"novel_turns": {value}}}

LENGTH = Metric(
    name="length",
    note="How long novel episodes take.",
    numbers=(Number(name="novel_turns", title="Turns of novel episodes", note="mean", kind="count", better="lower"),),
    measure=length,
)
"""


def test_a_metric_of_ones_own_is_given_as_a_file(openfield: Any, run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MEASURE.format(value="sum(novel) / len(novel)"))
    assert "Turns of novel episodes" in openfield("report", run, "--metric", "mine.py:LENGTH").out
    assert openfield("export", run, "--metric", "mine.py:LENGTH", "-o", "x.csv").out == "10 cells in x.csv\n"
    assert ",agent_version,failures,novel_turns,setting_" in (tmp_path / "x.csv").read_text().splitlines()[0]
    assert "Which metric of mine.py? Write mine.py:NAME." in openfield("report", run, "--metric", "mine.py").err
    assert "'mine.py:length' is a function, not a Metric." in openfield("report", run, "--metric", "mine.py:length").err


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("1 / 0", "The metric 'length' fails at cell [0-9a-f]+: ZeroDivisionError: division by zero."),
        ("float('nan')", "The metric 'length' fails at cell .*: 'novel_turns' is NaN. Return None for a number"),
        ("0, 'turns': 1", "Unknown number 'turns'. .*Declared by the metric 'length': novel_turns."),
    ],
)
def test_a_metric_that_fails_is_named(openfield: Any, run: Path, tmp_path: Path, value: str, said: str) -> None:
    (tmp_path / "wrong.py").write_text(MEASURE.format(value=value))
    for command in ("report", "export"):
        found = openfield(command, run, "--metric", "wrong.py:LENGTH")
        assert found.status == 2
        assert re.match(f"openfield: {said}", found.err)
        assert found.err.count("\n") == 1


def test_several_runs_are_reported_as_one(openfield: Any, run: Path) -> None:
    small = ("--set", "training=1", "--set", "before=2", "--set", "after=2", "--set", "unchanged=0")
    openfield("run", MAZE, "--agent", "other=compass", *small, "--workers", "0", "-o", "other.sqlite")
    summary = json.loads(openfield("report", run, "other.sqlite", "--json").out)
    assert [group["agent"] for group in summary["groups"]] == ["compass", "other", "random"]
    assert all(comparison["paired"] for comparison in summary["comparisons"])
    assert summary["outcomes"] == {"done": 15}


def test_numbers_against_a_baseline_in_any_domain(openfield: Any, run: Path, tmp_path: Path) -> None:
    chosen = ("--metric", "baseline", "--baseline", "random")
    assert "M3: NRP" in openfield("report", run, *chosen).out
    assert "M3: NRP" in openfield("report", run, *chosen[2:]).out
    assert "M5: OPTI" in (tmp_path / "maze.html").read_text()
    assert "M3: NRP" not in openfield("report", run).out
    assert openfield("export", run, *chosen).out == f"10 cells in {tmp_path / 'maze.csv'}\n"
    with (tmp_path / "maze.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["opti"] for row in rows if row["agent"] == "random"} <= {"0.5", ""}
    assert all(row["difficulty"] == "" for row in rows if row["agent"] == "compass")
    assert any(float(row["nrp"]) > 1 for row in rows if row["agent"] == "compass" and row["nrp"])
    said = openfield("report", run, "--baseline", "randon")
    assert said.status == 2
    assert "Did you mean 'random'?" in said.err


def test_numbers_against_nobody_are_refused(openfield: Any) -> None:
    small = ("--set", "training=1", "--set", "before=2", "--set", "after=2", "--set", "unchanged=0")
    openfield("run", MAZE, "--agent", "compass", *small, "--workers", "0", "-o", "one.sqlite")
    assert openfield("report", "one.sqlite").status == 0
    said = openfield("report", "one.sqlite", "--metric", "baseline")
    assert (said.status, said.err) == (2, "openfield: Against which agent? Name it with --baseline: compass.\n")


def test_numbers_without_a_row_say_why(openfield: Any, tmp_path: Path) -> None:
    calm = ("--novelty", "none", "--trials", "1", "--set", "training=0", "--set", "before=2", "--set", "after=2")
    assert openfield("run", MAZE, "-a", "random", *calm, "--workers", "0", "-o", "calm.sqlite").status == 0
    why = "No row of baseline: no trial has come to a change of its world"
    assert why in openfield("report", "calm.sqlite", "--metric", "baseline").out
    assert why in (tmp_path / "calm.html").read_text()
    assert why in json.loads(openfield("report", "calm.sqlite", "--metric", "baseline", "--json").out)["missing"][0]


def test_conservative_intervals_are_the_default_wider_and_named(openfield: Any, run: Path, tmp_path: Path) -> None:
    assert json.loads(openfield("report", run, "--json").out)["intervals"] == "conservative"
    usual, safe = (json.loads(openfield("report", run, "--json", "--intervals", kind).out) for kind in KINDS)
    assert (usual["intervals"], safe["intervals"]) == KINDS
    widths = [[_width(one["groups"][1]["estimates"]["before"])] for one in (usual, safe)]
    assert 0 < widths[0][0] < widths[1][0]
    text = openfield("report", run, "--intervals", "conservative").out
    assert "conservative 95 % intervals" in text
    assert "conservative 95 % intervals" in (tmp_path / "maze.html").read_text()
    refused = openfield("report", run, "--intervals", "narrow")
    assert refused.status == 2
    assert "conservative" in refused.err


def _width(estimate: dict[str, float]) -> float:
    return estimate["high"] - estimate["low"]


def test_json_is_the_same_bytes_in_every_process(run: Path, tmp_path: Path) -> None:
    files = [shutil.copy(path, tmp_path) for path in sorted(KEPT.glob("[bc]*.sqlite"))]
    said = []
    for seed in ("1", "2"):
        command = [sys.executable, "-m", "openfield", "report", "--json", run, *files]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        found = subprocess.run(command, env=environment, capture_output=True, check=True, cwd=tmp_path)
        said.append(found.stdout)
    assert said[0] == said[1]
    assert len({group["scenario"]["domain"] for group in json.loads(said[0])["groups"]}) == 3


def test_the_terminal_the_page_and_json_open_with_the_same_sentences(openfield: Any, run: Path, tmp_path: Path) -> None:
    (finding,) = json.loads(openfield("report", run, "--json").out)["findings"]
    printed = " ".join(openfield("report", run, "-o", tmp_path / "page.html").out.split())
    assert finding["text"] in printed
    first = finding["text"].split(". ")[0]
    assert first in (tmp_path / "page.html").read_text()
    assert first in Result([run])._repr_html_()


def test_six_numbers_are_shown_until_others_are_named(openfield: Any, run: Path) -> None:
    usual = openfield("report", run).out
    assert "Performance before the onset" in usual
    assert "Area under the curve" not in usual
    assert "more numbers: --numbers all" in usual
    every = openfield("report", run, "--numbers", "all").out
    assert "Area under the curve" in every
    assert "more numbers" not in every
    named = openfield("report", run, "--numbers", "area,passive_correct").out
    assert "Area under the curve" in named
    assert "Correct passive detection" in named  # of a metric that the domain does not name
    assert "Performance before" not in named
    assert "Unknown number 'aria'. Did you mean 'area'?" in openfield("report", run, "--numbers", "aria").err


def test_tables_for_papers_have_the_same_numbers(openfield: Any, run: Path, tmp_path: Path) -> None:
    for chosen, shown in (((), False), (("--numbers", "all"), True)):
        openfield("export", run, "--format", "latex", "-o", "x.tex", *chosen)
        assert ("Area under the curve" in (tmp_path / "x.tex").read_text()) is shown
    refused = openfield("export", run, "--numbers", "all").err
    assert "--numbers has no effect on --format csv, which has all numbers; leave it out." in refused
