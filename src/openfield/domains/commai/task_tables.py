"""A table per task of everybody in a run, with learning curves and what the order of tasks was worth, as JSON.

`--table FILE` writes it; the numbers are those of `openfield.metrics.gradual`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from openfield.journal.reader import CellRecord
from openfield.metrics.gradual import (
    accuracy_by_index,
    geometric_mean,
    learning_curve,
    retention,
    solved_within,
    task_rows,
    transfer,
)
from openfield.result import Result

BUDGETS = (10_000, 100_000, 1_000_000)


def write_table(result: Result, path: Path) -> None:
    """Writes the table of a result."""
    cells = [cell for cell in result.cells if cell.trial.domain == "commai" and cell.attempt]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode([describe_cell(cell, cells) for cell in cells])))


def export_table(path: Path, target: Path, cell: str | None) -> str:
    """Writes the table of a run file, for `openfield export --format tasks`."""
    write_table(Result([path]), target)
    return f"What each task took, in {target}"


def describe_cell(cell: CellRecord, cells: list[CellRecord]) -> dict[str, Any]:
    """Everything about one agent in one trial; cells with a single task, by the same agent, are the scratch ones."""
    scratch = [other for other in cells if other.agent == cell.agent and len(task_rows(other)) == 1]
    ratios = transfer(cell, scratch) if len(task_rows(cell)) > 1 else {}
    return {
        "agent": cell.agent,
        "trial": cell.trial.id,
        "outcome": cell.outcome,
        "steps": cell.steps,
        "seconds": cell.seconds,
        "tasks": task_rows(cell),
        "learning_curve": learning_curve(cell),
        "accuracy_by_index": accuracy_by_index(cell),
        "transfer": ratios,
        "transfer_mean": geometric_mean(ratios.values()),
        "retention": retention(cell),
        "solved_within": {str(budget): solved_within(cell, budget) for budget in BUDGETS},
    }
