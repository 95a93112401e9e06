"""Steps that are acknowledged before their chunk is full: together they are one row, and none is lost or doubled."""

from __future__ import annotations

import shutil
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from journal.test_writer import enter, episode
from openfield.errors import DamagedRun
from openfield.journal import steps as journal_steps
from openfield.journal.merge import merge_runs
from openfield.journal.reader import Run
from openfield.journal.recorder import Recorder
from openfield.journal.writer import Journal
from openfield.record import AttemptEnd, Entry
from support.stories import rows


class Table:
    """A journal with the recorders of several agents, whose entries are handed over together."""

    def __init__(self, path: Path, agents: int = 2, written: int = 0) -> None:
        self.path, self.record, self.given = path, Journal(path), list[Entry]()
        self.cells = [cell.id for cell in enter(self.record, agents)]
        for cell in self.cells:
            assert self.record.lease(cell)
            if not written:
                self.record.begin(cell)
        self.recorders = [Recorder(cell, 1, self._emit, written) for cell in self.cells]

    def _emit(self, *entries: Entry) -> None:
        self.given += entries

    def turn(self, *agents: int) -> None:
        """Lets agents take a turn each, and commits them together."""
        for agent in agents:
            self.recorders[agent].write(None, agent, None, None)
            self.recorders[agent].commit()
        self.hand_over()

    def end_episode(self, agent: int, number: int) -> None:
        self.recorders[agent].end_episode(episode(self.cells[agent], number), None)
        self.hand_over()

    def hand_over(self) -> None:
        self.record.add(*self.given).result(timeout=60)
        self.given.clear()

    def kill(self, copy: Path) -> Path:
        """Returns the file as a process leaves it that is killed now."""
        shutil.copy(self.path, copy)
        shutil.copy(f"{self.path}-wal", f"{copy}-wal")
        with closing(sqlite3.connect(copy)) as db, db:
            db.execute("UPDATE cells SET holder = replace(holder, ':', ':0') WHERE holder IS NOT NULL")
        return copy


def count_tails(path: Path) -> int:
    return rows(path, "SELECT count(*) FROM tails")[0][0]


def lengths(path: Path) -> list[int]:
    """How many steps each cell has, told in three ways that must agree."""
    with Run(path) as run:
        assert run.verify_steps() == []
        found = [cell.steps for cell in run.cells()]
        assert found == [len(list(run.steps(cell.id, cell.attempt))) for cell in run.cells()]
        assert found == [len(list(run.raw_steps(cell.id, 1, 2))) + min(cell.steps, 2) for cell in run.cells()]
        return found


def test_turns_committed_together_are_one_row_until_their_chunks_come(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_steps.Tails.sweep, "__defaults__", (1,))
    table = Table(path)
    table.turn(0, 1)  # what is recorded from here on is not known: these are chunks
    for _ in range(3):
        table.turn(0, 1)
    assert (count_tails(path), lengths(path)) == (3, [4, 4])
    table.end_episode(0, 0)
    assert count_tails(path) == 3  # the other agent needs them
    table.turn(0)
    assert lengths(path) == [5, 4]
    table.end_episode(1, 0)
    assert (count_tails(path), lengths(path)) == (1, [5, 4])
    with Run(path) as run:
        before = run.fingerprint()
    assert table.record.take(table.cells, lambda _, __: False)[table.cells[0]].status.steps == 5
    table.record.close()
    with Run(path) as run:
        assert run.fingerprint() == before
    assert (count_tails(path), lengths(path)) == (0, [5, 4])


def test_a_journal_goes_on_with_the_turns_of_a_killed_one_and_leaves_those_of_a_living_one(path: Path) -> None:
    table = Table(path)
    for _ in range(4):
        table.turn(0, 1)
    copy = table.kill(path.with_name("copy.sqlite"))
    assert lengths(copy) == [4, 4]
    with Run(copy) as run:
        before = run.fingerprint()
    Journal(copy).close()
    assert (count_tails(copy), lengths(copy)) == (0, [4, 4])
    with Run(copy) as run:
        assert run.fingerprint() == before
    later = Table(copy, written=4)
    later.turn(0)
    later.turn(0)
    later.record.close()
    assert lengths(copy) == [6, 4]
    with Journal(path) as rival:
        assert count_tails(path) == 3
        assert not rival.lease(table.cells[0])
    table.turn(0)
    assert lengths(path) == [5, 4]
    with Journal(path) as rival, closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE cells SET held_until = 0").connection.commit()
        found = rival.take(table.cells[:1], lambda _, __: True)[table.cells[0]]
        assert (found.leased, found.status.steps, lengths(path)) == (True, 5, [5, 4])
        table.turn(1)  # its own cell
        rival.begin(table.cells[0])
    with Run(path) as run:
        assert len(list(run.steps(table.cells[0], 1))) == 5
    table.record.close()
    assert rows(path, "SELECT sum(count) FROM chunks GROUP BY cell ORDER BY cell = ? DESC", table.cells[0]) == [
        (5,),
        (5,),
    ]


