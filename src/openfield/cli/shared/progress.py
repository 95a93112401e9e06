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
from openfield.console import escape_controls
from openfield.domain import Domain
from openfield.errors import JournalError
from openfield.journal.reader import Run
from openfield.record import AttemptEnd, Chunk, Entry, EpisodeEnd
from openfield.runner.plan import Plan
from openfield.runner.run import Watch


@contextmanager
def showing_progress(plan: Plan, run: Path) -> Iterator[Watch]:
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
        yield _Bars(progress, plan, run)


class _Bars:
    """Progress bars fed by entries of the record; they count episodes if their number is known, else trials."""

    def __init__(self, progress: Progress, plan: Plan, run: Path) -> None:
        self._progress = progress
        self._cells = cells = {cell.id: cell for cell in plan.cells}
        self._domains = plan.domains
        self._episodes = all(phase.episodes for cell in cells.values() for phase in cell.trial.phases)
        self._bars: dict[str, TaskID] = {}
        self._ended: set[str] = set()
        self._turns, self._since = 0, time.monotonic()
        done = self._count_done(run)
        for agent in dict.fromkeys(cell.agent for cell in cells.values()):
            trials = [cell.trial for cell in cells.values() if cell.agent == agent]
            episodes = sum(phase.episodes for trial in trials for phase in trial.phases)
            total = episodes if self._episodes else len(trials)
            unit = "episodes" if self._episodes else "trials"
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
                self._progress.update(bar, advance=int(self._episodes), note=f"{note}  {speed:,.0f} turns/s")
            case AttemptEnd() if not self._episodes and entry.cell not in self._ended:  # some are tried again
                self._ended.add(entry.cell)
                self._progress.update(bar, advance=1)

    def _count_done(self, run: Path) -> Counter[str]:
        """Count what an earlier run has done already, by agent."""
        done: Counter[str] = Counter()
        with suppress(JournalError), Run(run) as opened:  # none yet, or one the journal will say something about
            for record in opened.cells():
                if record.id in self._cells:
                    done[record.agent] += len(record.episodes) if self._episodes else record.outcome is not None
        return done


def _describe(episode: EpisodeEnd, domain: Domain[Any]) -> str:
    """Return what to show beside the bar when an episode ended."""
    if isinstance(domain, ShowsProgress):
        return escape_controls(domain.progress(episode))
    return "" if episode.performance is None else f"performance {episode.performance:.2f}"
