"""What came of a run: its cells, its numbers, its page.

The end of plan -> rollout -> journal -> metrics -> report; several run files make one result.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from openfield.view import CellRecord, Run


class Result:
    """One or several run files, read as one."""

    def __init__(self, paths: Sequence[str | Path]) -> None:
        self.paths = [Path(path) for path in paths]
        self.cells: list[CellRecord] = []
        for path in self.paths:
            with Run(path) as run:
                self.cells += run.cells()
