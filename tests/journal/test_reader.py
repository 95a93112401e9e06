from __future__ import annotations

import itertools
import os
import re
import shutil
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest

import openfield as of
from openfield.errors import DamagedRun, UnknownName
from openfield.journal import reader, schema, steps
from openfield.journal.fingerprint import TABLES, Fingerprint
from openfield.journal.reader import Run
from openfield.journal.writer import Journal
from openfield.result import Result
from openfield.runner.plan import make_cells
from support.players import Learner, copycat
from support.stories import rows, story
from support.worlds import TINY, tiny_trials


@pytest.fixture
def run_file(path: Path) -> Path:
    of.run([Learner, copycat], tiny_trials(2, padding=3_000), path)
    return path


def change(path: Path, statement: str, *values: object) -> None:
    db = sqlite3.connect(path)
    with db:
        assert db.execute(statement, values).rowcount == 1
    db.close()


def test_cells_come_with_trials_outcomes_and_episodes(run_file: Path) -> None:
    with Run(run_file) as run:
        cells = run.cells()
    assert [(cell.agent, cell.trial) for cell in cells] == [
        (agent, trial) for trial in tiny_trials(2, padding=3_000) for agent in ("Learner", "copycat")
    ]
    for cell in cells:
        assert (cell.outcome, cell.attempt, cell.repeat, cell.steps) == ("done", 1, 0, 57)
        assert [(e.number, e.phase, e.novel) for e in cell.episodes] == [
            (n, "training" if n < 2 else "test", n >= 5) for n in range(8)
        ]
        assert all(e.turns == 7 for e in cell.episodes)
    assert [e.performance for e in cells[1].episodes] == [1.0] * 5 + [0.0] * 3


def test_steps_hold_what_was_shown_answered_and_true(run_file: Path) -> None:
    with Run(run_file) as run:
        cell = run.cells()[1]
        steps = list(run.steps(cell.id, 1))
    assert (steps[0].reply, steps[-1].turn) == (None, None)
    for before, after in itertools.pairwise(steps):
        if before.turn is not None and before.turn.last is None:
            assert after.reply == of.Reply(before.turn.observation["cue"])
    assert {step.truth.novel for step in steps if step.truth} == {False, True}
    assert all(len(step.turn.observation["noise"]) == 3_000 for step in steps[:-1] if step.turn)


def test_steps_are_read_from_any_number_on(run_file: Path) -> None:
    """The file has several chunks, and each step is found in its own."""
    with Run(run_file) as run:
        cell = run.cells()[1]
        whole = list(run.raw_steps(cell.id, 1))
        for first in range(len(whole) + 2):
            assert list(run.raw_steps(cell.id, 1, first)) == whole[first:]
        (last,) = run.steps(cell.id, 1, len(whole) - 1)
    assert last.reply == whole[-1].reply


def test_a_cell_is_found_by_how_its_id_begins(run_file: Path) -> None:
    with Run(run_file) as run:
        first, *_ = run.cells()
        assert run.cell(first.id[:8]).id == first.id
        with pytest.raises(UnknownName, match="Unknown cell 'zzz'"):
            run.cell("zzz")
        with pytest.raises(UnknownName, match="Unknown cell ''"):
            run.cell("")


