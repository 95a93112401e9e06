from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import socket
import sqlite3
import subprocess
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

import openfield as of
from conftest import Spawn
from openfield.cell import Cell
from openfield.errors import DamagedRun, DiskFull, JournalError, NotARun, OpenfieldError, RunBusy
from openfield.journal import leases
from openfield.journal import schema as database
from openfield.journal import writer as journal
from openfield.journal.leases import _birth
from openfield.journal.reader import Run
from openfield.journal.receipt import Receipt
from openfield.journal.recorder import Recorder
from openfield.journal.schema import APPLICATION_ID, SCHEMA_VERSION, SourceText
from openfield.journal.writer import Journal
from openfield.record import AgentState, AttemptEnd, Chunk, EpisodeEnd
from openfield.runner.plan import make_cells
from support.players import Learner
from support.stories import attempts, rows, story, wait_until
from support.worlds import tiny_trials


def enter(record: Journal, count: int = 1) -> list[Cell]:
    cells = make_cells(["ada"], tiny_trials(count))
    record.enter(cells, {"ada": None}, {"kind": "test"})
    return cells


def chunk(cell: str, first: int, count: int, attempt: int = 1) -> Chunk:
    kept: list[Any] = []
    recorder = Recorder(cell, attempt, lambda *entries: kept.extend(entries), first)
    for _ in range(count):
        recorder.write(None, 0, None, None)
    recorder.commit()
    return kept[0]


def episode(cell: str, number: int, **fields: Any) -> EpisodeEnd:
    given = {"phase": "test", "novel": False, "turns": 3, "performance": 0.5, "belief": None, "ended": "terminated"}
    return EpisodeEnd(**{"cell": cell, "attempt": 1, "number": number} | given | fields)


# the file


def test_the_file_says_what_it_is(path: Path) -> None:
    with Journal(path):
        assert rows(path, "PRAGMA journal_mode") == [("wal",)]
    assert list(path.parent.glob(f"{path.name}*")) == [path]  # one file again
    assert rows(path, "PRAGMA application_id") == [(APPLICATION_ID,)]
    assert APPLICATION_ID.to_bytes(4, "big") == b"ofld"
    assert rows(path, "PRAGMA user_version") == [(SCHEMA_VERSION,)]


def make_text(path: Path) -> None:
    path.write_text("performance,0.9\n" * 100)


def make_foreign(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE recipes (name TEXT)")
    db.execute("INSERT INTO recipes VALUES ('soup')")
    db.commit()
    db.close()


def make_future(path: Path) -> None:
    with Journal(path) as record:
        record.enter([], {}, {"openfield": "9.8"})
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")


def make_nameless(path: Path) -> None:
    """Make a file of an earlier format that says a version which is none."""
    with Journal(path) as record:
        record.enter([], {}, {"openfield": "\x1b[2J"})
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 1")


READ_ELSEWHERE = (
    f"this is openfield {of.__version__}, which reads format {SCHEMA_VERSION}. "
    "Read it with the openfield that wrote it, or run the experiment again."
)


@pytest.mark.parametrize("opened", [Journal, Run])
@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (make_text, "is not a run of openfield. Name a run file, such as runs/maze.sqlite."),
        (make_foreign, "is an SQLite file, but not a run of openfield."),
        (make_future, f"has format 99, written by openfield 9.8; {READ_ELSEWHERE}"),
        (make_nameless, f"has format 1, written by another openfield; {READ_ELSEWHERE}"),
    ],
)
def test_other_files_are_refused_with_a_sentence_and_left_alone(
    path: Path, opened: Any, make: Any, sentence: str
) -> None:
    make(path)
    before = path.read_bytes()
    with pytest.raises(NotARun) as refused:
        opened(path)
    assert str(refused.value) == f"{path} {sentence}"
    assert path.read_bytes() == before


