"""The file behind a run: its tables and queries, how it is opened, and what SQLite's complaints mean to its owner.

`writer` writes it, `reader` reads it. Only SQLite ever opens the file: closing it otherwise would drop the locks this
process holds, and another one could take away the log it writes.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import sqlite3
import stat
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from openfield import __version__
from openfield.errors import DamagedRun, DiskFull, JournalError, NotARun, RunBusy
from openfield.files.near import suggest_run

T = TypeVar("T")
APPLICATION_ID = 0x6F66_6C64  # "ofld"
SQLITE, SQLITE_LOG = b"SQLite format 3\0", b"\x37\x7f\x06"
"""How files of SQLite and their write-ahead logs begin."""
RUN_MARK = re.compile(re.escape(SQLITE) + b".{52}" + re.escape(APPLICATION_ID.to_bytes(4, "big")), re.DOTALL)
"""The first page of a run file up to the number that openfield marks its files with."""
MARK_END, MAX_LOG = 72, 1 << 20
"""Bytes of a file, and of a log, in which the mark is."""
MIN_PAGE = 512
"""Bytes of the smallest page that SQLite writes."""
RUN_LOGS = ("-wal", "-shm", "-journal", ".lock")
"""What follows the name of a run file in the names of files that belong to it."""
MAX_ROW, MAX_STEPS_ROW, MAX_STATE_ROW = 32 << 20, 101 << 20, 513 << 20
"""Bytes of a row, of one with steps or the detail of an episode, and of one with the saved state of an agent."""
SCHEMA_VERSION = 3
"""The number of the format, which is described in docs/record.md. It stays while fields are only added."""
STRENGTHS = """strengths (
         cell TEXT NOT NULL, attempt INTEGER NOT NULL, number INTEGER NOT NULL, strength REAL NOT NULL,
         change TEXT NOT NULL, PRIMARY KEY (cell, attempt, number))"""
"""The table that came later: a file without it holds no changes that come gradually or several times."""
SCHEMA = (
    "CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE agents (name TEXT PRIMARY KEY, source TEXT)",
    "CREATE TABLE trials (id TEXT PRIMARY KEY, content TEXT NOT NULL)",
    """CREATE TABLE cells (
         id TEXT PRIMARY KEY, agent TEXT NOT NULL, trial TEXT NOT NULL REFERENCES trials, repeat INTEGER NOT NULL,
         holder TEXT, held_until REAL)""",
    """CREATE TABLE attempts (
         cell TEXT NOT NULL REFERENCES cells, number INTEGER NOT NULL, outcome TEXT, note TEXT NOT NULL DEFAULT '',
         seconds REAL NOT NULL DEFAULT 0, PRIMARY KEY (cell, number))""",
    """CREATE TABLE episodes (
         cell TEXT NOT NULL, attempt INTEGER NOT NULL, number INTEGER NOT NULL, phase TEXT NOT NULL,
         novel INTEGER NOT NULL, turns INTEGER NOT NULL, performance REAL, belief BLOB, ended TEXT NOT NULL,
         detail BLOB,
         PRIMARY KEY (cell, attempt, number))""",
    """CREATE TABLE chunks (
         cell TEXT NOT NULL, attempt INTEGER NOT NULL, first INTEGER NOT NULL, count INTEGER NOT NULL,
         crc INTEGER NOT NULL, data BLOB NOT NULL, chain BLOB NOT NULL, PRIMARY KEY (cell, attempt, first))""",
    """CREATE TABLE states (
         cell TEXT NOT NULL, attempt INTEGER NOT NULL, step INTEGER NOT NULL, data BLOB NOT NULL,
         PRIMARY KEY (cell, attempt))""",
    """CREATE TABLE players (
         cell TEXT NOT NULL, attempt INTEGER NOT NULL, fingerprint TEXT NOT NULL, PRIMARY KEY (cell, attempt))""",
    """CREATE TABLE verdicts (
         cell TEXT NOT NULL, attempt INTEGER NOT NULL, number INTEGER NOT NULL, detected INTEGER NOT NULL,
         PRIMARY KEY (cell, attempt, number))""",
    "CREATE TABLE sources (digest TEXT PRIMARY KEY, name TEXT NOT NULL, text TEXT NOT NULL)",
    f"CREATE TABLE {STRENGTHS}",
    "CREATE TABLE tails (id INTEGER PRIMARY KEY, crc INTEGER NOT NULL, data BLOB NOT NULL)",
)
PLAN_FACT, BEGUN_FACT = "plan ", "attempts"
"""How the keys of facts begin that list the cells entered together, and the fact that counts the attempts begun.

