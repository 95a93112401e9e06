"""A journal among others: what is refused when another one went on with a cell, and who is told when it closes."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing, suppress
from pathlib import Path

import pytest

from journal.test_writer import chunk, enter
from openfield.errors import JournalError, RunBusy
from openfield.journal.receipt import Receipt
from openfield.journal.writer import Journal
from openfield.record import AttemptEnd
from support.stories import rows


def expire(path: Path) -> None:
    """Ends all leases, as time does while a machine sleeps."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE cells SET held_until = 0")


def test_who_slept_through_its_lease_cannot_change_what_another_has_ended(path: Path) -> None:
    with Journal(path) as sleeper, Journal(path) as other:
        (cell,) = enter(sleeper)
        sleeper.lease(cell.id)
        sleeper.begin(cell.id)
        expire(path)
        assert other.lease(cell.id)
        other.add(chunk(cell.id, 0, 3), AttemptEnd(cell.id, 1, "done", "", 1.0)).result(timeout=60)
        with pytest.raises(RunBusy, match=f"Cell {cell.id} was taken over"):
            sleeper.add(chunk(cell.id, 1, 1), AttemptEnd(cell.id, 1, "cancelled", "", 1.0)).result(timeout=60)
    assert rows(path, "SELECT first, count FROM chunks") == [(0, 3)]
    assert rows(path, "SELECT outcome FROM attempts") == [("done",)]


def test_a_cell_may_be_taken_again_after_it_was_ended(path: Path) -> None:
    with Journal(path) as record:
        (cell,) = enter(record)
        for number in (1, 2):
            assert record.lease(cell.id)
            assert record.begin(cell.id) == number
            record.add(chunk(cell.id, 0, 1, number), AttemptEnd(cell.id, number, "done", "", 1.0)).result(timeout=60)
        record.add(AttemptEnd(cell.id, 2, "cancelled", "", 1.0)).result(timeout=60)  # it was ours, and is nobody's now
    assert rows(path, "SELECT outcome FROM attempts") == [("superseded",), ("cancelled",)]


def test_whoever_comes_while_a_journal_is_closed_is_told(tmp_path: Path) -> None:
    for number in range(20):
        record = Journal(tmp_path / f"{number}.sqlite")
        given: list[Receipt[None]] = []
        coming = threading.Event()

        def come(record: Journal = record, given: list[Receipt[None]] = given, here: threading.Event = coming) -> None:
            with suppress(JournalError):
                while True:
                    given.append(record.add())
                    here.set()

        comer = threading.Thread(target=come)
        comer.start()
        coming.wait()
        record.close()
        comer.join()
        assert all(receipt.done() for receipt in given)


def test_a_failed_journal_does_not_keep_what_its_failure_went_through(path: Path) -> None:
    record = Journal(path)
    record.close()
    depths = set()
    for _ in range(3):
        with pytest.raises(JournalError) as refused:
            record.add()
        depths.add(len(refused.traceback))
    assert len(depths) == 1
