"""Lease cells to one process at a time.

A lease names its holder: machine, process, when the process began, and journal. The lease of a dead process on this
machine ends at once, that of a process on another machine when it was not renewed in time.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import time
import uuid
from pathlib import Path

from openfield.errors import RunBusy

LEASE_SECONDS = 60.0
"""How long a lease may outlive a holder on another machine; that of a dead process here ends at once."""
UNKNOWN_BIRTH = "?"
_living: set[str] = set()
"""The holders of this process whose journals are open."""


def new_holder() -> str:
    """Return a name under which a journal of this process holds cells, until `retire`."""
    holder = f"{socket.gethostname()}:{os.getpid()}:{_birth(os.getpid())}:{uuid.uuid4().hex}"
    _living.add(holder)
    return holder


def retire(holder: str) -> None:
    """Forget a holder whose journal is closed."""
    _living.discard(holder)


def take_lease(db: sqlite3.Connection, cell: str, holder: str, leased: set[str]) -> bool:
    """Take a cell for a holder; return False if another living one has it.

    Args:
        db: The run file.
        cell: The id of the cell.
        holder: Takes the cell.
        leased: The cells of the holder, to which this one is added.
    """
    now = time.time()
    other, until = db.execute("SELECT holder, held_until FROM cells WHERE id = ?", (cell,)).fetchone()
    if other not in (None, holder) and until > now and not _is_dead(other):
        return False
    db.execute("UPDATE cells SET holder = ?, held_until = ? WHERE id = ?", (holder, now + LEASE_SECONDS, cell))
    leased.add(cell)
    return True


def renew_leases(db: sqlite3.Connection, holder: str) -> None:
    """Renew all leases of a holder."""
    db.execute("UPDATE cells SET held_until = ? WHERE holder = ?", (time.time() + LEASE_SECONDS, holder))


def give_up_leases(db: sqlite3.Connection, holder: str) -> None:
    """End all leases of a holder."""
    db.execute("UPDATE cells SET holder = NULL WHERE holder = ?", (holder,))


def _is_dead(holder: str) -> bool:
    """Return whether a holder was a journal on this machine that has ended."""
    host, process, birth, _ = holder.split(":")
    if host != socket.gethostname():
        return False
    if int(process) == os.getpid():
        return holder not in _living
    return _birth(int(process)) not in (birth, UNKNOWN_BIRTH)


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


def check_lease(db: sqlite3.Connection, cell: str, holder: str, ours: bool) -> None:
    """Keep a process that slept through its lease from writing into a cell that another one took over or ended."""
    (other,) = db.execute("SELECT holder FROM cells WHERE id = ?", (cell,)).fetchone() or (None,)
    if other != holder and (ours or other is not None):
        raise RunBusy(f"Cell {cell} was taken over by another process while this one stood still.")
