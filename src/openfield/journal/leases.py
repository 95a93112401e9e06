"""Lease cells to one process at a time.

A lease names its holder: machine, process, when the process began, and journal. The lease of a dead process on this
machine ends at once, that of a process on another machine when it was not renewed in time. Servers keep each other off
a whole file with a lock that lies beside it (`holding`).
"""

from __future__ import annotations

import os
import socket
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import BinaryIO, TypeVar

from openfield.errors import JournalError, RunBusy

LEASE_SECONDS = 60.0
"""How long a lease may outlive a holder on another machine; that of a dead process here ends at once."""
UNKNOWN_BIRTH = "?"
BLOCKS = (64, 16, 4, 1)
"""How many rows a statement is about."""
T = TypeVar("T")
_living: set[str] = set()
"""The holders of this process whose journals are open."""


class Leases:
    """The cells that a journal of this process holds. All but `retire` is called by the journal's thread."""

    def __init__(self) -> None:
        self._holder = f"{socket.gethostname()}:{os.getpid()}:{_birth(os.getpid())}:{uuid.uuid4().hex}"
        self._cells: set[str] = set()  # those that are ours until we end them
        self._checked: set[str] = set()  # those that may be written as long as no other journal writes
        _living.add(self._holder)

    def take(self, db: sqlite3.Connection, cell: str) -> bool:
        """Take a cell; return False if another living holder has it."""
        now = time.time()
        other, until = db.execute("SELECT holder, held_until FROM cells WHERE id = ?", (cell,)).fetchone()
        if other not in (None, self._holder) and until > now and not _is_dead(other):
            return False
        row = (self._holder, now + LEASE_SECONDS, cell)
        db.execute("UPDATE cells SET holder = ?, held_until = ? WHERE id = ?", row)
        self._cells.add(cell)
        return True

    def is_free(self, db: sqlite3.Connection, cell: str) -> bool:
        """Return whether no living journal holds a cell; one that another machine holds is not free."""
        (holder,) = db.execute("SELECT holder FROM cells WHERE id = ?", (cell,)).fetchone() or (None,)
        return holder in (None, self._holder) or _is_dead(holder)

    def check(self, db: sqlite3.Connection, cells: set[str]) -> None:
        """Refuse to write into cells that another process took over or ended while this one stood still."""
        cells = cells - self._checked
        for block in split_blocks(list(cells)):
            ours = "SELECT count(*) FROM cells WHERE holder = ? AND id IN (?)".replace("(?)", placeholders(len(block)))
            if db.execute(ours, (self._holder, *block)).fetchone()[0] < len(block):
                for cell in block:
                    self._check_one(db, cell)
        self._checked |= cells

    def forget_checks(self) -> None:
        """Check all cells again: another journal has written."""
        self._checked.clear()

    def _check_one(self, db: sqlite3.Connection, cell: str) -> None:
        (other,) = db.execute("SELECT holder FROM cells WHERE id = ?", (cell,)).fetchone() or (None,)
        if other != self._holder and (cell in self._cells or other is not None):
            raise RunBusy(f"Cell {cell} was taken over by another process while this one stood still.")

    def end(self, db: sqlite3.Connection, cell: str) -> None:
        """End the lease of a cell."""
        db.execute("UPDATE cells SET holder = NULL WHERE id = ?", (cell,))
        self._cells.discard(cell)
        self._checked.discard(cell)

    def renew(self, db: sqlite3.Connection) -> None:
        """Renew all leases. They are found by their cells: to look for the holder would read the whole plan."""
        until = time.time() + LEASE_SECONDS
        for block in split_blocks(sorted(self._cells)):
            renew = "UPDATE cells SET held_until = ? WHERE holder = ? AND id IN (?)".replace(
                "(?)", placeholders(len(block))
            )
            db.execute(renew, (until, self._holder, *block))

    def give_up(self, db: sqlite3.Connection) -> None:
        """End all leases."""
        for block in split_blocks(sorted(self._cells)):
            end = "UPDATE cells SET holder = NULL WHERE holder = ? AND id IN (?)".replace(
                "(?)", placeholders(len(block))
            )
            db.execute(end, (self._holder, *block))

    def retire(self) -> None:
        """Forget the holder when its journal is closed."""
        _living.discard(self._holder)