def test_verify_names_the_damaged_chunk(run_file: Path) -> None:
    with Run(run_file) as run:
        assert run.verify() == []
    cell, first, count, data = rows(run_file, "SELECT cell, first, count, data FROM chunks ORDER BY rowid DESC")[0]
    damaged = bytearray(data)
    damaged[len(data) // 2] ^= 4
    change(run_file, "UPDATE chunks SET data = ? WHERE cell = ? AND first = ?", bytes(damaged), cell, first)
    with Run(run_file) as run:
        (fault,) = run.verify()
        assert f"cell {cell}, attempt 1, turns {first} to {first + count - 1}" in fault
        with pytest.raises(DamagedRun, match=f"cell {cell}"):
            list(run.steps(cell, 1))


def test_verify_finds_a_flipped_byte_in_the_file_itself(run_file: Path) -> None:
    (data,) = rows(run_file, "SELECT data FROM chunks")[3]
    content = bytearray(run_file.read_bytes())
    content[content.index(data[100:140]) + 20] ^= 1
    run_file.write_bytes(content)
    with Run(run_file) as run:
        (fault,) = run.verify()
    assert "A chunk of the record is damaged (cell " in fault


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("facts", "value", "x"),
        ("agents", "source", "x"),
        ("trials", "content", "x"),
        ("attempts", "note", "x"),
        ("episodes", "ended", "x"),
        ("episodes", "detail", b"x"),
        ("chunks", "data", b"x"),
    ],
)
def test_a_value_that_openfield_never_writes_is_refused_before_it_is_read(
    run_file: Path, monkeypatch: pytest.MonkeyPatch, table: str, column: str, value: str | bytes
) -> None:
    for name in ("MAX_ROW", "MAX_STEPS_ROW"):
        for module in (schema, steps, reader):
            monkeypatch.setattr(module, name, 100_000, raising=False)
    change(run_file, f"UPDATE {table} SET {column} = ? WHERE rowid = (SELECT min(rowid) FROM {table})", value * 150_000)
    with Run(run_file) as run:
        assert run.verify() == [f"{run_file} is damaged: a value in it is larger than any that openfield writes."]


def test_one_chunk_that_is_too_large_ends_the_reading(run_file: Path) -> None:
    data = zlib.compress(bytes(2 << 20))
    with closing(sqlite3.connect(run_file)) as db, db:
        db.execute("UPDATE chunks SET data = ?, crc = ?", (data, zlib.crc32(data)))
    with Run(run_file) as run:
        (fault,) = run.verify()
    assert re.fullmatch(r"A chunk of the record is too large \(cell .*\): its 2 kB hold more than .* kB\.", fault)


def test_a_text_that_is_no_trial_is_damage(run_file: Path) -> None:
    for text in ("\0", "[" * 100_000, "{}", f'"{"x" * (5 << 20)}"'):
        change(run_file, "UPDATE trials SET content = ? WHERE rowid = (SELECT min(rowid) FROM trials)", text)
        with Run(run_file) as run:
            (fault,) = run.verify()
        assert "cannot be read" in fault


def test_a_detail_of_too_many_values_is_damage(run_file: Path) -> None:
    detail = b"\xdd" + (600_000).to_bytes(4, "big") + b"\x90" * 600_000
    change(run_file, "UPDATE episodes SET detail = ? WHERE rowid = (SELECT min(rowid) FROM episodes)", detail)
    with Run(run_file) as run, pytest.raises(DamagedRun, match=r"episode 0.*more than 4,000,000 values"):
        run.cells()