They say nothing that the other tables do not, so that rows deleted from those are missed.
"""
LATER_FACT = "later "
"""How the keys of facts begin that list the cells of agents which had begun to play before these were entered."""
DROPPED_FACT = "dropped "
"""How the keys of facts begin that list the planned cells which are not played, because the run stopped by itself."""
LOOSE_FACT = "loose "
"""How the key of a fact begins that names a cell whose scores may have been had for nothing, and says why."""
RULE_FACT = "stopping rule"
"""The fact of a run file that says by which rule the run stops. It is written before the first trial."""
COUNT_BEGUN = """
    INSERT INTO facts VALUES (?, '1') ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1
"""
WRITTEN_BY = "SELECT value FROM facts WHERE key = 'openfield'"

TRIALS = "SELECT id, content FROM trials ORDER BY rowid"
ENTERED = "SELECT trial, agent FROM cells GROUP BY trial, agent ORDER BY min(rowid)"
TRIAL = "SELECT id, content FROM trials WHERE id = (SELECT trial FROM cells WHERE id = ?)"
STRENGTHS_OF = "SELECT cell, attempt, number, strength, change FROM strengths {only}"
VERDICTS = "SELECT cell, attempt, number, detected FROM verdicts {only}"
EPISODES = """
    SELECT cell, attempt, number, phase, novel, turns, performance, belief, ended, detail
    FROM episodes {only} ORDER BY cell, attempt, number
"""
REPLACED = """
    SELECT cell, number, outcome FROM attempts AS earlier
    WHERE number < (SELECT max(number) FROM attempts WHERE cell = earlier.cell)
      AND coalesce(outcome, '') NOT IN (?, ?, ?)
"""
COUNTS = """
    SELECT (SELECT count(*) FROM cells),
      count(*) FILTER (WHERE is_latest AND coalesce(outcome, 'cancelled') NOT IN (?, ?)),
      count(*) FILTER (WHERE NOT is_latest AND outcome IN (?, ?)),
      count(*) FILTER (WHERE outcome = ?)
    FROM (SELECT outcome, number = max(number) OVER (PARTITION BY cell) AS is_latest FROM attempts)
"""
CHUNKS = """
    SELECT cell, attempt, first, count, crc, data FROM chunks
    WHERE cell = ? AND attempt = ? AND first >= coalesce(
      (SELECT max(first) FROM chunks WHERE cell = ? AND attempt = ? AND first <= ?), 0)
    ORDER BY first
"""
ORPHANS = "SELECT cell, attempt FROM {} EXCEPT SELECT cell, number FROM attempts"
LATEST_ATTEMPTS = """
    SELECT id, agent, trial, repeat, number, outcome, note,
      (SELECT max(first + count) FROM chunks WHERE chunks.cell = id AND attempt = number), seconds,
      (SELECT fingerprint FROM players WHERE players.cell = id AND attempt = number)
    FROM cells LEFT JOIN attempts ON cell = id AND number = (SELECT max(number) FROM attempts WHERE cell = id)
    {only} ORDER BY cells.rowid
