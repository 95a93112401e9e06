"""Tags and notes that readers write beside a run."""

from __future__ import annotations

from pathlib import Path

import pytest

import openfield as of
from openfield.errors import InvalidInput
from openfield.journal.reader import Run
from openfield.provenance.remarks import EditedRemarks, locate_remarks, read_remarks, write_remarks
from openfield.report.run_list import list_runs
from openfield.result import Result
from support.players import copycat
from support.worlds import tiny_trials


@pytest.fixture
def run(tmp_path: Path) -> Path:
    of.run([copycat], tiny_trials(1), path := tmp_path / "one.sqlite", note="recorded", tags=["pilot"])
    return path


def test_remarks_are_shown_in_place_of_those_that_were_recorded_which_stay(run: Path) -> None:
    before = run.read_bytes()
    write_remarks(run, EditedRemarks(("paper", "paper"), "what we kept"))
    (found,) = list_runs([run])
    assert (found.tags, found.notes) == (("paper",), ("what we kept",))
    Result([run]).page(page := run.with_name("report.html"))
    assert "what we kept" in page.read_text()
    assert run.read_bytes() == before
    with Run(run) as opened:
        assert opened.verify() == []
    write_remarks(run, EditedRemarks())
    (found,) = list_runs([run.parent])
    assert (found.tags, found.notes) == ((), ())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "truncated"),
        ('{"tags": "a"}', "array"),
        ('{"tags": ["a b"]}', "a word of letters"),
        ("x" * 200_000, "100"),
    ],
)
def test_a_file_that_holds_something_else_is_named(run: Path, text: str, reason: str) -> None:
    locate_remarks(run).write_text(text)
    with pytest.raises(InvalidInput, match=reason) as refused:
        read_remarks(run)
    (found,) = list_runs([run])
    assert (found.tags, found.notes) == (("pilot",), ("recorded", str(refused.value)))


def test_tags_that_no_command_takes_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at most 30 tags"):
        EditedRemarks(tuple(f"t{number}" for number in range(31)))
    with pytest.raises(InvalidInput, match="A note is at most"):
        EditedRemarks(note="\x1b[0m")