@pytest.mark.parametrize("size", [0, 200, 300, 70_000, 3 << 20])
def test_a_saved_state_counts_in_the_fingerprint_as_a_whole(run_file: Path, size: int) -> None:
    cell = rows(run_file, "SELECT id FROM cells")[0][0]
    state = bytes(range(256)) * (size // 256) + bytes(size % 256)
    with closing(sqlite3.connect(run_file)) as db, db:
        db.execute("INSERT OR REPLACE INTO states VALUES (?, 1, 7, ?)", (cell, state))
    whole, parts = Fingerprint(), Fingerprint()
    whole.add("states", [(cell, 1, 7, state)])
    with Run(run_file) as run:
        run._add_states(parts, f"{TABLES['states'].partition(' ORDER')[0]} WHERE cell = '{cell}'")
    assert str(parts) == str(whole)


def test_verify_finds_a_missing_chunk(run_file: Path) -> None:
    cell, first = rows(run_file, "SELECT cell, first FROM chunks WHERE first > 0")[0]
    change(run_file, "DELETE FROM chunks WHERE cell = ? AND first = 0", cell)
    with Run(run_file) as run:
        (fault,) = run.verify()
    assert fault == f"Cell {cell}, attempt 1: turns before {first} are missing."


def delete_cell(path: Path, cell: str, tables: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        for table in tables.split():
            db.execute(f"DELETE FROM {table} WHERE {'id' if table == 'cells' else 'cell'} = ?", (cell,))
        db.execute("DELETE FROM trials WHERE id NOT IN (SELECT trial FROM cells)")


def test_verify_names_a_cell_whose_rows_were_deleted(run_file: Path) -> None:
    cell = rows(run_file, "SELECT id FROM cells")[0][0]
    delete_cell(run_file, cell, "cells attempts episodes chunks states players verdicts")
    with Run(run_file) as run:
        assert f"Cell {cell} was planned, but its rows are missing." in run.verify()


def test_verify_names_a_cell_whose_play_was_deleted(run_file: Path) -> None:
    cell = rows(run_file, "SELECT id FROM cells")[0][0]
    delete_cell(run_file, cell, "attempts episodes chunks states players verdicts")
    with Run(run_file) as run:
        (fault,) = run.verify()
    assert fault.endswith(f"are recorded. Cells without one: {cell}.")


def test_verify_names_a_cell_that_was_slipped_in(run_file: Path) -> None:
    change(run_file, "DELETE FROM facts WHERE key LIKE ?", "plan %")
    with Run(run_file) as run:
        assert any(fault.endswith("is recorded, but in no plan.") for fault in run.verify())


def test_verify_lists_what_sqlite_cannot_read(run_file: Path) -> None:
    content = bytearray(run_file.read_bytes())
    for page in range(8, len(content) // 4096, 3):
        content[page * 4096 : page * 4096 + 64] = os.urandom(64)
    run_file.write_bytes(content)
    with Run(run_file) as run:
        assert run.verify()


def test_a_trial_that_cannot_be_read_is_named(run_file: Path) -> None:
    key = tiny_trials(1, padding=3_000)[0].id
    change(run_file, "UPDATE trials SET content = '{' WHERE id = ?", key)
    with Run(run_file) as run, pytest.raises(DamagedRun, match=f"trial {key} cannot be read"):
        run.cells()


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE episodes SET belief = x'ff'", r"episode 0\): Expected `object`, got `int`"),
        ("UPDATE episodes SET detail = x'c1'", r"episode 0\): MessagePack data is malformed"),
        ("UPDATE episodes SET phase = 'exam'", r"episode 0\): 'exam'"),
        ("DELETE FROM trials", "the trial [0-9a-f]{12} of cell [0-9a-f]{12} is missing"),
        ("DELETE FROM agents", "its agent 'Learner' is not entered"),
        (
            "UPDATE episodes SET performance = 0.123 WHERE number = 1",
            r"episode 1: performance is recorded as 0\.123; its",
        ),
        (
            "UPDATE episodes SET turns = turns + 1 WHERE number = 0",
            "episode 0: turns is recorded as 8; its turns say 7",
        ),
        ("DELETE FROM episodes WHERE number = 0", "episode 0 is missing, although its turns are recorded"),
    ],
)
def test_verify_finds_what_turns_do_not_bear_out(run_file: Path, statement: str, words: str) -> None:
    db = sqlite3.connect(run_file)
    with db:
        db.execute(statement)
    db.close()
    with Run(run_file) as run:
        assert any(re.search(words, fault) for fault in run.verify()), run.verify()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE facts SET key = NULL WHERE rowid = 1",
        "UPDATE agents SET name = 7 WHERE rowid = 1",
        "UPDATE trials SET content = 5 WHERE rowid = 1",
        "UPDATE cells SET repeat = x'00' WHERE rowid = 1",
        "UPDATE attempts SET note = 1.5 WHERE rowid = 1",
        "UPDATE episodes SET turns = 'few' WHERE rowid = 1",
        "UPDATE chunks SET count = 'some' WHERE rowid = 1",
        "UPDATE chunks SET first = NULL WHERE rowid = 1",
    ],
)
def test_values_of_another_kind_than_was_written_are_damage(run_file: Path, statement: str) -> None:
    db = sqlite3.connect(run_file)
    db.execute("PRAGMA writable_schema = ON")
    # a damaged file is not held to its rules, SQLite is
    db.execute("UPDATE sqlite_master SET sql = replace(replace(sql, 'STRICT', ''), 'INTEGER', 'BLOB') WHERE sql != ''")
    db.execute("UPDATE sqlite_master SET sql = replace(replace(sql, 'NOT NULL', ''), 'TEXT', 'BLOB') WHERE sql != ''")
    db.commit()
    db.close()
    change(run_file, statement)
    with Run(run_file) as run, pytest.raises(DamagedRun, match="is damaged: Expected"):
        list(itertools.chain(run.facts, run.agents, run.cells(), run._all_chunks()))
    with Run(run_file) as run:
        assert run.verify()


