from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import openfield as of
from openfield.errors import InvalidInput, JournalError, OpenfieldError
from openfield.journal.merge import merge_runs
from openfield.journal.reader import Run
from openfield.result import Result
from support.players import Fickle, copycat
from support.stories import press_ctrl_c_after
from support.worlds import tiny_trials


def told(path: Path) -> dict[str, Any]:
    """All that a file says but times, by cell."""
    with Run(path) as run:
        return {
            cell.id: (cell.outcome, cell.episodes, [(s.reply, s.turn) for s in run.steps(cell.id, cell.attempt)])
            for cell in run.cells()
        }


def play(path: Path, trials: Iterable[of.Trial], agent: Any = copycat) -> Path:
    of.run([agent], list(trials), path)
    return path


def test_shares_make_the_whole(tmp_path: Path) -> None:
    trials = tiny_trials(4)
    whole = play(tmp_path / "whole.sqlite", trials)
    parts = [play(tmp_path / f"{number}.sqlite", trials[number::2]) for number in (0, 1)]
    counts = merge_runs(parts, joined := tmp_path / "joined.sqlite")
    assert counts == (2, 4, 0)
    assert told(joined) == told(whole)
    with Run(joined) as run:
        assert run.verify() == []
        facts = run.facts
    for part in parts:
        with Run(part) as run:
            assert facts[f"part {part.name}"] == run.fingerprint()
    assert len(Result([joined]).provenance) == 2
    assert Result([joined]).summary() == Result(parts).summary()
    assert Result([joined, *parts]).summary() == Result(parts).summary()


def test_parts_of_the_same_name_are_all_told(tmp_path: Path) -> None:
    trials = tiny_trials(4)
    parts = [play(tmp_path / str(number) / "run.sqlite", trials[number::4]) for number in range(4)]
    expected = set()
    for number, part in enumerate(parts):
        change(part, f"UPDATE facts SET value = '2026-01-0{number}' WHERE key = 'started'")
        with Run(part) as run:
            expected.add(run.fingerprint())
    merge_runs(parts, joined := tmp_path / "joined.sqlite")
    merge_runs([joined, parts[2]], again := tmp_path / "again.sqlite")
    for path in (joined, again):
        with Run(path) as run:
            facts = run.facts
        told = {value for key, value in facts.items() if key.startswith("part run.sqlite")}
        assert told == expected
        assert len([key for key in facts if key.startswith("started")]) == 4


def test_a_cell_in_several_files_is_kept_once(tmp_path: Path) -> None:
    trials = tiny_trials(3)
    first = play(tmp_path / "a.sqlite", trials[:2])
    second = play(tmp_path / "b.sqlite", trials[1:])  # plays the second again, in another time
    assert merge_runs([first, second], joined := tmp_path / "joined.sqlite") == (2, 3, 1)
    assert told(joined) == told(first) | told(second)
    assert len(Result([first, first, second]).cells) == 3


@pytest.mark.parametrize("order", [1, -1])
def test_what_went_on_counts(tmp_path: Path, order: int) -> None:
    trials = tiny_trials(1)
    with pytest.raises(of.errors.Cancelled):
        of.run([copycat], trials, tmp_path / "a.sqlite", watch=press_ctrl_c_after(2))
    shutil.copy(tmp_path / "a.sqlite", tmp_path / "b.sqlite")
    play(tmp_path / "b.sqlite", trials)
    parts = [tmp_path / "a.sqlite", tmp_path / "b.sqlite"][::order]
    merge_runs(parts, joined := tmp_path / "joined.sqlite")
    assert told(joined) == told(tmp_path / "b.sqlite")
    assert [cell.outcome for cell in Result(parts).cells] == ["done"]


