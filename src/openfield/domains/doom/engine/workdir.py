"""The folders engines work in: one per process for WADs and settings. Also removes the shared memory engines leave.

Everything is in the system's folder for temporary files, and is removed when its process ends.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import stat
import tempfile
import threading
from collections.abc import Container, Iterator
from contextlib import suppress
from pathlib import Path

from openfield.domains.doom.engine.watchdog import remove_folder
from openfield.errors import InvalidInput

SHARED = Path("/dev/shm")  # noqa: S108
PREFIX = "ViZDoom"
MAX_WADS = 8
"""WADs a process keeps beside those in use. Without a limit, environments with ever new seeds fill the disk."""
MIN_AGE = 60.0
"""Seconds. The memory of an engine that is just starting is not mapped yet, and its WAD has not been read."""


def shared_folder() -> Path:
    """Return the folder that all processes of this user share.

    Raises:
        InvalidInput: Another user made a folder or a link of this name, or can write into the folder.
    """
    folder = Path(tempfile.gettempdir()) / f"openfield-doom-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise InvalidInput(
            f"{folder} is not a folder that only this user can use: engines would load files from it that others "
            "wrote. Remove it, or set TMPDIR to a folder of your own."
        )
    return folder


@functools.cache
def _make_folder(pid: int) -> Path:
    """Make the folder of this process; remove those of processes that have ended, and end the engines they left."""
    for folder in shared_folder().iterdir():
        if folder.name.isdigit() and not Path("/proc", folder.name).exists():
            remove_folder(folder)
    sweep_shared_memory()
    folder = shared_folder() / str(pid)
    folder.mkdir(exist_ok=True)
    return folder


def process_folder() -> Path:
    """Return the folder of this process."""
    return _make_folder(os.getpid())


def remove_process_folder() -> None:
    """Remove the folder of this process. Its engines must have ended, because they write into it when they end."""
    if not _make_folder.cache_info().currsize:  # none was made
        return
    shutil.rmtree(shared_folder() / str(os.getpid()), ignore_errors=True)


def keep_wad(content: bytes) -> Path:
    """Write a WAD where an engine can load it; the same content is the same file."""
    path = process_folder() / f"{hashlib.sha256(content).hexdigest()[:16]}.wad"
    if not is_kept(path):
        part = path.with_suffix(f".{threading.get_ident()}")
        part.write_bytes(content)
        part.replace(path)  # another thread may write the same: a file under this name is complete
    return path


def is_kept(wad: Path) -> bool:
    """Check whether a WAD is there for engines of this process; if so, mark it as used now."""
    with suppress(FileNotFoundError):
        os.utime(wad)
        return wad.parent == process_folder()
    return False


def drop_wads(needed: Container[Path]) -> None:
    """Remove the WADs that were used longest ago, unless they are needed. They are written again when wanted."""
    times = {path: path.stat().st_mtime for path in process_folder().glob("*.wad")}
    latest = _now() - MIN_AGE  # an engine for it may be about to start
    for path in sorted(times, key=times.__getitem__)[:-MAX_WADS]:
        if times[path] <= latest and path not in needed:
            path.unlink(missing_ok=True)


def sweep_shared_memory() -> list[str]:
    """Remove what dead engines left in shared memory, if it is old enough; return the names."""
    if not SHARED.is_dir():
        return []
    latest = _now() - MIN_AGE
    left = {path.name for path in SHARED.glob(f"{PREFIX}*") if _is_ours(path, latest)} - set(_in_use())
    for name in left:
        with suppress(OSError):
            (SHARED / name).unlink()
    return sorted(left)


def _now() -> float:
    """Return the file system's time: worlds read no clock."""
    mark = shared_folder() / "now"
    mark.touch()
    return mark.stat().st_mtime


def _is_ours(path: Path, latest: float) -> bool:
    with suppress(OSError):
        status = path.stat()
        return status.st_uid == os.getuid() and status.st_mtime <= latest
    return False


def _in_use() -> Iterator[str]:
    """Yield the names of shared memory that a process has mapped."""
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with suppress(OSError):
            yield from re.findall(rf"{SHARED}/({PREFIX}\S*)", maps.read_text())