"""
PROGRESS = """
    SELECT agent, count(*), count(*) FILTER (WHERE coalesce(outcome, ?) NOT IN (?, ?)),
      count(*) FILTER (WHERE outcome LIKE 'agent_%'), coalesce(sum(played), 0), coalesce(sum(said), 0),
      sum(score) / sum(scored)
    FROM cells
    LEFT JOIN (SELECT cell, max(number) AS number, outcome FROM attempts GROUP BY cell) ON cell = id
    LEFT JOIN (
      SELECT cell AS of_cell, attempt, count(*) AS played, sum(turns) AS said, sum(performance) AS score,
        count(performance) AS scored
      FROM episodes GROUP BY cell, attempt
    ) ON of_cell = id AND attempt = number
    GROUP BY agent ORDER BY min(cells.rowid)
"""
STATUSES = """
    SELECT id, number, outcome, (SELECT fingerprint FROM players WHERE players.cell = id AND attempt = number)
    FROM (SELECT cell AS id, max(number) AS number, outcome FROM attempts GROUP BY cell)
"""
"""With a maximum, SQLite gives the other columns of the row that has it."""
CELLS_BESIDE = """
    SELECT
      (SELECT id FROM cells WHERE agent = own.agent AND rowid < own.rowid ORDER BY rowid DESC LIMIT 1),
      (SELECT id FROM cells WHERE agent = own.agent AND rowid > own.rowid ORDER BY rowid LIMIT 1)
    FROM cells AS own WHERE id = ?
"""
CELLS_OF_TRIAL = "SELECT id, agent, repeat FROM cells WHERE trial = (SELECT trial FROM cells WHERE id = ?) LIMIT ?"
NEAR_CELLS = (
    "SELECT id FROM cells WHERE id < ? ORDER BY id DESC LIMIT 2",
    "SELECT id FROM cells WHERE id >= ? ORDER BY id LIMIT 2",
)
EPISODE_COUNTS = "SELECT cell, attempt, count(*) FROM episodes GROUP BY cell, attempt"
HELD_CELL = "SELECT id FROM cells WHERE holder IS NOT NULL AND held_until > ? LIMIT 1"

FOREIGN_PARTS = """
    SELECT name FROM sqlite_master WHERE type IN ('view', 'trigger') OR sql LIKE 'CREATE VIRTUAL%'
      OR (type = 'index' AND sql IS NOT NULL) OR sql LIKE '%CHECK%(%'
    UNION ALL SELECT master.name FROM sqlite_master AS master JOIN pragma_table_xinfo(master.name) AS info
    WHERE master.type = 'table' AND info.hidden != 0 LIMIT 1
"""
"""What no run file has: views, triggers, checks and what else is computed could keep a reader busy for ever."""


class SourceText(NamedTuple):
    """The text of a file that plays: an agent, a domain, a wrapper or the experiment."""

    digest: str
    """The SHA-256 of the text in UTF-8, in hexadecimal digits."""
    name: str
    text: str


def open_to_write(path: Path) -> sqlite3.Connection:
    """Open a run file for writing, or make one. Warn where the file system allows only a slower log."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.exists() and not path.is_file():
            raise JournalError(f"{path} cannot be written: it is a device or a pipe, and a record is a file.")
    except OSError as error:
        raise JournalError(f"{path} cannot be written: {error.strerror}.") from None
    with explaining(path):
        db = sqlite3.connect(path, timeout=30.0, isolation_level=None, check_same_thread=False)
        with closing_on_error(db):
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_STATE_ROW)
            if not _is_empty(db):
                _check_schema(db, path)  # before anything is changed: it may belong to another program
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA wal_autocheckpoint = 8000")
            commit(db, _create)
            db.execute(f"CREATE TABLE IF NOT EXISTS {STRENGTHS} STRICT")
            _check_schema(db, path)
    if not uses_log(db):
        slow = f"{path}: the write-ahead log does not work on this file system; a slower log is used."
        warnings.warn(slow, RuntimeWarning, stacklevel=3)
    return db


