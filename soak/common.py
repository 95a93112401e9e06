"""What the soak tests share: counts as parameters, figures as JSON lines, quick runs, and what a run file tells."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from openfield.journal.reader import Run

SMALL = os.environ.get("SOAK") == "small"
QUICK = {
    "examples/maze.py": ["--trials", "3"],
    "birds": ["--trials", "1", "--set", "training=1", "--set", "before=2", "--set", "after=2"],
    "commai": ["--trials", "2", "--set", "max_steps=300", "--novelty", "separators"],
    "doom": ["--trials", "1", "--set", "training=0", "--set", "episodes=4", "--set", "onset=1-2", "--set", "limit=40"],
    "ond": ["--trials", "2"],
}
"""Domains with the options of a run of a few seconds."""
ROOT = Path(__file__).resolve().parent.parent
failed: list[str] = []


def parameter(name: str, full: float, small: float) -> int:
    """Return a count: `--name N` on the command line, or the one of the full or of the small form."""
    flag = f"--{name}"
    return int(sys.argv[sys.argv.index(flag) + 1] if flag in sys.argv else small if SMALL else full)


def report(subject: str, figure: str, value: float, bar: float, better: str = "lower", **more: Any) -> None:
    """Print a figure as a JSON line, and remember whether it holds."""
    good = value <= bar if better == "lower" else value >= bar
    line = {"subject": subject, "figure": figure, "value": value, "bar": bar, "better": better, "ok": good}
    print(json.dumps({**line, "form": "small" if SMALL else "full", **more}), flush=True)
    if not good:
        failed.append(figure)


def finish() -> None:
    """Leave with status 1 if a figure did not hold."""
    sys.exit(1 if failed else 0)


@contextmanager
def folder() -> Iterator[Path]:
    """Yield an empty folder that is removed in the end."""
    with tempfile.TemporaryDirectory(prefix="openfield-soak-") as name:
        yield Path(name)


def start(words: list[str], **options: Any) -> subprocess.Popen[str]:
    """Start a command of openfield in a session of its own."""
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    command = [sys.executable, "-m", "openfield", *words]
    return subprocess.Popen(command, cwd=ROOT, text=True, start_new_session=True, **{**quiet, **options})


def run_words(domain: str, path: Path, workers: int, *agents: str) -> list[str]:
    """Return the words that play a quick run of a domain."""
    named = [word for agent in agents or ("random",) for word in ("--agent", agent)]
    return ["run", domain, *QUICK[domain], *named, "--workers", str(workers), "-o", str(path)]


def complete(words: list[str], timeout: float | None = 600, **options: Any) -> tuple[int, str]:
    """Run a command to its end, and return its exit status and what it said on standard error."""
    program = start(words, **options)
    try:
        said = program.communicate(timeout=timeout)[1] or ""
    finally:  # it is late, or we are: then it must not go on
        program.kill()
    return program.returncode, said


def tell(path: Path) -> dict[tuple[str, str, int], Any]:
    """Return everything a run says but times, by agent, trial and repeat; a damaged one is an error."""
    with Run(path) as run:
        if faults := run.verify():
            raise SystemExit(f"{path} is damaged: {faults[0]}")
        return {
            (cell.agent, cell.trial.id, cell.repeat): (
                *(cell.outcome, cell.episodes),
                [(step.reply, step.turn, step.truth) for step in run.steps(cell.id, cell.attempt)],
            )
            for cell in run.cells()
        }


def count_episodes(path: Path) -> set[tuple[str, int, int]]:
    """Return the finished episodes of a run file that may be young: cell, attempt and number."""
    if not path.exists() or not path.stat().st_size:
        return set()
    with Run(path) as run:
        cells = run.cells()
        return {(cell.id, cell.attempt, episode.number) for cell in cells for episode in cell.episodes}