@pytest.mark.parametrize("opened", [Journal, Run])
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW agents AS WITH RECURSIVE n (x) AS (SELECT 'a' UNION ALL SELECT x FROM n) "
        "SELECT x AS name, x AS source FROM n",
        "CREATE TABLE agents (name TEXT PRIMARY KEY, source TEXT AS (hex(zeroblob(400000000))))",
        "CREATE TABLE agents (name TEXT PRIMARY KEY, source TEXT CHECK (length(hex(zeroblob(400000000))) > 1))",
        "CREATE TRIGGER agents AFTER INSERT ON cells BEGIN DELETE FROM cells; END",
        "CREATE VIRTUAL TABLE agents USING fts5 (name, source)",
    ],
)
def test_a_file_that_computes_what_it_says_is_refused(path: Path, opened: Any, statement: str) -> None:
    """A reader of such a file might never come to its end."""
    Journal(path).close()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DROP TABLE agents")
        db.execute(statement)
    with pytest.raises(DamagedRun, match="'agents' in it computes something, and a run only holds values"):
        opened(path)


@pytest.mark.parametrize("size", [60, 100, 512, 4096, 10_000])
def test_a_file_cut_short_is_refused_with_a_sentence(path: Path, size: int) -> None:
    of.run([Learner], tiny_trials(2, padding=2000), path)
    with path.open("r+b") as file:
        file.truncate(size)

    def read() -> None:
        with Run(path) as run:
            for cell in run.cells():
                list(run.steps(cell.id, cell.attempt))

    def write() -> None:
        with Journal(path) as record:
            enter(record)

    for use in (read, write):
        with pytest.raises((DamagedRun, NotARun)) as refused:
            use()
        assert str(refused.value).startswith(str(path))
        assert "\n" not in str(refused.value)


def test_what_is_not_there_or_no_file_is_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="There is no run file"):
        Run(path)
    for place in (tmp_path, tmp_path / "blocked" / "run.sqlite"):
        (tmp_path / "blocked").write_text("a file where a folder should be")
        with pytest.raises(JournalError, match=r"cannot be (written|opened)"):
            Journal(place)


def test_a_file_that_was_refused_is_not_locked(path: Path) -> None:
    path.touch()
    with pytest.raises(JournalError) as refused:
        Run(path)
    with closing(sqlite3.connect(path, timeout=0)) as db:
        db.execute("BEGIN EXCLUSIVE")  # while what was raised still holds on to what it came from
    assert refused.value


def test_an_empty_file_and_one_left_by_a_crash_become_runs(path: Path) -> None:
    path.touch()
    Journal(path).close()
    path.unlink()
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode = WAL")
    db.close()
    assert path.stat().st_size
    Journal(path).close()
    with Run(path) as run:
        assert run.cells() == []


def test_without_write_ahead_log_the_run_works_and_warns(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's dot-file locking cannot share memory between processes, as on network file systems."""
    real = sqlite3.connect

    def connect(place: Any, **options: Any) -> sqlite3.Connection:
        words = str(place) if str(place).startswith("file:") else f"file:{place}?"
        return real(f"{words}&vfs=unix-dotfile", **{**options, "uri": True})

    monkeypatch.setattr(database.sqlite3, "connect", connect)
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="the write-ahead log does not work on this file system"):
            of.run([Learner], tiny_trials(), path)
        with Run(path) as run:
            assert [cell.outcome for cell in run.cells()] == ["done"]


# writing


def test_entries_are_written_and_read_back(path: Path) -> None:
    with Journal(path) as record:
        (cell,) = enter(record)
        assert record.begin(cell.id) == 1
        record.add(
            chunk(cell.id, 0, 4), AgentState(cell.id, 1, 4, b"young"), episode(cell.id, 0, belief=of.Belief(0.7))
        )
        record.add(chunk(cell.id, 4, 2), AgentState(cell.id, 1, 6, b"old"), episode(cell.id, 1))
        record.add(AttemptEnd(cell.id, 1, "done", "well done", 1.5))
    with Run(path) as run:
        (found,) = run.cells()
        assert (found.outcome, found.note, found.steps, found.seconds) == ("done", "well done", 6, 1.5)
        assert [(e.number, e.detected) for e in found.episodes] == [(0, True), (1, False)]
        assert run.state(cell.id, 1) == (6, b"old")
        assert len(list(run.steps(cell.id, 1))) == 6
        assert run.facts == {"kind": "test"}


