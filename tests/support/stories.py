"""What a run file tells, in forms that tests compare."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from openfield.journal.reader import Run
from openfield.journal.recorder import Recorder, fill_truth, read_chunk, read_raw_chunk
from openfield.record import Chunk, Entry, RawStep, Step
from openfield.rollout import Rollout


class Kept:
    """Takes the entries of a recorder and reads them back."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def __call__(self, *entries: Entry) -> None:
        self.entries += entries

    def recorder(self, written: int = 0) -> Recorder:
        return Recorder("cell", 1, self, written)

    def of(self, kind: type[Any]) -> list[Any]:
        return [entry for entry in self.entries if isinstance(entry, kind)]

    def steps(self) -> list[Step]:
        """The steps as a journal would have them: a chunk replaces what was recorded from its first step on."""
        kept: list[Step] = []
        for chunk in self.of(Chunk):
            kept[chunk.first :] = read_chunk(chunk)
        return list(fill_truth(iter(kept)))


def close_and_read(rollout: Rollout, kept: Kept) -> list[Step]:
    """Ends a rollout and gives the steps it left."""
    rollout.close()
    return kept.steps()


def past_of(kept: Kept) -> list[RawStep]:
    """The steps as a rollout takes them to go on."""
    past: list[RawStep] = []
    for chunk in kept.of(Chunk):
        past[chunk.first :] = read_raw_chunk(chunk)
    return past


def story(path: Path, with_steps: bool = True) -> dict[tuple[str, str, int], Any]:
    """Everything a run says but times, by agent, trial and repeat."""
    with Run(path) as run:
        assert run.verify() == []
        cells = run.cells()
        return {
            (cell.agent, cell.trial.id, cell.repeat): (
                cell.outcome,
                cell.episodes,
                [(s.reply, s.turn, s.truth) for s in run.steps(cell.id, cell.attempt)] if with_steps else None,
            )
            for cell in cells
        }


def rows(path: Path, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """What the file itself answers."""
    db = sqlite3.connect(path)
    try:
        return db.execute(query, values).fetchall()
    finally:
        db.close()


def attempts(path: Path) -> list[tuple[int, str | None, str]]:
    """All attempts in the order they were made: number, outcome, note."""
    return rows(path, "SELECT number, outcome, note FROM attempts ORDER BY rowid")


def press_ctrl_c_after(entries: int) -> Any:
    """A watcher that presses Ctrl-C when this many entries have come."""
    left = entries

    def watch(entry: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGINT)

    return watch


def alive(pid: int) -> bool:
    """Return whether a process runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(true: Callable[[], object], seconds: float = 60.0) -> None:
    """Asks again and again until it is so; gives up loudly."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.005)
