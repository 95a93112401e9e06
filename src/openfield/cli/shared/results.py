"""Print the result of a run, and fail if nothing in it was scored."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from shlex import quote
from typing import TYPE_CHECKING

from openfield.console import print_json

if TYPE_CHECKING:
    from openfield.cell import Cell
    from openfield.journal.reader import CellRecord
    from openfield.result import Result


def agents_aside(as_json: bool) -> AbstractContextManager[object]:
    """Send what agents print in this process to standard error if JSON is printed; workers always do so."""
    return redirect_stdout(sys.stderr) if as_json else nullcontext()


def print_result(result: Result, as_json: bool, metrics: list[str] | None = None) -> None:
    """Print the numbers of a result, as a table or as JSON."""
    if as_json:
        print_json(result.summary(metrics))
        return
    from rich.console import Console

    Console().print(result.table(metrics))
    if unchanged := [cell for cell in result.cells if _never_changed(cell)]:
        print(f"In {len(unchanged)} of {len(result.cells)} cells the trial ended before the change came.")


def fail_if_nothing_scored(result: Result, cells: Iterable[Cell]) -> None:
    """Raise an error with exit status 1 if every cell of the command failed, so that a script notices."""
    from openfield.errors import NothingScored
    from openfield.journal.reader import SCORED

    asked = {cell.id for cell in cells}
    if not any(cell.outcome in SCORED for cell in result.cells if cell.id in asked):
        raise NothingScored(f"No cell could be scored. See why: openfield show {quote(str(result.paths[0]))}")


def _never_changed(cell: CellRecord) -> bool:
    from openfield.journal.reader import SCORED

    return bool(cell.trial.novelty) and cell.outcome in SCORED and not any(episode.novel for episode in cell.episodes)