def test_complaints_that_are_no_text_are_damage(run_file: Path) -> None:
    db = sqlite3.connect(run_file)
    db.execute("PRAGMA writable_schema = ON")
    db.execute("UPDATE sqlite_master SET sql = CAST(x'435245415445209e' AS TEXT) WHERE name = 'facts'")
    db.commit()
    db.close()
    with pytest.raises(DamagedRun, match="is damaged"), Run(run_file) as run:
        run.cells()


def test_what_a_killed_process_had_half_written_is_taken_back(run_file: Path, tmp_path: Path) -> None:
    """Where there is no write-ahead log, or not any more: a reader may not do that, and `resume` began with reading."""
    killed = tmp_path / "killed.sqlite"
    db = sqlite3.connect(run_file, isolation_level=None)
    db.execute("PRAGMA journal_mode = DELETE")
    db.execute("PRAGMA cache_size = 1")
    db.execute("BEGIN IMMEDIATE")
    db.execute("UPDATE chunks SET data = zeroblob(200000)")
    for end in ("", "-journal"):
        shutil.copy(f"{run_file}{end}", f"{killed}{end}")  # what is on disk when it is killed here
    db.execute("ROLLBACK")
    db.close()
    with Run(killed) as run:
        assert run.verify() == []
    assert story(killed) == story(run_file)


def test_a_trial_that_is_not_what_it_was_is_damage(run_file: Path) -> None:
    change(run_file, """UPDATE trials SET content = replace(content, '"seed":', '"seed":1') WHERE rowid = 1""")
    with Run(run_file) as run:
        (fault,) = run.verify()
    assert re.fullmatch("Trial [0-9a-f]{12} has changed.", fault)
    with pytest.raises(DamagedRun, match="has changed"):
        of.resume(run_file)


def test_a_run_is_read_without_its_domain(run_file: Path) -> None:
    expected = Result([run_file])
    change(run_file, "UPDATE facts SET value = 'gone.module:TINY' WHERE key = 'domain tiny'")
    with Run(run_file) as run:
        assert len(run.cells()) == 4
    found = Result([run_file])
    assert found.cells == expected.cells
    assert (found.domains["tiny"].title, found.domains["tiny"].metrics) == (TINY.title, TINY.metrics)
    assert found.summary() == expected.summary()
    change(run_file, "DELETE FROM facts WHERE key = 'rules tiny'")
    with pytest.warns(UserWarning, match=r"beliefs of 0\.5 and more count as detections: Unknown domain 'tiny'"):
        cells = Result([run_file]).cells
    assert any(episode.detected for episode in cells[0].episodes)


def test_a_finished_run_in_a_read_only_folder_is_read(run_file: Path) -> None:
    real = os.access
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "access", lambda place, mode: Path(place) != run_file.parent and real(place, mode))
        with Run(run_file) as run:
            assert len(run.cells()) == 4


def test_cells_that_were_entered_when_their_agent_had_begun_are_later_ones(tmp_path: Path) -> None:
    first, more = tiny_trials(4)[:2], tiny_trials(4)[2:]
    with Journal(tmp_path / "run.sqlite") as record:
        record.enter(make_cells(["ada"], first), {"ada": None}, {})
        record.enter(make_cells(["ada"], more[:1]), {"ada": None}, {})
        record.begin(make_cells(["ada"], first)[0].id)
        record.enter(make_cells(["ada", "bob"], [*first, *more]), {"ada": None, "bob": None}, {})
    with Run(tmp_path / "run.sqlite") as run:
        found = {(cell.agent, cell.trial.id): cell.later for cell in run.cells()}
        assert not any(key.startswith("later") for key in run.facts)
        assert run.verify() == []
    late = make_cells(["ada"], more)[-1]
    assert {key for key, later in found.items() if later} == {("ada", more[1].id)}
    assert found["ada", more[1].id] == late.id
