"""Power cuts at every write of a logged run: its file can be read, holds all commits, and the run ends the same.

A run writes its log without moving it into the file, and is killed. Then the log is cut after every page, and in the
middle of pages with rubbish after the cut, as a disk may leave it. Most turns do not wait for the disk, which may then
write later pages before earlier ones: so single pages are also missing, with all others in place. What is read is what
was committed before the first missing page, and never less after a later cut. Then the power is cut while the log is
moved into the file: some of its pages are new, some old, one is torn. `--cuts N` [0: all], `--moves N` [500],
`--resumed N` [50].
"""

from __future__ import annotations

import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from common import ROOT, complete, finish, folder, parameter, report, tell
from openfield.errors import JournalError, NotARun
from openfield.journal.reader import Run

WAL_HEAD, FRAME_HEAD = 32, 24
WORDS = ["run", "examples/maze.py", "--trials", "2", "--set", "unchanged=1", "--workers", "0", "-o"]
LOGGED = """
import os, signal, sqlite3, sys
from openfield.journal import recorder, writer
real = sqlite3.connect
def connect(*words, **options):
    db = real(*words, **options)
    db.execute("PRAGMA wal_autocheckpoint=0")
    return db
sqlite3.connect = connect
recorder.COSTLY_REPLY = 50_000  # some replies are written down at once, so that there are many writes
writer.Journal.close = lambda self: os.kill(os.getpid(), signal.SIGKILL)
from openfield.cli.main import run_command
run_command(sys.argv[1:])
"""


def main(cuts: int, moves: int, resumed: int) -> None:
    with folder() as place:
        whole = place / "whole.sqlite"
        complete([*WORDS, str(whole)])
        expected, logged, path = tell(whole), place / "logged.sqlite", place / "cut.sqlite"
        done = subprocess.run([sys.executable, "-c", LOGGED, *WORDS, str(logged)], cwd=ROOT, capture_output=True)
        if done.returncode != -signal.SIGKILL:
            raise SystemExit(f"The logged run ended with {done.returncode}: {done.stderr.decode()}")
        log = logged.with_name("logged.sqlite-wal").read_bytes()
        sizes = list(list_cuts(log, cuts))
        chosen = set(random.Random(18).sample(range(len(sizes)), min(resumed, len(sizes))))
        broken = shrunk = different = before = 0
        for number, size in enumerate(sizes):
            cut(logged, path, log[:size] + missing_page(log) + log[size + len(missing_page(log)) :], 0)
            without = read(path)
            cut(logged, path, log[:size], size)
            found = read(path)
            broken += found is None or without is None
            shrunk += (found or 0) < before or without != found
            before = found or before
            if number in chosen:
                status, _ = complete([*WORDS, str(path)])
                different += status != 0 or tell(path) != expected
        report("power", "files that are damaged", broken, 0, cuts=len(sizes), log_bytes=len(log))
        cut(logged, path, log, 0)
        committed = read(path)
        torn = sum(found != committed for found in tear(logged, path, log, moves))
        report("power", "files damaged while the log is moved", torn, 0, moves=moves)
        report("power", "commits that are lost", shrunk, 0, cuts=len(sizes))
        report("power", "runs that end otherwise", different, 0, resumed=len(chosen))


def list_cuts(log: bytes, count: int) -> list[int]:
    """Return the sizes to cut the log to: after every page, and in the middle of every page."""
    page = int.from_bytes(log[8:12], "big")
    ends = range(WAL_HEAD, len(log) + 1, page + FRAME_HEAD)
    sizes = [size for end in ends for size in (end, end + FRAME_HEAD + page // 2) if size <= len(log)]
    return sizes[:: max(1, len(sizes) // count)] if count else sizes


def missing_page(log: bytes) -> bytes:
    """Return what is in the place of a page that the disk has not written."""
    return bytes(int.from_bytes(log[8:12], "big") + FRAME_HEAD)


def cut(logged: Path, path: Path, log: bytes, rubbish: int) -> None:
    """Make a file with what is left of its log, and rubbish by this seed behind it."""
    for leftover in path.parent.glob(f"{path.name}*"):
        leftover.unlink()
    shutil.copy(logged, path)
    after = random.Random(rubbish).randbytes(512) if rubbish else b""
    path.with_name(f"{path.name}-wal").write_bytes(log + after)


def tear(logged: Path, path: Path, log: bytes, count: int) -> Iterator[int | None]:
    """Cut the power while the log is moved into the file, which takes the pages in any order; yield what is read."""
    page, fates = int.from_bytes(log[8:12], "big"), random.Random(18)
    cut(logged, path, log, 0)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    old, new = logged.read_bytes(), path.read_bytes()
    for _ in range(count):
        cut(logged, path, log, 0)
        moved = bytearray(old + bytes(len(new) - len(old)))
        pages = fates.sample(range(0, len(new), page), fates.randrange(1, len(new) // page + 1))
        for start in pages:
            written = page if start != pages[-1] else fates.randrange(page)
            moved[start : start + written] = new[start : start + written]
        path.write_bytes(moved)
        yield read(path)


def read(path: Path) -> int | None:
    """Return how many steps and episodes a file has; None if it is damaged."""
    try:
        with Run(path) as run:
            cells = run.cells()
            return None if run.verify() else sum(cell.steps + len(cell.episodes) for cell in cells)
    except NotARun:  # cut before its tables were made
        return 0
    except JournalError:
        return None


if __name__ == "__main__":
    main(parameter("cuts", 0, 60), parameter("moves", 500, 20), parameter("resumed", 50, 5))
    finish()
