"""`openfield verify`: damaged parts are named."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from openfield.cell import Cell
from openfield.journal.reader import Run
from openfield.journal.writer import Journal
from openfield.record import AttemptEnd
from support.places import MAZE
from support.records import make_trial


def test_verify_names_a_damaged_chunk(openfield: Any, run: Path) -> None:
    assert openfield("verify", run).out.startswith(f"{run} is as it was written.\n")
    assert json.loads(openfield("verify", run, "--json").out)["faults"] == []
    with sqlite3.connect(run) as db:
        (cell,) = db.execute("SELECT cell FROM chunks LIMIT 1").fetchone()
        db.execute("UPDATE chunks SET data = zeroblob(9) WHERE cell = ?", (cell,))
    db.close()
    said = openfield("verify", run)
    assert said.status == 2
    assert f"A chunk of the record is damaged (cell {cell}, attempt 1, turns 0 to " in said.err
    assert json.loads(openfield("verify", run, "--json").out)["faults"]


def test_verify_holds_a_run_against_a_published_fingerprint(openfield: Any, run: Path) -> None:
    record = json.loads(openfield("verify", run, "--json").out)["record"]
    said = openfield("verify", run, "--fingerprint", record["fingerprint"].upper())
    assert (said.status, said.err) == (0, "")
    assert f"Fingerprint of maze.sqlite: {record['fingerprint']}\n" in said.out
    with closing(sqlite3.connect(run)) as db, db:
        db.execute("UPDATE attempts SET seconds = seconds + 1 WHERE rowid = 1")
    said = openfield("verify", run, "--fingerprint", record["fingerprint"])
    assert (said.status, said.err.count("\n")) == (2, 1)
    assert said.err.startswith(f"openfield: The fingerprint of {run} is ")
    assert said.err.endswith(f", not {record['fingerprint']}.\n")


def test_verify_holds_the_plan_against_a_registered_one_and_names_what_was_not_played(
    openfield: Any, run: Path
) -> None:
    record = json.loads(openfield("verify", run, "--json").out)["record"]
    assert openfield("verify", run, "--plan", record["plan"]).status == 0
    assert "other cells are in it" in openfield("verify", run, "--plan", "3f0a").err
    with Journal(run) as journal:
        journal.enter([Cell("late", make_trial())], {"late": None}, {})
    said = openfield("verify", run)
    assert said.status == 0
    assert f"Planned and not played yet: {Cell('late', make_trial()).id} (late)." in said.out
    assert len(json.loads(openfield("verify", run, "--json").out)["unplayed"]) == 1


def test_verify_replays(openfield: Any, run: Path) -> None:
    said = openfield("verify", run, "--replay")
    assert said.status == 0
    assert f"{run} is as it was written, and its worlds show the same turns.\n" in said.out
    assert f"names this code, which runs now: {MAZE}\n" in said.err


def test_verify_names_a_forged_threshold(openfield: Any, run: Path) -> None:
    with closing(sqlite3.connect(run)) as db, db:
        db.execute("UPDATE facts SET value = json_set(value, '$.threshold', 0.9) WHERE key = 'rules maze'")
    said = openfield("verify", run, "--replay")
    assert (said.status, "threshold is recorded as 0.9; the domain says 0.5." in said.err) == (2, True)


def test_verify_says_how_much_was_planned_played_retried_and_superseded(openfield: Any, run: Path) -> None:
    line = "Cells of maze.sqlite: 10 planned, 10 played; attempts: 0 retried, 0 superseded\n"
    assert line in openfield("verify", run).out
    with Run(run) as opened:
        one, two, *_ = opened.cells(with_episodes=False)
    with Journal(run) as record:
        record.begin(one.id)
        record.begin(two.id)
        record.add(AttemptEnd(two.id, 2, "world_error", "", 0.0))
        record.begin(two.id)
    line = "Cells of maze.sqlite: 10 planned, 8 played; attempts: 1 retried, 2 superseded\n"
    assert line in openfield("verify", run).out


def register(openfield: Any, run: str, *words: str) -> None:
    alone = ("-a", "compass", "--trials", "1", "--workers", "0")
    assert openfield("run", str(MAZE), *alone, "-o", run, *words).status == 0


def test_a_run_is_compared_with_what_was_registered(openfield: Any) -> None:
    register(openfield, "run.sqlite", "--register", "asked.json", "--question", "Why?")
    assert openfield("verify", "run.sqlite", "--plan", "asked.json").status == 0
    register(openfield, "other.sqlite")
    said = openfield("verify", "other.sqlite", "--plan", "asked.json")
    assert said.status != 0
    assert "other.sqlite was not registered before its first trial" in said.err


def test_a_registration_that_was_changed_in_the_run_is_a_fault(tmp_path: Path, openfield: Any) -> None:
    register(openfield, "run.sqlite", "--register", "asked.json", "--question", "Why?")
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as db:
        db.execute("UPDATE facts SET value = replace(value, 'Why?', 'How?') WHERE key = 'registration'")
        db.commit()
    assert "its registration was changed after it was signed" in openfield("verify", "run.sqlite").err
