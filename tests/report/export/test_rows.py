from __future__ import annotations

import csv
import re
import sys
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pandas
import polars
import pytest

import openfield as of
from openfield.errors import MissingExtra, OpenfieldError, UnknownName
from openfield.report.export.rows import (
    FORMATS,
    Row,
    make_cell_rows,
    make_episode_rows,
    to_pandas,
    to_polars,
    write_rows,
)
from support.players import copycat
from support.records import make_cell, make_run, make_trial
from support.worlds import tiny_trials

CELLS = [make_cell([0.25], [None], [0.5], [None, 0.1, 0.9], agent='a,"b"'), *make_run(trials=2)]


def test_one_row_for_each_episode(tmp_path: Path) -> None:
    total = sum(len(cell.episodes) for cell in CELLS)
    for form in FORMATS:
        assert write_rows(tmp_path / f"x.{form}", *make_episode_rows(CELLS), form) == total


def test_csv_reads_back(tmp_path: Path) -> None:
    write_rows(tmp_path / "x.csv", *make_episode_rows(CELLS), "csv")
    with (tmp_path / "x.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [rows[1][key] for key in ("agent", "phase", "novel", "performance", "belief", "detected")] == [
        'a,"b"',
        "test",
        "false",
        "",
        "0.1",
        "false",
    ]
    assert rows[2]["novel"] == "true"


def test_episodes_say_their_return_their_onset_and_the_settings_of_their_trial(tmp_path: Path) -> None:
    raw = make_cell([], [None], [None, None], trial=make_trial(settings={"wind": 2, "map": {"size": 8}}))
    raw = msgspec.structs.replace(
        raw, episodes=tuple(msgspec.structs.replace(each, detail={"return": -1.5}) for each in raw.episodes)
    )
    other = make_cell([], [0.5], [], trial=make_trial(2, settings={"wind": 0.5, "a-b": "x"}), id="b")
    write_rows(tmp_path / "x.jsonl", *make_episode_rows([raw, other]), "jsonl")
    rows = [msgspec.json.decode(line) for line in (tmp_path / "x.jsonl").read_bytes().splitlines()]
    names = ("return", "onset", "changed", "setting_wind", "setting_map", "setting_a-b")
    assert [[row[name] for name in names] for row in rows] == [
        *[[-1.5, 1, True, 2.0, '{"size":8}', None]] * 3,
        [None, None, True, 0.5, None, "x"],
    ]
    assert write_rows(tmp_path / "x.parquet", *make_episode_rows([raw, other]), "parquet") == 4
    columns, types, found = read_parquet(tmp_path / "x.parquet")
    assert [dict(zip(columns, row, strict=True)) for row in found] == rows
    assert types[columns.index("setting_wind")] == "DOUBLE"


def test_episodes_say_how_strong_the_change_was_and_whether_agents_were_told(tmp_path: Path) -> None:
    told = make_cell([], [0.5], [0.5], trial=make_trial(red_light="how much"))
    episodes = [
        msgspec.structs.replace(each, strength=strength, change=change)
        for each, strength, change in zip(told.episodes, (0.0, 0.4), ("", "slip over 3"), strict=True)
    ]
    cells = [msgspec.structs.replace(told, episodes=tuple(episodes)), make_cell([], [0.5], [], id="b")]
    write_rows(tmp_path / "x.parquet", *make_episode_rows(cells), "parquet")
    columns, _, found = read_parquet(tmp_path / "x.parquet")
    rows = [dict(zip(columns, row, strict=True)) for row in found]
    names = ("strength", "change", "red_light", "red_light_strength")
    assert [tuple(row[name] for name in names) for row in rows] == [
        (0.0, "", True, True),
        (0.4, "slip over 3", True, True),
        (None, "", False, False),
    ]