def select_run_files(folder: Path, names: Iterable[str]) -> set[str]:
    """Return which names in a folder are those of run files and of their logs, whatever they are called.

    Args:
        folder: The folder.
        names: Names of files in it. A link is not followed, and is not a run file.
    """
    names, opened = set(names), _list_opened()
    runs = {name for name in names if _is_run_file(f"{folder}/{name}", opened)}
    return runs | (names & {f"{name}{end}" for name in runs for end in RUN_LOGS})


def _is_run_file(path: str, opened: Mapping[tuple[int, int], int]) -> bool:
    """Return whether a file, or a log, has the mark. That of a run that was not closed yet is only in its log."""
    start = _read_start(path, MARK_END, opened)
    if start.startswith(SQLITE_LOG):
        return RUN_MARK.search(_read_start(path, MAX_LOG, opened)) is not None
    if not start.startswith(SQLITE):
        return False
    return RUN_MARK.match(start) is not None or _is_run_file(f"{path}-wal", opened)


def _list_opened() -> dict[tuple[int, int], int]:
    """Return the files that this process has open, by device and number, each with a handle."""
    found: dict[tuple[int, int], int] = {}
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):  # it was closed in between
            opened = os.fstat(int(name))
            found[opened.st_dev, opened.st_ino] = int(name)
    return found


def _read_start(path: str, size: int, opened: Mapping[tuple[int, int], int]) -> bytes:
    """Return the first bytes of a regular file; none if it cannot be read or is smaller than any database."""
    with suppress(OSError):
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode) or found.st_size < MIN_PAGE:
            return b""
        handle = opened.get((found.st_dev, found.st_ino))
        if handle is not None:  # to close another handle would drop the locks that SQLite has on the file
            return os.pread(handle, size, 0)
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            return os.read(handle, size)
        finally:
            os.close(handle)
    return b""


def uses_log(db: sqlite3.Connection) -> bool:
    """Return whether a file has a write-ahead log: then a commit need not wait for the disk to be sound."""
    return bool(db.execute("PRAGMA journal_mode").fetchone()[0] == "wal")


def close_written(db: sqlite3.Connection) -> None:
    """Close a run file, and remove its log unless another process has it open: it is one file again."""
    with suppress(sqlite3.Error):
        db.execute("PRAGMA busy_timeout = 0")
        db.execute("PRAGMA journal_mode = DELETE")
    db.close()


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open a run file for reading only, without disturbing a writer."""
    try:
        if path.is_dir():
            raise JournalError(f"{path} is a folder. Name run files, such as {path / '*.sqlite'}.")
        if not path.is_file():
            raise JournalError(f"There is no run file {path}.{suggest_run(path)}")
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error.strerror}.") from None
    with explaining(path):
        _take_back(path)
        db = _connect_read_only(path)
        with closing_on_error(db):
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_ROW)
            db.execute("BEGIN")  # the file is locked once for all that is checked
            _check_schema(db, path)
            db.execute("COMMIT")
            if not db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'strengths'").fetchone()[0]:
                db.execute(f"CREATE TEMP TABLE {STRENGTHS}")
    return db


@contextmanager
def closing_on_error(db: sqlite3.Connection) -> Iterator[None]:
    """Close a connection if its file is refused: the file would stay locked."""
    try:
        yield
    except BaseException:
        db.close()
        raise


@contextmanager
def explaining(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into sentences about the file."""
    try:
        yield
    except sqlite3.Error as error:
        raise explain_error(error, path) from None
    except UnicodeDecodeError:  # SQLite quotes the text it complains about, byte by byte
        raise DamagedRun(f"{path} is damaged: a text in it cannot be read.") from None
    except msgspec.ValidationError as error:
        raise DamagedRun(f"{path} is damaged: {error}.") from None


