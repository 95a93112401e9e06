from __future__ import annotations

from pathlib import Path

import pytest

import openfield as of
from openfield.errors import InvalidInput
from openfield.journal.writer import Journal
from openfield.report.run_list import describe_runs, list_runs
from openfield.runner.plan import make_cells
from support.players import copycat
from support.worlds import tiny_trials


def test_runs_are_listed_with_what_is_in_them(tmp_path: Path) -> None:
    of.run([copycat], tiny_trials(2), tmp_path / "a" / "one.sqlite", note="the first", tags=["pilot"])
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "x.sqlite").write_bytes(b"")
    (tmp_path / "notes.sqlite").write_text("no run at all")
    (run,) = list_runs([tmp_path])
    assert (run.run, run.domains, run.agents) == (str(tmp_path / "a" / "one.sqlite"), ("tiny",), ("copycat",))
    assert (run.novelties, run.planned, run.played, run.is_live) == (("flipped",), 2, 2, False)
    assert (run.tags, run.notes, run.problem) == (("pilot",), ("the first",), "")
    titles, rows = describe_runs([run])
    assert dict(zip(titles, rows[0], strict=True))["cells"] == "2/2"


def test_a_run_that_is_played_comes_first_and_a_damaged_one_says_why(tmp_path: Path) -> None:
    of.run([copycat], tiny_trials(1), tmp_path / "old.sqlite")
    of.run([copycat], tiny_trials(1), broken := tmp_path / "broken.sqlite")
    broken.write_bytes(broken.read_bytes()[:5000])
    (cell,) = make_cells(["copycat"], tiny_trials(1))
    with Journal(tmp_path / "live.sqlite") as record:
        record.enter([cell], {"copycat": None}, {})
        record.lease(cell.id)
        found = {Path(run.run).name: run for run in list_runs([tmp_path])}
    assert next(iter(found)) == "live.sqlite"
    assert (found["live.sqlite"].is_live, found["live.sqlite"].played) == (True, 0)
    assert "damaged" in found["broken.sqlite"].problem


def test_a_place_that_does_not_exist_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="There is no run file or folder"):
        list_runs([tmp_path / "none"])
