"""Let one server at a time use a run file: a lock lies beside the file while it is served.

Players need no such lock: they lease cells one by one.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from openfield.errors import JournalError, RunBusy


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
