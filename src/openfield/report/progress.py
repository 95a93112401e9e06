"""Show how far a run is, from the entries of the record: a bar per agent, or lines where there is no terminal.

They go to standard error, or below the cell of a notebook. Stands beside plan -> rollout -> journal and watches.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from openfield.cell import Cell
from openfield.console import escape_controls, is_interactive, is_notebook
from openfield.domain import Domain
from openfield.errors import JournalError
from openfield.journal.reader import OUR_FAILURES, Run
from openfield.parameters import shorten_agents
from openfield.record import AttemptEnd, Chunk, Entry, EpisodeEnd
from openfield.runner.plan import Plan
from openfield.runner.scheduler import Watch, is_outdated

MIN_CELLS, MIN_SECONDS = 5, 10.0
"""How much of a run a forecast is made from."""
LARGE_SECONDS = 600.0
"""A run that takes longer says so."""
REFRESHES = 8
"""How often bars are drawn in a second."""
MAX_SILENCE = 60.0
"""Seconds without a line where there is no terminal."""
WIDTH = 100
"""Characters of a line below the cell of a notebook."""


@contextmanager
def showing_progress(plan: Plan, run: Path, passing: bool = False) -> Iterator[Watch]:
    """Show how far a run is while it plays, and yield the function that every entry of the record is given to.

    A terminal and a notebook show a bar per agent. Elsewhere there is a line for each tenth of the run.

    Args:
        plan: What is played.
        run: The run file.
        passing: Whether the bars go when the run is over, and nothing is shown without a terminal.
    """
    if any(getattr(agent, "has_terminal", False) for agent in plan.agents.values()):
        yield lambda *_: None  # a person reads and types there
        return
    if not is_interactive():
        yield (lambda *_: None) if passing else _Lines(_Tally(plan, run))
        return
    columns = (
        TextColumn("{task.description}", markup=False),  # names are not ours: brackets in them mean nothing
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}"),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[note]}", style="dim", markup=False),
    )
    kind = _NotebookProgress if is_notebook() else Progress
    console = Console(stderr=True)
    with kind(*columns, console=console, refresh_per_second=REFRESHES, transient=passing) as progress:
        yield _Bars(progress, plan, run)


class _NotebookProgress(Progress):
    """Bars below the cell of a notebook, drawn as text. Rich draws them only where ipywidgets is installed."""

    def start(self) -> None:
        """Make room below the cell."""
        display = import_module("IPython.display").display
        self._drawn = time.monotonic()
        self._place = display({"text/plain": ""}, raw=True, display_id=True)

    def stop(self) -> None:
        """Draw the bars as they are at the end."""
        self.refresh()

    def update(self, *values: Any, **changes: Any) -> None:
        """Change a bar, and draw all if that was not done just now."""
        super().update(*values, **changes)
        if time.monotonic() - self._drawn > 1 / REFRESHES:
            self.refresh()

    def refresh(self) -> None:
        """Draw the bars in the place of those drawn before."""
        console = Console(force_jupyter=False, force_terminal=True, color_system="standard", width=WIDTH)
        with console.capture() as drawn:
            console.print(self.get_renderable())
        self._place.update({"text/plain": drawn.get().rstrip()}, raw=True)
        self._drawn = time.monotonic()


class _Tally:
    """Counts what is done: episodes if their number is known, else trials.

    Every cell counts by its latest attempt, so that one that is played again does not count twice.
    """

    def __init__(self, plan: Plan, run: Path) -> None:
        self.cells = cells = {cell.id: cell for cell in plan.cells}
        self.stops = plan.stopping is not None
        self.episodes = all(phase.episodes for cell in cells.values() for phase in cell.trial.phases)
        self.done: dict[str, int] = dict.fromkeys(cells, 0)
        self.forecast = Forecast(run, len(cells))
        if not os.path.exists(run):  # a name that is too long for a file is one that the journal refuses
            return
        with suppress(JournalError), Run(run) as opened:  # the journal will say what is wrong with it
            played = opened.count_episodes()
            for key, status in opened.statuses().items():
                if key in cells and (plan.options.keep or not is_outdated(cells[key], status.player, plan)):
                    self._count(key, played.get((key, status.attempt), 0), status.outcome)
                    self.forecast.left -= self.done[key] == self.total(cells[key])

    @property
    def unit(self) -> str:
        """What is counted."""
        return "episodes" if self.episodes else "trials"

    def total(self, cell: Cell) -> int:
        """Return how much there is to do in a cell."""
        return sum(phase.episodes for phase in cell.trial.phases) if self.episodes else 1

    def add(self, entry: Entry) -> int:
        """Take note of an entry of the record, and return how much more is done than before."""
        match entry:
            case EpisodeEnd():
                return self._count(entry.cell, entry.number + 1)
            case AttemptEnd() if entry.outcome not in ("cancelled", *OUR_FAILURES):
                return self._count(entry.cell, 0, entry.outcome)
        return 0

    def _count(self, cell: str, episodes: int, outcome: str | None = None) -> int:
        """Take note of how much of a cell is done, and return how much more that is than before."""
        total, before = self.total(self.cells[cell]), self.done[cell]
        is_over = outcome is not None and outcome not in ("superseded", "cancelled", *OUR_FAILURES)
        self.done[cell] = total if is_over else min(episodes if self.episodes else 0, total)
        return self.done[cell] - before


class _Bars:
    """Progress bars fed by entries of the record."""

    def __init__(self, progress: Progress, plan: Plan, run: Path) -> None:
        self._progress = progress
        self._tally = tally = _Tally(plan, run)
        self._domains = plan.domains
        self._bars: dict[str, TaskID] = {}
        self._turns, self._since = 0, time.monotonic()
        self._means: dict[str, _Mean] = {}
        totals, done = Counter[str](), Counter[str]()
        for cell in tally.cells.values():
            totals[cell.agent] += tally.total(cell)
            done[cell.agent] += tally.done[cell.id]
        names = shorten_agents(totals)
        for agent, total in totals.items():
            unit = f"{tally.unit} at most" if tally.stops else tally.unit
            self._bars[agent] = progress.add_task(names[agent], total=total, completed=done[agent], unit=unit, note="")

    def __call__(self, entry: Entry) -> None:
        cell = self._tally.cells.get(entry.cell)
        if cell is None:
            return
        bar = self._bars[cell.agent]
        match entry:
            case Chunk():
                self._turns += entry.count
            case EpisodeEnd():
                mean = self._means.setdefault(cell.agent, _Mean())
                mean.add(entry)
                note = _describe(entry, self._domains[cell.trial.domain], mean)
                speed = self._turns / max(time.monotonic() - self._since, 1e-3)
                self._progress.update(bar, advance=self._tally.add(entry), note=f"{note}  {speed:,.0f} turns/s")
            case AttemptEnd() if entry.outcome not in ("cancelled", *OUR_FAILURES):
                self._progress.update(bar, advance=self._tally.add(entry))
                if said := self._tally.forecast.tell(time.monotonic()):
                    self._progress.console.print(said)


class _Lines:
    """A line on standard error for each tenth of a run that is over, or for a minute in which none was."""

    def __init__(self, tally: _Tally) -> None:
        self._tally = tally
        self._total = sum(map(tally.total, tally.cells.values()))
        self._begun = self._said = time.monotonic()
        self._tenths = self._count_tenths()

    def __call__(self, entry: Entry) -> None:
        if entry.cell not in self._tally.cells or not self._tally.add(entry):
            return
        now, tenths = time.monotonic(), self._count_tenths()
        if tenths > self._tenths or now - self._said >= MAX_SILENCE:
            self._tenths, self._said = tenths, now
            done = sum(self._tally.done.values())
            part = f"{done / self._total:.0%}".replace("%", " %")
            most = f"{'at most ' if self._tally.stops else ''}{self._total:,} {self._tally.unit}"
            line = f"openfield: {part}, {done:,} of {most}, {now - self._begun:,.0f} s"
            Console(stderr=True).print(line, markup=False, highlight=False, soft_wrap=True)

    def _count_tenths(self) -> int:
        return 10 * sum(self._tally.done.values()) // max(self._total, 1)


class _Mean:
    """The mean performance of an agent in the test episodes that were watched."""

    def __init__(self) -> None:
        self._sum, self._count = 0.0, 0

    def add(self, episode: EpisodeEnd) -> None:
        """Count an episode, if it is one of the test and has a performance."""
        if episode.phase == "test" and episode.performance is not None:
            self._sum += episode.performance
            self._count += 1

    def __str__(self) -> str:
        """Return it in words; empty before the first test episode."""
        return f"mean {self._sum / self._count:.2f}" if self._count else ""


class Forecast:
    """Forecasts from the first cells of a large run how long it will take and how large its file will be.

    It counts from the end of the first cell: by then the plan is written, which may be larger than the record of all
    turns.
    """

    def __init__(self, run: Path, left: int) -> None:
        self.left = left
        """How many cells are not over."""
        self._run = run
        self._ended, self._is_said = -1, False
        self._since, self._size = 0.0, 0

    def tell(self, now: float) -> str:
        """Take note of one more cell that is over, and return a forecast if it is time for one."""
        self._ended += 1
        self.left -= 1
        if not self._ended:
            self._since, self._size = now, _measure(self._run)
        seconds = now - self._since
        if self._is_said or self._ended < MIN_CELLS or seconds < MIN_SECONDS:
            return ""
        self._is_said = True
        if seconds / self._ended * self.left < LARGE_SECONDS:
            return ""
        size = (_measure(self._run) - self._size) / self._ended * self.left
        minutes = seconds / self._ended * self.left / 60
        time_left = f"{minutes:.0f} minutes" if minutes < 120 else f"{minutes / 60:.1f} hours"
        return f"About {time_left} and {max(size / 1e6, 1):,.0f} MB for the {self.left:,} cells that are left."


def _measure(run: Path) -> int:
    """Return the size in bytes of a run file with its log."""
    with suppress(JournalError), Run(run) as opened:
        return opened.size
    return 0


def _describe(episode: EpisodeEnd, domain: Domain[Any], mean: _Mean) -> str:
    """Return what to show beside the bar when an episode ended: how it went, and how the test goes so far."""
    if own := domain.progress(episode):
        return ", ".join(filter(None, (escape_controls(own), str(mean))))
    latest = "" if episode.performance is None else f"performance {episode.performance:.2f}"
    return str(mean) or latest