def test_a_chunk_replaces_all_that_was_recorded_from_its_first_step_on(path: Path) -> None:
    with Journal(path) as record:
        (cell,) = enter(record)
        record.begin(cell.id)
        for first, count in ((0, 4), (4, 1), (5, 1), (4, 3)):
            record.add(chunk(cell.id, first, count))
    assert rows(path, "SELECT first, count FROM chunks") == [(0, 4), (4, 3)]
    with Run(path) as run:
        assert run.verify() == []


def test_the_steps_of_an_attempt_form_a_chain(path: Path) -> None:
    with Journal(path) as record:
        (cell,) = enter(record)
        record.begin(cell.id)
        for first, count in ((0, 4), (4, 1), (5, 1), (4, 3), (6, 2)):  # the last one cuts the one before it
            record.add(chunk(cell.id, first, count))
    before = b""
    for data, chain in rows(path, "SELECT data, chain FROM chunks ORDER BY first"):
        before = hashlib.sha256(before + hashlib.sha256(zlib.decompress(data)).digest()).digest()
        assert chain == before


def test_the_player_of_an_attempt_and_the_texts_of_files_are_kept(path: Path) -> None:
    text = SourceText(hashlib.sha256(b"pass").hexdigest(), "ada.py", "pass")
    with Journal(path) as record:
        (cell,) = enter(record)
        record.enter([], {}, {}, [text])
        record.enter([], {}, {}, [text])
        record.begin(cell.id, "f00d")
        record.begin(cell.id)
    with Run(path) as run:
        assert run.players() == {(cell.id, 1): "f00d"}
        assert run.sources() == [text]


def test_an_addition_is_on_disk_when_its_future_is_done(path: Path) -> None:
    record = Journal(path)
    (cell,) = enter(record)
    record.begin(cell.id)
    record.add(chunk(cell.id, 0, 2)).result(timeout=60)
    copy = path.with_name("copy.sqlite")
    shutil.copy(path, copy)
    shutil.copy(f"{path}-wal", f"{copy}-wal")
    record.close()
    assert rows(copy, "SELECT count FROM chunks") == [(2,)]