@pytest.mark.parametrize("name", ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1"])
def test_csv_gives_spreadsheets_nothing_to_run(tmp_path: Path, name: str) -> None:
    write_rows(
        tmp_path / "x.csv", *make_episode_rows([make_cell([-0.25], agent=name), make_cell([0.5], agent="-7")]), "csv"
    )
    with (tmp_path / "x.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["agent"] for row in rows] == [f"'{name}", "-7"]
    assert rows[0]["performance"] == "-0.25"


def test_json_lines_read_back(tmp_path: Path) -> None:
    write_rows(tmp_path / "x.jsonl", *make_episode_rows(CELLS), "jsonl")
    lines = (tmp_path / "x.jsonl").read_bytes().splitlines()
    kind, rows = make_episode_rows(CELLS)
    assert [msgspec.json.decode(line, type=kind) for line in lines] == list(rows)


def read_parquet(path: Path) -> tuple[list[str], list[str], list[tuple[Any, ...]]]:
    """Return names, types and rows of a table."""
    with duckdb.connect() as database:
        table = database.read_parquet(str(path))
        return table.columns, [str(each) for each in table.types], table.fetchall()


def test_parquet_reads_back(tmp_path: Path) -> None:
    write_rows(tmp_path / "x.parquet", *make_episode_rows(CELLS), "parquet")
    names, types, rows = read_parquet(tmp_path / "x.parquet")
    kind, expected = make_episode_rows(CELLS)
    assert [msgspec.convert(dict(zip(names, row, strict=True)), kind) for row in rows] == list(expected)
    assert types[names.index("performance")] == "DOUBLE"


def test_parquet_without_its_extra_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[data\]"):
        write_rows(tmp_path / "x.parquet", *make_episode_rows(CELLS), "parquet")
    assert list(tmp_path.iterdir()) == []


def test_unknown_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'jsonl'"):
        write_rows(tmp_path / "x", *make_episode_rows(CELLS), "json")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.parquet"
    path.write_text("old")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtra):
        write_rows(path, *make_episode_rows(CELLS), "parquet")
    assert path.read_text() == "old"


def test_numbers_of_cells_read_back_in_every_format(tmp_path: Path) -> None:
    found = [(cell, {"m": 0.5, "n": None}) for cell in CELLS]
    for form in FORMATS:
        assert write_rows(tmp_path / f"x.{form}", *make_cell_rows(found, "exclude"), form) == len(CELLS)
        assert write_rows(tmp_path / f"none.{form}", *make_cell_rows([], "count"), form) == 0
    rows = [msgspec.json.decode(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    names, _, found_again = read_parquet(tmp_path / "x.parquet")
    assert rows == [dict(zip(names, row, strict=True)) for row in found_again]
    assert [(row["cell"], row["m"], row["n"]) for row in rows] == [(cell.id, 0.5, None) for cell in CELLS]
    assert {row["failures"] for row in rows} == {"exclude"}


def test_estimates_say_which_version_played_and_which_task_they_are_about(tmp_path: Path) -> None:
    trials = of.trials("commai", 5, design="gradual", tasks="micro4,micro2", task_budget=200)
    result = of.run(["echo"], trials, tmp_path / "run.sqlite")
    result.cells = [msgspec.structs.replace(cell, version="earlier") for cell in result.cells]
    for form in FORMATS:
        assert write_rows(tmp_path / f"x.{form}", *result.rows("estimates"), form) > 20
    rows = [msgspec.json.decode(line) for line in (tmp_path / "x.jsonl").read_bytes().splitlines()]
    found = {(row["task"], row["number"]): row for row in rows}
    assert found["", "tasks_solved"]["agent_version"] == "earlier in 5 of 5 cells"
    assert found["micro2", "task_transfer"]["agent_version"] == "earlier in 15 of 15 cells"
    assert found["micro4", "task_transfer"]["mean"] == 1.0
    assert found["micro4", "task_steps"]["mean"] == found["micro4", "task_alone"]["mean"] == 50.0
    assert found["", "task_transfer"]["n"] == 5
    assert found["", "steps_median"]["beyond"] is None


@pytest.fixture
def result(path: Path) -> of.Result:
    return of.run([copycat, "random"], tiny_trials(3), path)


def test_a_row_is_a_number_of_an_agent_with_its_interval(result: of.Result) -> None:
    table = result.to_pandas()
    summary = result.summary()
    assert len(table) == sum(len(group.estimates) + bool(group.iqm) for group in summary.groups)
    for group in summary.groups:
        row = table[(table.agent == group.agent) & (table.number == "after")].iloc[0]
        after = group.estimates["after"]
        assert (row["mean"], row["n"]) == (after.mean, after.n)
        assert pandas.isna(row["low"]) == (after.low is None)
    assert {str(table[name].dtype) for name in ("mean", "low", "high", "p")} == {"float64"}
    assert (str(table["n"].dtype), str(table["control"].dtype)) == ("int64", "bool")


@pytest.mark.parametrize("rows", ["estimates", "cells", "episodes"])
def test_both_libraries_have_the_same_table(result: of.Result, rows: Any) -> None:
    one, other = result.to_pandas(rows), result.to_polars(rows)
    assert list(one.columns) == other.columns
    assert len(one) == len(other) > 0
    gaps = one.astype(object).where(one.notna(), None)
    assert gaps.to_dict("records") == other.to_dicts()


def test_cells_have_a_column_for_each_number_and_episodes_a_row_each(result: of.Result) -> None:
    cells = result.to_polars("cells", metrics=["performance"], failures="exclude")
    assert set(cells["failures"]) == {"exclude"}
    assert cells["after"].to_list() == [values["after"] for _, values in result.numbers(["performance"])]
    assert len(result.to_polars("episodes")) == sum(len(cell.episodes) for cell in result.cells)


def test_columns_keep_their_types_without_values() -> None:
    assert to_polars(Row, ()).schema["belief_level"] == polars.Int64
    assert {name: str(kind) for name, kind in to_pandas(Row, ()).dtypes.items() if name.startswith("belief")} == {
        "belief": "float64",
        "belief_level": "Int64",
    }


def test_choices_without_effect_are_refused(result: of.Result) -> None:
    with pytest.raises(UnknownName, match=r"Unknown kind of rows 'cell'\. Did you mean 'cells'\?"):
        result.to_pandas("cell")  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="Unknown option of a table of cells 'intervals'"):
        result.to_polars("cells", intervals="conservative")


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_package_is_named_with_the_line_that_installs_it(
    result: of.Result, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    expected = re.escape(f"to_{package} needs {package}, which is not installed. Install it: ")
    with pytest.raises(OpenfieldError, match=f"^{expected}.*pip install {package}$"):
        getattr(result, f"to_{package}")()
