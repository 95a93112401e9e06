"""Space out the requests to an endpoint: all processes of a user on this machine share one limit.

The moment of the next request stands in a small file, which they lock. Where there can be no such file, the limit holds
within one process.
"""

from __future__ import annotations

import hashlib
import io
import os
import struct
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

MAX_HOLD = 3_600.0
"""Seconds until a request at most, whatever the file says."""
_MOMENT = struct.Struct("<d")


class RequestGate:
    """Lets requests through one at a time, some seconds apart. It may be used by many threads and processes."""

    def __init__(self, name: str, seconds: float = 0.0) -> None:
        """Open nothing yet.

        Args:
            name: What the requests are to; gates of the same name share their limit.
            seconds: How far apart they are at least.
        """
        self._seconds, self._lock = min(seconds, MAX_HOLD), threading.Lock()
        self._name = hashlib.sha256(name.encode()).hexdigest()[:32]
        self._own: BinaryIO | None = None

    def enter(self) -> float:
        """Let a request through and return 0, or return for how many seconds there can be none."""
        if not (self._seconds or self._own or self._is_shared):
            return 0.0
        with self._locked() as file:
            left = _read_left(file)
            if not left and self._seconds:
                _write_left(file, self._seconds)
            return left

    def hold(self, seconds: float) -> None:
        """Let no request through for some seconds."""
        with self._locked() as file:
            _write_left(file, max(_read_left(file), min(seconds, MAX_HOLD)))

    @property
    def _is_shared(self) -> bool:
        """Whether any process has set a moment."""
        try:
            return (find_folder() / self._name).exists()
        except OSError:
            return False

    @contextmanager
    def _locked(self) -> Iterator[BinaryIO]:
        """Give the file to one thread of one process at a time."""
        with self._lock:
            file = self._open()
            if file is self._own:
                yield file
                return
            import fcntl

            with file:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield file

    def _open(self) -> BinaryIO:
        """Open the common file anew each time: a forked process would share the lock of an open one."""
        if self._own is None:
            try:
                opened = os.open(
                    find_folder() / self._name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
                )
                return os.fdopen(opened, "r+b", buffering=0)
            except OSError:
                self._own = io.BytesIO()
        return self._own


def find_folder() -> Path:
    """Return the folder of the common files, which is made if it is missing.

    Raises:
        OSError: There is none that belongs to this user alone.
    """
    if os.name != "posix":  # there is neither a lock for it nor a user number to look for
        raise OSError("no file can be shared here")
    given = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(given, "openfield") if given else Path(tempfile.gettempdir(), f"openfield-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    about = folder.lstat()
    if about.st_uid != os.getuid() or about.st_mode & 0o022:
        raise PermissionError(f"{folder} belongs to others")
    return folder


def _read_left(file: BinaryIO) -> float:
    """Return the seconds until the next request; 0 if the file says nothing that can be."""
    file.seek(0)
    data = file.read(_MOMENT.size)
    left = float(_MOMENT.unpack(data)[0]) - time.time() if len(data) == _MOMENT.size else 0.0
    return left if 0 < left <= MAX_HOLD else 0.0


def _write_left(file: BinaryIO, seconds: float) -> None:
    file.seek(0)
    file.write(_MOMENT.pack(time.time() + seconds))