def explain_error(error: sqlite3.Error, path: Path) -> JournalError:
    """Return an error of SQLite as a sentence about the file."""
    text = str(error)
    unwritten = getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_WRITE  # a limit on file sizes, say
    if "full" in text or ("disk I/O" in text and (unwritten or _no_room(path))):
        return DiskFull(f"No room left for {path}. Make some, then the same command goes on.")
    if "not a database" in text:
        return NotARun(f"{path} is not a run of openfield. Name a run file, such as runs/maze.sqlite.")
    if any(sign in text for sign in ("malformed", "no such table", "no such column", "disk I/O")):
        return DamagedRun(f"{path} is damaged or cut short: {text}.")
    if "too big" in text:
        return DamagedRun(f"{path} is damaged: a value in it is larger than any that openfield writes.")
    if "readonly" in text:
        return JournalError(f"{path} cannot be written: it, or its folder, is read-only.")
    if "unable to open" in text:
        return JournalError(f"{path} cannot be opened: its permissions, or those of its folder, forbid it.")
    if "locked" in text:
        return RunBusy(f"{path} is being written by another process and stays locked.")
    return JournalError(f"{path}: {text}.")


def commit(db: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    """Do some work of which all is kept, or nothing. A context manager would cost a commit 0.02 ms more."""
    db.execute("BEGIN IMMEDIATE")
    try:
        result = work(db)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return result


def _create(db: sqlite3.Connection) -> None:
    if not _is_empty(db):
        return
    for statement in SCHEMA:
        db.execute(f"{statement} STRICT")
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def extend_chain(before: bytes, digest: bytes) -> bytes:
    """Return the chain value of a chunk from that of the chunk before it, which is empty for the first one."""
    return hashlib.sha256(before + digest).digest()


def _is_empty(db: sqlite3.Connection) -> bool:
    return not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def _check_schema(db: sqlite3.Connection, path: Path) -> None:
    if _is_empty(db):
        raise NotARun(f"{path} is empty: a run was stopped before it began. The command that made it begins anew.")
    if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise NotARun(f"{path} is an SQLite file, but not a run of openfield.")
    if found := db.execute(FOREIGN_PARTS).fetchone():
        raise DamagedRun(f"{path} is damaged: '{found[0]}' in it computes something, and a run only holds values.")
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version != SCHEMA_VERSION:
        raise NotARun(
            f"{path} has format {version}, written by {_name_writer(db)}; this is openfield {__version__}, which reads "
            f"format {SCHEMA_VERSION}. Read it with the openfield that wrote it, or run the experiment again."
        )


def _name_writer(db: sqlite3.Connection) -> str:
    """Return which openfield began a file of another format, as far as the file says so."""
    with suppress(sqlite3.Error):
        (version,) = db.execute(WRITTEN_BY).fetchone() or (None,)
        if isinstance(version, str) and re.fullmatch(r"[\w.+-]{1,40}", version):
            return f"openfield {version}"
    return "another openfield"


def _take_back(path: Path) -> None:
    """Let SQLite roll back a killed process's transaction where there is no write-ahead log: a reader may not."""
    if Path(f"{path}-journal").exists() and os.access(path.parent, os.W_OK):
        with closing(sqlite3.connect(path, timeout=30.0, isolation_level=None)) as db:
            _is_empty(db)


def _connect_read_only(path: Path) -> sqlite3.Connection:
    """Connect for reading. A log needs a writable folder; a finished run in a read-only one is opened as it lies."""
    log = Path(f"{path}-wal")
    lies_still = not os.access(path.parent, os.W_OK) and not (log.exists() and log.stat().st_size)
    uri = f"file:{quote(str(path.resolve()))}?mode=ro{'&immutable=1' if lies_still else ''}"
    return sqlite3.connect(uri, uri=True, timeout=30.0, isolation_level=None, check_same_thread=False)


def _no_room(path: Path) -> bool:
    free = os.statvfs(path.parent)
    return free.f_bavail * free.f_frsize < 1 << 20