@pytest.fixture
def levels(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Of every commit: whether it waits for the disk, and whether the journal's thread makes it."""
    found, real = [], journal.commit

    def commit(db: sqlite3.Connection, work: Any) -> Any:
        waits = "waits" if db.execute("PRAGMA synchronous").fetchone() == (2,) else "goes on"
        found.append(f"{waits} {'there' if 'journal of' in threading.current_thread().name else 'here'}")
        return real(db, work)

    monkeypatch.setattr(journal, "commit", commit)
    return found


def test_turns_are_committed_at_once_and_the_disk_is_waited_for_at_the_end_of_an_episode(
    path: Path, levels: list[str]
) -> None:
    with Journal(path) as record:
        (cell,) = enter(record)
        record.begin(cell.id)
        levels.clear()
        for first in range(3):
            assert record.add(chunk(cell.id, first, 1)).done()
            assert rows(path, "SELECT count(*) FROM chunks") == [(first + 1,)]  # a process killed now has left it
        record.add(chunk(cell.id, 3, 1), episode(cell.id, 0)).result()
        assert levels == ["goes on here"] * 3 + ["waits there"]
        record.add(msgspec.structs.replace(chunk(cell.id, 4, 1), costly=True)).result()
        assert levels[4:] == ["waits there"]


def test_with_durable_turns_every_commit_waits_for_the_disk(path: Path, levels: list[str]) -> None:
    with Journal(path, "turn") as record:
        (cell,) = enter(record)
        record.begin(cell.id)
        for first in range(2):
            record.add(chunk(cell.id, first, 1)).result()
    assert set(levels) == {"waits there"}


def test_a_wait_for_the_disk_writes_something_if_turns_have_not_reached_it(path: Path) -> None:
    """A commit that writes nothing would not wait."""
    log = path.with_name(f"{path.name}-wal")
    with Journal(path) as record:
        (cell,) = enter(record)
        record.begin(cell.id)
        for turns in (0, 1):
            for first in range(turns):
                record.add(chunk(cell.id, first, 1)).result()
            before = log.stat().st_size
            record._ask(lambda _: None).result()
            assert (log.stat().st_size > before) is bool(turns)


def test_a_turn_waits_in_the_queue_while_another_process_writes(path: Path, levels: list[str]) -> None:
    with Journal(path) as record, closing(sqlite3.connect(path, isolation_level=None)) as other:
        (cell,) = enter(record)
        record.begin(cell.id)
        record.add(chunk(cell.id, 0, 1)).result()
        levels.clear()
        other.execute("BEGIN IMMEDIATE")
        held_up = [record.add(chunk(cell.id, first, 1)) for first in (1, 2)]
        assert not any(receipt.done() for receipt in held_up)
        other.execute("ROLLBACK")
        for receipt in held_up:
            receipt.result()
        assert levels[0] == "goes on here"
        assert set(levels[1:]) == {"goes on there"}
    with Run(path) as run:
        assert run.verify() == []
        assert run.cells()[0].steps == 3


def test_entering_again_changes_nothing(path: Path) -> None:
    with Journal(path) as record:
        (cell,) = enter(record)
        record.begin(cell.id)
        enter(record)
    assert attempts(path) == [(1, None, "")]


def test_a_new_attempt_supersedes_the_one_before_but_not_our_failures(path: Path) -> None:
    with Journal(path) as record:
        (cell,) = enter(record)
        for number, outcome in enumerate(["agent_error", "world_error", "cancelled"], 1):
            assert record.begin(cell.id) == number
            record.add(AttemptEnd(cell.id, number, outcome, "", 0.0))
        record.begin(cell.id)
    assert [outcome for _, outcome, _ in attempts(path)] == ["superseded", "world_error", "superseded", None]


def test_a_closed_journal_takes_nothing(path: Path) -> None:
    record = Journal(path)
    record.close()
    record.close()
    with pytest.raises(JournalError, match="is closed"):
        record.add()


def test_after_a_failure_nothing_more_is_written(path: Path) -> None:
    record = Journal(path)
    (cell,) = enter(record)
    record.begin(cell.id)
    bad = AttemptEnd(cell.id, 1, object(), "", 0.0)
    with pytest.raises(JournalError):
        record.add(chunk(cell.id, 0, 1), bad).result(timeout=60)
    with pytest.raises(JournalError):
        record.add(chunk(cell.id, 0, 1))
    record.close()
    assert rows(path, "SELECT * FROM chunks") == []


def test_whoever_loses_interest_does_not_keep_the_rest_from_being_written(path: Path) -> None:
    async def lose_interest(receipt: Receipt[None]) -> None:
        async def wait() -> None:
            await receipt

        waiting = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        waiting.cancel()

    with Journal(path) as record:
        (cell,) = enter(record)
        record.begin(cell.id)
        asyncio.run(lose_interest(record.add(chunk(cell.id, 0, 1))))
        record.add(chunk(cell.id, 1, 1)).result(60)
    with Run(path) as run:
        assert [found.steps for found in run.cells()] == [2]


def test_many_threads_may_add_at_once(path: Path) -> None:
    with Journal(path) as record:
        cells = enter(record, 8)

        def work(cell: Cell) -> None:
            record.begin(cell.id)
            for number in range(20):
                record.add(chunk(cell.id, number, 1), episode(cell.id, number))

        threads = [threading.Thread(target=work, args=(cell,)) for cell in cells]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert rows(path, "SELECT count(*) FROM episodes") == [(160,)]
    with Run(path) as run:
        assert [cell.steps for cell in run.cells(with_episodes=False)] == [20] * 8
        assert [step.took for cell in cells for step in run.raw_steps(cell.id, 1)] == [0] * 160


# readers and writers


def test_a_reader_at_work_does_not_block_the_writer_nor_see_what_comes_later(path: Path) -> None:
    with Journal(path) as record:
        (cell,) = enter(record)
        record.begin(cell.id)
        for number in range(400):
            record.add(chunk(cell.id, number, 1))
        record.flush()
        with Run(path) as run:
            steps = run.steps(cell.id, 1)
            next(steps)
            record.add(chunk(cell.id, 400, 1)).result(timeout=60)
            assert len(list(steps)) == 399
            assert len(list(run.steps(cell.id, 1))) == 401


def test_a_writer_in_the_middle_of_a_commit_does_not_block_readers(path: Path) -> None:
    with Journal(path) as record:
        enter(record)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("INSERT INTO facts VALUES ('half', 'done')")
    started = time.monotonic()
    with Run(path) as run:
        assert run.facts == {"kind": "test"}
    assert time.monotonic() - started < 5
    other.execute("ROLLBACK")
    other.close()


def test_reading_a_run_does_not_drop_the_locks_of_its_writer(path: Path, spawn: Spawn) -> None:
    """Another process that closes the file must not take it for unused and remove the log."""
    with Journal(path) as record:
        (cell,) = enter(record)
        record.begin(cell.id)
        with Run(path) as run:
            run.cells()
        with pytest.raises(NotARun):
            Run(__file__)
        code = f"import sqlite3; db = sqlite3.connect({str(path)!r}); db.execute('SELECT * FROM cells'); db.close()"
        assert spawn("-c", code).wait(60) == 0
        record.add(chunk(cell.id, 0, 2)).result(timeout=60)
        code = f"from support import stories; assert stories.rows({str(path)!r}, 'SELECT count FROM chunks') == [(2,)]"
        assert spawn("-c", code).wait(60) == 0


# leases


def test_two_journals_cannot_hold_the_same_cell(path: Path) -> None:
    with Journal(path) as one, Journal(path) as other:
        first, second = enter(one, 2)
        assert one.lease(first.id)
        assert one.lease(first.id)
        assert not other.lease(first.id)
        assert other.lease(second.id)
        one.begin(first.id)
        one.add(AttemptEnd(first.id, 1, "done", "", 0.0)).result(timeout=60)
        assert other.lease(first.id)


def test_a_closed_journal_gives_its_cells_back(path: Path) -> None:
    with Journal(path) as one:
        (cell,) = enter(one)
        one.lease(cell.id)
    assert rows(path, "SELECT holder FROM cells") == [(None,)]


def test_the_lease_of_a_dead_process_is_void_at_once(path: Path, spawn: Spawn) -> None:
    code = f"""
import os, signal
from openfield.journal.leases import _birth
from openfield.journal.writer import Journal
from journal.test_writer import enter
record = Journal({str(path)!r})
(cell,) = enter(record)
assert record.lease(cell.id)
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert spawn("-c", code).wait(60) == -9
    ((holder,),) = rows(path, "SELECT holder FROM cells")
    assert holder is not None
    with Journal(path) as record:
        (cell,) = enter(record)
        assert record.lease(cell.id)


@pytest.mark.parametrize(
    "holder",
    [
        "{host}:{pid}:{birth}:of-an-earlier-life",
        "{host}:{parent}:7:whose-number-was-used-again-after-an-earlier-life",
        "{host}:{parent}:{parents_birth}:alive",
        "elsewhere:1:7:alive",
    ],
)
def test_who_may_take_over_a_lease(path: Path, holder: str) -> None:
    """Our own number with another name is a process that lived before a restart; others may be alive."""
    births = {"birth": _birth(os.getpid()), "parents_birth": _birth(os.getppid())}
    name = holder.format(host=socket.gethostname(), pid=os.getpid(), parent=os.getppid(), **births)
    with Journal(path) as record:
        (cell,) = enter(record)
        for seconds, taken in ((30, "earlier" in holder), (-1, True)):
            db = sqlite3.connect(path)
            with db:
                db.execute("UPDATE cells SET holder = ?, held_until = ?", (name, time.time() + seconds))
            db.close()
            assert record.lease(cell.id) is taken


def test_a_dead_process_nobody_has_buried_is_dead(spawn: Spawn) -> None:
    process = spawn("-c", "import time; time.sleep(600)")
    assert _birth(process.pid)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert _birth(process.pid) == ""
    process.wait()
    assert _birth(process.pid) == ""


def test_leases_are_renewed_while_the_journal_is_open(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (leases, journal):
        monkeypatch.setattr(module, "LEASE_SECONDS", 1.0)

    def held_until() -> float:
        with closing(sqlite3.connect(path)) as db:
            (until,) = db.execute("SELECT held_until FROM cells WHERE holder IS NOT NULL").fetchone()
        return float(until)

    with Journal(path) as record:
        (cell,) = enter(record)
        assert record.lease(cell.id)
        first = held_until()
        wait_until(lambda: held_until() > first)


def test_who_slept_through_its_lease_cannot_write_any_more(path: Path) -> None:
    with Journal(path) as sleeper, Journal(path) as other:
        (cell,) = enter(sleeper)
        sleeper.lease(cell.id)
        sleeper.begin(cell.id)
        db = sqlite3.connect(path)
        with db:
            db.execute("UPDATE cells SET held_until = 0")
        db.close()
        assert other.lease(cell.id)
        with pytest.raises(RunBusy, match=f"Cell {cell.id} was taken over"):
            sleeper.add(chunk(cell.id, 0, 1)).result(timeout=60)
        other.add(chunk(cell.id, 0, 2)).result(timeout=60)
    assert rows(path, "SELECT count FROM chunks") == [(2,)]


# a full disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1.4 MB: room for one trial and its log, not for three."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1400k", "openfield-test", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting a small disk needs root")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_full_disk_stops_the_run_which_goes_on_when_there_is_room(small_disk: Path, path: Path, workers: int) -> None:
    trials = tiny_trials(3, padding=8_000)
    run = small_disk / "run.sqlite"
    of.run([Learner], trials[:1], run)
    with pytest.raises(DiskFull, match=f"No room left for {run}. Make some, then the same command goes on.") as full:
        of.run([Learner], trials, run, workers=workers)
    assert full.value.exit_status == 75
    finished = rows(run, "SELECT count(*) FROM episodes")[0][0]
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    of.run([Learner], trials, run, workers=workers)
    of.run([Learner], trials, path)
    assert story(run) == story(path)
    assert 8 <= finished < 24
    assert [number for number, _, _ in attempts(run)] == [1, 1, 1]


def test_a_file_that_may_not_grow_stops_the_run_too(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same without root: SQLite itself is told that the file is large enough."""
    real, limited = database.open_to_write, 60

    def open_small(place: Path) -> sqlite3.Connection:
        db = real(place)
        db.execute(f"PRAGMA max_page_count = {limited}")
        return db

    monkeypatch.setattr(journal, "open_to_write", open_small)
    trials = tiny_trials(3, padding=4_000)
    with pytest.raises(DiskFull):
        of.run([Learner], trials, path)
    limited = 1_000_000
    of.run([Learner], trials, path)
    whole = path.with_name("whole.sqlite")
    of.run([Learner], trials, whole)
    assert story(path) == story(whole)


def test_every_complaint_of_sqlite_is_an_error_of_ours(path: Path) -> None:
    complaints = {
        "database or disk is full": DiskFull,
        "file is not a database": NotARun,
        "database is locked": RunBusy,
    }
    complaints |= {"database disk image is malformed": DamagedRun, "no such table: chunks": DamagedRun}
    complaints |= {"attempt to write a readonly database": JournalError}
    for text, kind in complaints.items():
        with pytest.raises(OpenfieldError) as told, database.explaining(path):
            raise sqlite3.DatabaseError(text)
        assert type(told.value) is kind


def count_operations(record: Journal, cells: list[Cell]) -> int:
    """Return how many tens of operations of SQLite it takes to enter cells."""
    counted = [0]

    def count() -> int:
        counted[0] += 1
        return 0

    record._ask(lambda db: db.set_progress_handler(count, 10)).result()
    record.enter(cells, {"ada": None}, {})
    record._ask(lambda db: db.set_progress_handler(None, 0)).result()
    return counted[0]


def test_cells_are_entered_as_quickly_beside_many_that_were_played(path: Path) -> None:
    """A server opens sessions for as long as it runs."""
    trials = tiny_trials(3)

    def play(record: Journal, repeats: range) -> None:
        cells = [Cell("ada", trials[0], repeat) for repeat in repeats]
        record.enter(cells, {"ada": None}, {})
        for cell in cells:
            record.begin(cell.id)

    costs = []
    with Journal(path) as record:
        for number, repeats in enumerate((range(200), range(200, 1000))):
            play(record, repeats)
            enter(record)  # reads the new attempts, each of them once
            costs.append(count_operations(record, [Cell("ada", trials[1], number)]))
    assert costs[1] < 2 * costs[0]