def test_turns_that_were_replaced_never_come_back(path: Path) -> None:
    table = Table(path)
    for _ in range(6):
        table.turn(0, 1)
    table.end_episode(0, 0)
    again = Recorder(table.cells[0], 1, table._emit, 6)
    again.rewind(3)  # as an agent that goes on from a saved state
    table.recorders[0] = again
    table.turn(0)
    assert (count_tails(path), lengths(path)) == (5, [4, 6])  # the other agent's rows hold turns 1 to 5 of this one
    table.turn(0)
    assert lengths(path) == [5, 6]
    table.given.append(AttemptEnd(table.cells[0], 1, "cancelled", "", 0.0))  # its process died
    table.hand_over()
    assert lengths(path) == [5, 6]
    table.record.close()
    assert (count_tails(path), lengths(path)) == (0, [5, 6])


def test_a_chunk_that_follows_a_tail_keeps_it(path: Path) -> None:
    table = Table(path)
    for _ in range(6):
        table.turn(0, 1)
    table.recorders = [
        Recorder(cell, 1, table._emit, written) for cell, written in zip(table.cells, (6, 4), strict=True)
    ]
    table.turn(0, 1)
    assert lengths(path) == [7, 5]
    table.turn(0, 1)
    table.record.close()
    assert (count_tails(path), lengths(path)) == (0, [8, 6])


def test_rows_that_slow_agents_keep_are_given_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_steps, "MAX_KEPT", 2_000)
    table = Table(path, 3)
    most = 0
    for number in range(60):
        table.turn(*range(1 if number % 7 else 0, 3))
        if number % 3 == 2:
            table.end_episode(1, number)
        most = max(most, count_tails(path))
    assert most < 30
    assert lengths(path) == [9, 60, 60]
    table.record.close()
    assert (count_tails(path), lengths(path)) == (0, [9, 60, 60])


def test_merging_takes_turns_that_are_in_no_chunk(path: Path) -> None:
    table = Table(path)
    for _ in range(4):
        table.turn(0, 1)
    first, second = table.kill(path.with_name("first.sqlite")), path.with_name("second.sqlite")
    table.turn(1)
    second = table.kill(second)
    table.record.close()
    merge_runs([first, second], merged := path.with_name("merged.sqlite"))
    assert (count_tails(merged), lengths(merged)) == (0, [4, 5])


def change(row: int, **fields: Any) -> Callable[[sqlite3.Connection], None]:
    """Changes values of the first entry of a row; its checksum fits."""

    def forge(db: sqlite3.Connection) -> None:
        key, data = db.execute("SELECT id, data FROM tails ORDER BY id LIMIT 1 OFFSET ?", (row,)).fetchone()
        entries = journal_steps._ENTRIES.decode(data)
        entries[0] = msgspec.structs.replace(entries[0], **fields)
        new = msgspec.msgpack.encode(entries)
        db.execute("UPDATE tails SET data = ?, crc = ? WHERE id = ?", (new, zlib.crc32(new), key))

    return forge


def put(data: Any, crc: int | None = None) -> Callable[[sqlite3.Connection], None]:
    checksum = zlib.crc32(data) if crc is None else crc
    return lambda db: db.execute("UPDATE tails SET data = ?, crc = ?", (data, checksum)) and None


def twice(db: sqlite3.Connection) -> None:
    db.execute("INSERT INTO tails SELECT id + 100, crc, data FROM tails ORDER BY id LIMIT 1")


def lose(db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM tails WHERE id = (SELECT min(id) FROM tails)")


def loosen(db: sqlite3.Connection) -> None:
    db.execute("DROP TABLE tails")
    db.execute("CREATE TABLE tails (id INTEGER PRIMARY KEY, crc, data)")
    db.execute("INSERT INTO tails VALUES (1, 'text', 'text')")


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        (put(b"nonsense", 1), "its checksum does not fit"),
        (put(b"nonsense"), "A row of early turns is damaged"),
        (put(b"\xdd\xff\xff\xff\xff"), "A row of early turns is damaged"),
        (put(b"\x91" * 100_000), "A row of early turns is damaged"),
        (change(0, first=-1), "A row of early turns is damaged"),
        (change(0, count=1 << 60), "A row of early turns is damaged"),
        (change(0, attempt=1 << 63), "A row of early turns is damaged"),
        (change(0, first=5), "are missing"),
        (change(1, count=4), "it holds 1 turns"),
        (change(0, data=b"nonsense"), "its checksum does not fit"),
        (change(0, data=b"nonsense", crc=zlib.crc32(b"nonsense")), "A chunk of the record is damaged"),
        (change(1, cell="unknown", first=0, after=b""), "Cell unknown, attempt 1 is not entered, but has tails."),
        (twice, "are recorded twice"),
        (lose, "are missing"),
        (loosen, "its checksum does not fit"),
        (lambda db: db.execute("DROP TABLE tails") and None, "no such table: tails"),
    ],
)
def test_damaged_and_hostile_rows_are_named(path: Path, forge: Any, said: str) -> None:
    table = Table(path)
    for _ in range(3):
        table.turn(0, 1)
    copy = table.kill(path.with_name("copy.sqlite"))
    table.record.close()
    with closing(sqlite3.connect(copy)) as db, db:
        forge(db)
    with Run(copy) as run:
        assert said in str(run.verify())
    if "unknown" in said:
        return
    with pytest.raises(DamagedRun), Journal(copy) as record:
        record.take(table.cells, lambda _, __: True)
