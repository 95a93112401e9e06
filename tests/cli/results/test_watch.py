from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import openfield as of
from openfield.cli.results import watch
from openfield.journal.writer import Journal
from openfield.record import AttemptEnd
from openfield.runner.plan import make_cells
from support.players import Crasher, copycat
from support.worlds import tiny_trials


def test_it_says_how_far_a_run_is(tmp_path: Path, openfield: Any) -> None:
    of.run({"good": copycat, "bad": Crasher}, tiny_trials(2), tmp_path / "run.sqlite")
    said = openfield("watch", "run.sqlite")
    assert said.status == 0
    assert "no process plays it now" in said.out
    assert "  good  0." in said.out
    assert "anytime" not in said.out
    assert openfield("watch", "run.sqlite", "--once").out == said.out
    told = json.loads(openfield("watch", "run.sqlite", "--json").out)
    assert (told["good"]["planned"], told["good"]["played"], told["good"]["failed"]) == (2, 2, 0)
    assert (told["bad"]["played"], told["bad"]["failed"]) == (2, 2)
    assert 0 < told["good"]["performance"] <= 1
    assert {number["number"]: number["valid"] for number in told["good"]["numbers"]}["after"] == "fixed"


def test_numbers_of_a_run_that_goes_on_have_intervals_that_hold_at_every_look(tmp_path: Path, openfield: Any) -> None:
    of.run(copycat, trials := tiny_trials(7), tmp_path / "run.sqlite")
    with Journal(tmp_path / "run.sqlite") as record:
        record.enter(make_cells(["copycat"], [*trials, *tiny_trials(9)[7:]]), {"copycat": None}, {})
    said = openfield("watch", "run.sqlite", "--once")
    assert "anytime: they hold however often one looks" in said.out
    found = {
        each["number"]: each
        for each in json.loads(openfield("watch", "run.sqlite", "--json").out)["copycat"]["numbers"]
    }
    assert (found["after"]["valid"], found["after"]["n"]) == ("anytime", 7)
    assert found["after"]["low"] <= found["after"]["mean"] < found["after"]["high"]


def test_it_follows_a_run_to_its_end(tmp_path: Path, openfield: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
    cells, looks = make_cells(["copycat"], tiny_trials(2)), 0
    with Journal(tmp_path / "run.sqlite") as record:
        record.enter(cells, {"copycat": None}, {})

        def sleep(_: float) -> None:
            nonlocal looks
            cell = cells[looks]
            record.add_anew(cell.id, 1, AttemptEnd(cell.id, 1, "done", "", 0.1)).result(timeout=60)
            looks += 1

        monkeypatch.setattr(
            watch,
            "time",
            type("Clock", (), {"sleep": sleep, "monotonic": watch.time.monotonic, "time": watch.time.time}),
        )
        said = openfield("watch", "run.sqlite")
    assert (said.status, looks) == (0, 2)
    assert "2/2" in said.out
