"""Progress bars for a run: one per agent, on standard error, fed by the entries of the record."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from openfield.capabilities import ShowsProgress
from openfield.cell import Cell
from openfield.console import escape_controls
from openfield.domain import Domain
from openfield.errors import JournalError
from openfield.journal.reader import OUR_FAILURES, Run
from openfield.record import AttemptEnd, Chunk, Entry, EpisodeEnd
from openfield.runner.plan import Plan
from openfield.runner.scheduler import Watch, is_outdated


@contextmanager
def showing_progress(plan: Plan, run: Path, keep: bool = False) -> Iterator[Watch]:
    """Show a bar per agent while a run plays, and yield the function that every entry of the record is given to."""
    columns = (
        TextColumn("{task.description}", markup=False),  # names are not ours: brackets in them mean nothing
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}"),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[note]}", style="dim", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), refresh_per_second=8) as progress:
        yield _Bars(progress, plan, run, keep)


class _Bars:
    """Progress bars fed by entries of the record; they count episodes if their number is known, else trials.

    Every cell counts by its latest attempt, so that one that is played again does not count twice.
    """

    def __init__(self, progress: Progress, plan: Plan, run: Path, keep: bool = False) -> None:
        self._progress = progress
        self._cells = cells = {cell.id: cell for cell in plan.cells}
        self._domains = plan.domains
        self._episodes = all(phase.episodes for cell in cells.values() for phase in cell.trial.phases)
        self._bars: dict[str, TaskID] = {}
        self._done: dict[str, int] = dict.fromkeys(cells, 0)
        self._turns, self._since = 0, time.monotonic()
        with suppress(JournalError), Run(run) as opened:  # none yet, or one the journal will say something about
            played = opened.count_episodes()
            for key, status in opened.statuses().items():
                if key in cells and (keep or not is_outdated(cells[key], status.player, plan)):
                    self._count(key, played.get((key, status.attempt), 0), status.outcome)
        unit = "episodes" if self._episodes else "trials"
        totals, done = Counter[str](), Counter[str]()
        for cell in cells.values():
            totals[cell.agent] += self._total(cell)
            done[cell.agent] += self._done[cell.id]
        for agent, total in totals.items():
            self._bars[agent] = progress.add_task(agent, total=total, completed=done[agent], unit=unit, note="")

    def __call__(self, entry: Entry) -> None:
        cell = self._cells.get(entry.cell)
        if cell is None:
            return
        bar = self._bars[cell.agent]
        match entry:
            case Chunk():
                self._turns += entry.count
            case EpisodeEnd():
                note = _describe(entry, self._domains[cell.trial.domain])
                speed = self._turns / max(time.monotonic() - self._since, 1e-3)
                more = self._count(cell.id, entry.number + 1)
                self._progress.update(bar, advance=more, note=f"{note}  {speed:,.0f} turns/s")
            case AttemptEnd() if entry.outcome not in ("cancelled", *OUR_FAILURES):
                self._progress.update(bar, advance=self._count(cell.id, 0, entry.outcome))

    def _count(self, cell: str, episodes: int, outcome: str | None = None) -> int:
        """Take note of how much of a cell is done, and return how much more that is than before."""
        total, before = self._total(self._cells[cell]), self._done[cell]
        is_over = outcome is not None and outcome not in ("superseded", "cancelled", *OUR_FAILURES)
        self._done[cell] = total if is_over else min(episodes if self._episodes else 0, total)
        return self._done[cell] - before

    def _total(self, cell: Cell) -> int:
        return sum(phase.episodes for phase in cell.trial.phases) if self._episodes else 1


def _describe(episode: EpisodeEnd, domain: Domain[Any]) -> str:
    """Return what to show beside the bar when an episode ended."""
    if isinstance(domain, ShowsProgress):
        return escape_controls(domain.progress(episode))
    return "" if episode.performance is None else f"performance {episode.performance:.2f}"