def find_strange_lease(db: sqlite3.Connection, path: Path) -> str:
    """Return a sentence about a lease that ends later than any can; empty if there is none."""
    query = "SELECT id, holder, held_until FROM cells WHERE holder IS NOT NULL AND held_until > ? LIMIT 1"
    (cell, holder, until) = db.execute(query, (time.time() + 2 * LEASE_SECONDS,)).fetchone() or ("", "", 0.0)
    if not cell:
        return ""
    try:
        end = f"{datetime.fromtimestamp(until, UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, OSError, ValueError):
        end = "the end of time"
    return (
        f"Cell {cell} is held by a process on {holder.partition(':')[0]} until {end}, but a lease lasts "
        f"{LEASE_SECONDS:.0f} s: a clock is wrong, or the file was changed. If nothing plays it there, openfield merge "
        f"{quote(str(path))} -o NEW.sqlite makes a file without leases."
    )


def placeholders(count: int) -> str:
    """Return placeholders for a number of values in a statement."""
    return f"({', '.join('?' * count)})"


def split_blocks(rows: list[T]) -> Iterator[list[T]]:
    """Yield rows in blocks of a few sizes only, so that a statement for each size stays prepared."""
    at = 0
    while at < len(rows):
        size = next(size for size in BLOCKS if size <= len(rows) - at)
        yield rows[at : at + size]
        at += size


def _is_dead(holder: str) -> bool:
    """Return whether a holder was a journal on this machine that has ended."""
    try:
        host, number, birth, _ = holder.split(":")
        process = int(number)
    except ValueError:  # it was forged: its lease runs out
        return False
    if host != socket.gethostname():
        return False
    if process == os.getpid():
        return holder not in _living
    return _birth(process) not in (birth, UNKNOWN_BIRTH)


def _birth(process: int) -> str:
    """Return when a process began, by the kernel's count, so that a reused number differs; "" if it is dead."""
    try:
        state, *rest = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return "" if state in "ZX" else rest[18]
    except OSError:  # it is dead, or hidden from us, or this system has no /proc
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return ""
        except PermissionError:
            pass
        return UNKNOWN_BIRTH


@contextmanager
def holding(path: Path) -> Iterator[Callable[[], None]]:
    """Keep every other server off a run file: two would not know of each other's sessions.

    Yields a function to call when serving has begun. Without that call a file that was made here is removed again.

    Raises:
        RunBusy: Another server has it.
    """
    path = path.resolve()  # however it is called
    lock = path.with_name(f"{path.name}.lock")  # not the run file itself: to close that would drop SQLite's locks on it
    with _take_lock(path, lock):
        made_for_nothing = [] if path.exists() else [path.with_name(path.name + end) for end in ("", "-wal", "-shm")]
        try:
            yield made_for_nothing.clear
        finally:
            for left in (*made_for_nothing, lock):
                left.unlink(missing_ok=True)


def _take_lock(path: Path, lock: Path) -> BinaryIO:
    """Return the lock file of a run file, locked. The process that has it removes it in the end."""
    try:
        import fcntl
    except ImportError:  # Windows
        raise JournalError("Serving locks its run file with flock, which this system lacks. Use Linux.") from None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            file = lock.open("ab")
            with suppress(FileNotFoundError):  # the process that had it removed it meanwhile
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(lock.stat(), os.fstat(file.fileno())):
                    return file
            file.close()
    except BlockingIOError:
        file.close()
        raise RunBusy(f"Another server records in {path}. Stop it, or choose another file: -o FILE.") from None
    except OSError as error:
        raise JournalError(f"{path} cannot be written: {error.strerror}.") from None
