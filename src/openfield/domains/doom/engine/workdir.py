"""Where engines work: a folder per process for WADs and settings, and shared memory that is cleaned up after them.

Below the engine. Everything lies in the system's folder for temporary files and is gone when its process is.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Container, Iterator
from contextlib import suppress
from pathlib import Path

from openfield.domains.doom.engine.watchdog import remove

SHARED = Path("/dev/shm")  # noqa: S108
PREFIX = "ViZDoom"
MOST_WADS = 8
"""Kept in one process beside those engines have: ever new ones, as of environments with new seeds, fill the disk."""
LEAST_AGE = 60.0
"""Seconds: an engine that is just starting has memory that nobody has mapped yet, and a WAD that nobody has read."""


def home() -> Path:
    """The folder all processes of this user share."""
    place = Path(tempfile.gettempdir()) / f"openfield-doom-{os.getuid()}"
    place.mkdir(mode=0o700, exist_ok=True)
    return place


@functools.cache
def _own(pid: int) -> Path:
    """This process's own folder; those of dead processes are removed on the way."""
    sweep_folders()
    sweep_shared_memory()
    place = home() / str(pid)
    place.mkdir(exist_ok=True)
    return place


def own() -> Path:
    """This process's own folder."""
    return _own(os.getpid())


def leave() -> None:
    """Removes this process's own folder; its engines must have ended, they write into it when they do."""
    shutil.rmtree(home() / str(os.getpid()), ignore_errors=True)


def keep_wad(content: bytes) -> Path:
    """Writes a WAD where an engine can load it; the same content is the same file."""
    path = own() / f"{hashlib.sha256(content).hexdigest()[:16]}.wad"
    if not is_kept(path):
        part = path.with_suffix(f".{threading.get_ident()}")
        part.write_bytes(content)
        part.replace(path)  # another thread may want the same: what is there is whole
    return path


def is_kept(wad: Path) -> bool:
    """Whether a WAD is there for engines of this process; if so, it counts as used just now."""
    with suppress(FileNotFoundError):
        os.utime(wad)
        return wad.parent == own()
    return False


def drop_wads(needed: Container[Path]) -> None:
    """Removes the WADs that were used longest ago, unless they are needed; whoever wants one again writes it anew."""
    times = {path: path.stat().st_mtime for path in own().glob("*.wad")}
    latest = _now() - LEAST_AGE  # an engine for it may be about to start
    for path in sorted(times, key=times.__getitem__)[:-MOST_WADS]:
        if times[path] <= latest and path not in needed:
            path.unlink(missing_ok=True)


def sweep_folders() -> None:
    """Removes the folders of processes that are no more, and ends the engines they left behind."""
    for place in home().iterdir():
        if place.name.isdigit() and not Path("/proc", place.name).exists():
            remove(place)


def sweep_shared_memory(least_age: float = LEAST_AGE) -> list[str]:
    """Removes what dead engines left in shared memory, if it has been there for some seconds; returns the names."""
    if not SHARED.is_dir():
        return []
    latest = _now() - least_age
    left = {path.name for path in SHARED.glob(f"{PREFIX}*") if _is_ours(path, latest)} - set(_in_use())
    for name in left:
        with suppress(OSError):
            (SHARED / name).unlink()
    return sorted(left)


def _now() -> float:
    """The file system's time: worlds look at no clock."""
    mark = home() / "now"
    mark.touch()
    return mark.stat().st_mtime


def _is_ours(path: Path, latest: float) -> bool:
    try:
        status = path.stat()
    except OSError:
        return False
    return status.st_uid == os.getuid() and status.st_mtime <= latest


def _in_use() -> Iterator[str]:
    """The names of shared memory that some process has mapped."""
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            text = maps.read_text()
        except OSError:
            continue
        if PREFIX in text:
            for line in text.splitlines():
                _, found, name = line.partition(f"{SHARED}/")
                if found and name.startswith(PREFIX):
                    yield name.removesuffix(" (deleted)")