def test_records_that_differ_are_refused_by_name(tmp_path: Path) -> None:
    trials = tiny_trials(1)
    first = play(tmp_path / "a.sqlite", trials, Fickle)
    second = play(tmp_path / "b.sqlite", trials, Fickle)
    with Run(first) as run:
        (cell,) = run.cells()
    other = play(tmp_path / "c.sqlite", tiny_trials(3)[1:])
    with pytest.raises(InvalidInput, match=f"^{second} and {first} contradict each other on cell {cell.id}"):
        merge_runs([other, first, second], tmp_path / "joined.sqlite")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.sqlite", "b.sqlite", "c.sqlite"]
    with pytest.raises(InvalidInput, match=f"contradict each other on cell {cell.id} of 'Fickle'"):
        Result([first, second])


def test_an_outcome_that_differs_is_a_conflict_too(tmp_path: Path) -> None:
    first = play(tmp_path / "a.sqlite", tiny_trials(1))
    shutil.copy(first, second := tmp_path / "b.sqlite")
    with closing(sqlite3.connect(second)) as db, db:
        db.execute("UPDATE attempts SET outcome = 'agent_error'")
    with pytest.raises(InvalidInput, match="differently"):
        merge_runs([first, second], tmp_path / "joined.sqlite")


def change(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement)
    return path


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE chunks SET chain = x'00'", "do not fit their chain"),
        ("UPDATE chunks SET data = x'00'", "damaged"),
        ("UPDATE trials SET content = content || ' '", "contradicts .*a.sqlite: trial \\w+ is another one"),
        ("DROP TABLE players", "damaged"),
    ],
)
def test_damaged_parts_are_refused(tmp_path: Path, statement: str, words: str) -> None:
    first = play(tmp_path / "a.sqlite", tiny_trials(1))
    shutil.copy(first, second := tmp_path / "b.sqlite")
    with pytest.raises(OpenfieldError, match=words):
        merge_runs([first, change(second, statement)], tmp_path / "joined.sqlite")
    assert not (tmp_path / "joined.sqlite").exists()


def test_what_cannot_be_merged_is_said(tmp_path: Path) -> None:
    first, target = play(tmp_path / "a.sqlite", tiny_trials(1)), tmp_path / "joined.sqlite"
    old = change(play(tmp_path / "old.sqlite", tiny_trials(1)), "PRAGMA user_version = 1")
    for parts, words in (
        ([], "nothing to merge"),
        ([first, first], "given twice"),
        ([old], "has format 1, written by openfield"),
        ([tmp_path / "none.sqlite"], "There is no run file"),
    ):
        with pytest.raises((InvalidInput, JournalError), match=words):
            merge_runs(parts, target)
    with pytest.raises(InvalidInput, match="exists"):
        merge_runs([first], first)
    isolated = change(play(tmp_path / "i.sqlite", tiny_trials(2)), "INSERT INTO facts VALUES ('isolation', '{}')")
    with pytest.raises(InvalidInput, match="have different values of 'isolation'"):
        merge_runs([first, isolated], target)


def test_the_earlier_attempts_of_a_cell_come_along(tmp_path: Path) -> None:
    first = play(tmp_path / "a.sqlite", tiny_trials(1, broken_at=3))
    second = play(tmp_path / "b.sqlite", tiny_trials(1))
    merge_runs([first, second], joined := tmp_path / "joined.sqlite")
    with Run(joined) as run:
        assert run.counts() == (2, 2, 3, 0, 0)
        assert run.verify() == []


MERGE = """
import resource, sys
from openfield.journal.merge import merge_runs
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
merge_runs([sys.argv[1]], sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_saved_states_are_copied_in_parts(tmp_path: Path) -> None:
    """Whatever an agent saved, merging its run needs no memory for it."""
    path = play(tmp_path / "a.sqlite", tiny_trials(2))
    change(path, f"INSERT INTO states SELECT cell, number, rowid, randomblob({100 << 20} * (rowid = 1)) FROM attempts")
    joined = tmp_path / "joined.sqlite"
    grown = subprocess.check_output([sys.executable, "-c", MERGE, str(path), str(joined)])
    assert int(grown) < 48_000  # kB; whole values took 600,000
    with Run(path) as old, Run(joined) as new:
        states = [[run.state(cell.id, 1) for cell in run.cells()] for run in (old, new)]
    assert states[0] == states[1]
    assert [len(state[1]) for state in states[0] if state] == [100 << 20, 1]
