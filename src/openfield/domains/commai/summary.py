"""The original's `results.out`: what a run says in the sections that file had.

An export of a result; `--summary FILE` writes it when a run is done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from openfield.journal.reader import CellRecord, Run
from openfield.result import Result


@dataclass
class Book:
    """What a task has seen."""

    steps: int = 0
    reward: float = 0.0
    instances: int = 0


def write_results(result: Result, path: Path) -> None:
    """Writes the summary of all cells of a result, one agent after the other."""
    texts = []
    for run_path in result.paths:
        with Run(run_path) as run:
            cells = [cell for cell in run.cells() if cell.trial.domain == "commai" and cell.attempt]
            texts += [text for cell in cells for text in (f"* {cell.agent}, trial {cell.trial.id}", *_lines(run, cell))]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(texts) + "\n")


def export_results(path: Path, target: Path, cell: str | None) -> str:
    """Writes the summary of a run file, for `openfield export --format results`."""
    write_results(Result([path]), target)
    return f"The original's summary in {target}"


def books_of(run: Run, cell: CellRecord) -> dict[str, Book]:
    """Steps, rewards and instances by task; a reward is booked on the task that earned it."""
    books: dict[str, Book] = {}
    steps, reward = 0, 0.0
    for step in run.steps(cell.id, cell.attempt):
        if (turn := step.turn) is None:
            continue
        reward += turn.reward
        if step.truth is None or not step.truth.episode_over:
            steps += 1
            continue
        book = books.setdefault(step.truth.detail["task"], Book())
        steps += turn.last == "terminated"  # a truncated one comes after the last step; others show the next task
        book.steps, book.reward, book.instances = book.steps + steps, book.reward + reward, book.instances + 1
        steps, reward = 1, 0.0
    return books


def _lines(run: Run, cell: CellRecord) -> Iterator[str]:
    books = books_of(run, cell)
    steps, reward = sum(book.steps for book in books.values()), sum(book.reward for book in books.values())
    yield from _section(
        "General results",
        [("Average reward", _ratio(reward, steps)), ("Total time", steps), ("Total reward", int(reward))],
    )
    yield from _section("Average reward per task", [(n, _ratio(b.reward, b.steps)) for n, b in books.items()])
    yield from _section("Total reward per task", [(name, int(book.reward)) for name, book in books.items()])
    yield from _section("Total time per task", [(name, book.steps) for name, book in books.items()])
    yield from _section("Number of trials per task", [(name, book.instances) for name, book in books.items()])


def _section(title: str, rows: Iterable[tuple[str, object]]) -> Iterator[str]:
    yield f"* {title}"
    yield from (f"{name}: {value}" for name, value in rows)
    yield ""


def _ratio(reward: float, steps: int) -> float:
    return round(reward / steps, 6) if steps else 0.0
