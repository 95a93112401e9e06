"""What a cell costs in plans of a thousand to a million cells: planning, starting, listing, reporting, merging.

One JSON line per figure. Ratios are medians of runs that took turns; seconds and memory are of one run each.
`python bench/bench_scale.py 20000` is a quick look at a smaller plan.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

import openfield as of
from openfield.cell import Cell
from openfield.errors import Cancelled
from openfield.journal.reader import Run
from openfield.journal.recorder import Emit
from openfield.journal.writer import Journal
from openfield.record import AttemptEnd, Entry, EpisodeEnd
from openfield.registry import find_domain
from openfield.runner.plan import Plan, facts_of, make_plan
from openfield.runner.player import Job
from openfield.runner.run import run_plan
from openfield.runner.scheduler import CellScheduler
from openfield.runner.shares import Share, share_plan

ROUNDS = 5
PLAYED = 1_000
"""How many cells of a plan are played to measure one."""
SMALL, LARGE = 1_000, 100_000
HERE = Path(__file__).resolve().parent
AGENT = f"{HERE / 'tiny_domain.py'}:say_nothing"


def main(most: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measure_growth(folder, min(LARGE, most))
        measure_driver(folder)
        measure_merge(folder, max(10, min(1_000, most // 1_000)))
        measure_million(folder, most)


def plan_cells(cells: int, **settings: int) -> Plan:
    """Plan this many cells of one agent."""
    domain = find_domain(f"{HERE / 'tiny_domain.py'}:DOMAIN")
    return make_plan({"tiny": AGENT}, of.trials(domain, cells, **settings))


def measure_growth(folder: Path, large: int) -> None:
    """Compare a cell of a small plan with one of a large plan, played in this process."""
    plans = {count: plan_cells(count) for count in (SMALL, large)}
    for count, plan in plans.items():
        play_some(plan, folder / f"{count}.sqlite", 10)
    taken: dict[int, list[float]] = {count: [] for count in plans}
    for _ in range(ROUNDS):
        for count, plan in plans.items():
            taken[count].append(play_some(plan, folder / f"{count}.sqlite", PLAYED // ROUNDS))
    small, big = (statistics.median(each) for each in taken.values())
    report("ms per tiny cell, 1,000 planned", small * 1e3, None)
    report(f"ms per tiny cell, {large:,} planned", big * 1e3, None)
    report(f"a tiny cell of {large:,} planned / of 1,000", big / small, 1.5)


def play_some(plan: Plan, path: Path, cells: int) -> float:
    """Play this many more cells of a plan, and return the seconds per cell from the first end to the last."""
    moments: list[float] = []

    def watch(entry: Entry) -> None:
        if isinstance(entry, AttemptEnd):
            moments.append(time.perf_counter())
            if len(moments) == cells:
                raise Cancelled("enough")

    with suppress(Cancelled):
        run_plan(plan, path, watch=watch)
    return (moments[-1] - moments[0]) / max(len(moments) - 1, 1)


class FreeExecutor:
    """Plays every job in no time, to measure what the driver costs."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._jobs: deque[Job] = deque()

    @property
    def free(self) -> int:
        """How many more jobs may be started now."""
        return 8 - len(self._jobs)

    def start(self, job: Job) -> None:
        self._jobs.append(job)

    def poll(self) -> None:
        while self._jobs:
            job = self._jobs.popleft()
            self._emit(*entries_of(job.cell, job.attempt))

    def stop(self) -> None:
        pass

    def close(self) -> None:
        pass


def entries_of(cell: Cell, attempt: int = 1) -> tuple[Entry, ...]:
    """Return what is recorded of a cell, without steps."""
    performance = int(cell.id, 16) / 16**12
    same = {"phase": "test", "novel": False, "turns": 1, "belief": None, "ended": "terminated"}
    episodes = (
        EpisodeEnd(cell=cell.id, attempt=attempt, number=number, performance=performance, **same)  # type: ignore[arg-type]
        for number in range(2)
    )
    return *episodes, AttemptEnd(cell.id, attempt, "done", "", 0.001)


def measure_driver(folder: Path) -> None:
    """Measure how many cells a second the driver holds when playing costs nothing."""
    plan = plan_cells(10_000)
    with Journal(folder / "driver.sqlite") as record, Run(record.path) as reader:
        record.enter(plan.cells, plan.sources, facts_of(plan.cells))
        scheduler = CellScheduler(record, reader, plan)
        began = time.perf_counter()
        scheduler.run(FreeExecutor(scheduler.emit))
        report("cells/s of the driver alone", len(plan.cells) / (time.perf_counter() - began), 1_000, "higher")


def measure_merge(folder: Path, files: int) -> None:
    """Play shares of 1,000 episodes into files of their own, and merge them."""
    plan, parts = plan_cells(files * 20, before=25, after=25), []
    for number in range(files):
        parts.append(folder / f"share-{number}.sqlite")
        run_plan(share_plan(plan, Share(number, files)), parts[-1])
    words = ["merge", *map(str, parts), "-o", str(folder / "merged.sqlite")]
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "openfield", *words], check=True, stdout=subprocess.DEVNULL, cwd=HERE)
    report(f"seconds to merge {files:,} files of 1,000 episodes", time.perf_counter() - began, 60 * files / 1_000)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3
    report(f"MB to merge {files:,} files of 1,000 episodes", memory, 500)


def measure_million(folder: Path, cells: int) -> None:
    """Plan very many cells, play one, pretend to play all, list and report them."""
    began, path = time.perf_counter(), folder / "million.sqlite"
    plan = plan_cells(cells)
    report(f"seconds to plan {cells:,} cells", time.perf_counter() - began, 60 * cells / 1e6)
    play_some(plan, path, 1)
    report(f"seconds to the first of {cells:,} cells", time.perf_counter() - began, 60 * cells / 1e6)
    pretend(plan, path)
    for command, bar in (("list", 30.0), ("report", None)):
        words = {"list": ["show", str(path)], "report": ["report", str(path), "--json"]}[command]
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "openfield", *words], check=True, stdout=subprocess.DEVNULL, cwd=HERE)
        report(f"seconds to {command} {cells:,} cells", time.perf_counter() - began, bar)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    report(f"GB to report {cells:,} cells", memory, 3.0)


def pretend(plan: Plan, path: Path) -> None:
    """Record all cells as played."""
    with Journal(path) as record:
        for at in range(0, len(plan.cells), 1_000):
            for cell, taken in record.take([each.id for each in plan.cells[at : at + 1_000]], lambda *_: True).items():
                attempt = taken.status.attempt or 1
                if not taken.status.attempt:
                    record.add_anew(cell, attempt)
            record.add(*(entry for cell in plan.cells[at : at + 1_000] for entry in entries_of(cell)))


def report(figure: str, value: float, bar: float | None, better: str = "lower") -> None:
    """Print a figure as a JSON line."""
    good = bar is None or (value <= bar if better == "lower" else value >= bar)
    line = {"subject": "scale", "figure": figure, "value": round(value, 3), "bar": bar, "better": better, "ok": good}
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
