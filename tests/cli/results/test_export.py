"""`openfield export`: the same episodes in every format."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

from support.objectives.parquet import read_parquet


def test_export_writes_the_same_episodes_in_three_formats(openfield: Any, run: Path, tmp_path: Path) -> None:
    for form in ("csv", "jsonl", "parquet"):
        said = openfield("export", run, "--format", form)
        assert said.out == f"50 episodes in {tmp_path / 'maze'}.{form}\n"
    with (tmp_path / "maze.csv").open(newline="") as file:
        from_csv = list(csv.DictReader(file))
    from_jsonl = [json.loads(line) for line in (tmp_path / "maze.jsonl").read_text().splitlines()]
    assert read_parquet(tmp_path / "maze.parquet") == from_jsonl
    assert [row["cell"] for row in from_csv] == [row["cell"] for row in from_jsonl]
    assert [float(row["performance"]) for row in from_csv] == [row["performance"] for row in from_jsonl]


def test_export_of_several_runs_goes_where_it_is_told(openfield: Any, run: Path, tmp_path: Path) -> None:
    copy = shutil.copy(run, tmp_path / "copy.sqlite")
    assert openfield("export", run, copy, "-f", "jsonl", "-o", "all/x.jsonl").out == "50 episodes in all/x.jsonl\n"


def test_export_of_estimates_has_one_row_for_each_number_and_agent(openfield: Any, run: Path, tmp_path: Path) -> None:
    summary = json.loads(openfield("report", run, "--json", "--intervals", "conservative").out)
    said = openfield("export", run, "--intervals", "conservative")
    total = sum(len(group["estimates"]) for group in summary["groups"])
    assert said.out == f"{total} numbers in {tmp_path / 'maze.csv'}\n"
    with (tmp_path / "maze.csv").open(newline="") as file:
        rows = {(row["agent"], row["number"]): row for row in csv.DictReader(file)}
    want = summary["groups"][0]["estimates"]["before"]
    found = rows["compass", "before"]
    assert {key: float(found[key]) for key in want} == want
    assert found["intervals"] == "conservative"
