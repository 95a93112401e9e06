from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pandas
import polars
import pytest

import openfield as of
from openfield.errors import OpenfieldError, UnknownName
from openfield.report.export.frames import to_pandas, to_polars
from openfield.report.export.rows import Row
from support.players import copycat
from support.worlds import tiny_trials


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
