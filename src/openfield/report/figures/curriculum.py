"""Figures of a curriculum: which task was played when, learning curves, and a table of the tasks.

Stands in report: summary and cells -> figures -> drawing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from openfield.journal.reader import CellRecord
from openfield.metrics.curricula.instances import first_instances, list_visits
from openfield.metrics.curricula.tasks import pick_scratch
from openfield.metrics.performance import assume_curriculum, mean
from openfield.metrics.scenario import CurriculumResults, Key, TaskResults
from openfield.metrics.stats import Bounds, Estimate
from openfield.report.figures import Place, Plot, PlotLine, TrialLinks
from openfield.report.figures.curves import MAX_SINGLES, pick_evenly

MAX_POINTS = 30
"""Points of a learning curve: more cannot be distinguished at the size drawn."""
READING = (
    "Solved: share of trials. Steps: from the task's first step until it is solved, cut at its own budget of {:,} "
    "steps. Transfer: the steps alone divided by those in the curriculum; above 1 the tasks before it helped."
)
NO_TIMES = (
    "Solved: share of trials. The tasks share the steps of a trial, so a late task has what the others left: "
    "times cannot be compared, and there is no transfer (--design gradual plays for that)."
)
RETAINED = " Retention: accuracy in the task's first instance of the retest, relative to its last one before."

Marks = tuple[CellRecord, str]
"""A cell, and + or - for each question of a task in it."""


class TaskCells(NamedTuple):
    """The cells that the figures of an agent's tasks are made of."""

    counted: list[CellRecord]
    """Those that numbers are made of, failed ones included if they count."""
    alone: dict[str, list[CellRecord]]
    """Task -> those that play it alone, beside the counted ones."""
    drawn: list[CellRecord]
    """Those with a course to draw."""
    drawn_alone: list[CellRecord]
    """Those of single tasks, beside the drawn ones."""


class CourseStep(msgspec.Struct, frozen=True):
    """A stretch of a trial in which one task was played."""

    task: str
    start: int
    steps: int
    solved_after: int | None
    """Steps from its start until it was solved."""
    again: bool
    """Whether it belongs to the retest."""


class TrialCourse(msgspec.Struct, frozen=True):
    """The way of one trial through the tasks of its curriculum."""

    trial: str
    address: str
    visits: list[CourseStep]


class TaskCurve(msgspec.Struct, frozen=True):
    """How a task was learnt: the share of right answers, in the curriculum and alone."""

    task: str
    solved: Estimate
    address: str
    """The trials that `solved` was made of."""
    plot: Plot | None
    """None if there was no question."""


class TaskNumber(msgspec.Struct, frozen=True):
    """A number of a task, its range, and the trials that it was made of."""

    estimate: Estimate | None
    bounds: Bounds | None
    address: str


class AgentTasks(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of one agent in a scenario."""

    agent: str
    names: list[str]
    """The tasks, in order."""
    trials: int
    address: str
    """How many trials have a course, and where they are."""
    courses: list[TrialCourse]
    """Some of them, evenly picked."""
    curves: list[TaskCurve]
    columns: list[str]
    rows: dict[str, list[TaskNumber]]
    """Task -> its numbers, in the order of the columns."""
    reading: str
    """How the numbers are read."""

    @property
    def has_retest(self) -> bool:
        """Whether tasks are played again."""
        return any(visit.again for course in self.courses for visit in course.visits)

    @property
    def has_alone(self) -> bool:
        """Whether tasks are also played alone."""
        return any(line.kind == "b" for curve in self.curves if curve.plot for line in curve.plot.lines)


def trace_tasks(
    results: CurriculumResults,
    members: Mapping[Key, Sequence[CellRecord]],
    cells: Sequence[CellRecord],
    links: TrialLinks,
) -> AgentTasks:
    """Return the tasks of an agent: when they were played, how they were learnt, and their numbers.

    Args:
        results: The numbers of the tasks.
        members: The cells of each agent in each scenario.
        cells: All cells, those of single tasks among them.
        links: Finds the addresses of cells.
    """
    sources = _find_sources(results, members, cells)
    here, there = _collect_marks(sources.drawn), _collect_marks(sources.drawn_alone)
    columns, rows = _list_numbers(results, sources, links)
    reading = READING.format(results.task_steps) if results.task_steps else NO_TIMES
    reading += RETAINED if "retention" in columns else ""
    reading += f" Version of the agent: {results.versions}." if results.versions else ""
    return AgentTasks(
        agent=results.agent,
        names=[task.task for task in results.tasks],
        trials=len(sources.drawn),
        address=links.find(sources.drawn) if sources.drawn else "",
        courses=[
            TrialCourse(cell.trial.id, links.find([cell]), list(_list_course(cell, results)))
            for cell in pick_evenly(sources.drawn, MAX_SINGLES)
        ],
        curves=[
            _trace_task(each, sources.counted, here.get(each.task, []), there.get(each.task, []), links)
            for each in results.tasks
        ]
        if sources.drawn
        else [],
        columns=columns,
        rows=rows,
        reading=reading,
    )


def _find_sources(
    results: CurriculumResults, members: Mapping[Key, Sequence[CellRecord]], cells: Sequence[CellRecord]
) -> TaskCells:
    scored = [cell for cell in members.get((results.scenario, results.agent), ()) if cell.is_scored]
    counted = [cell for cell in scored if not cell.trial.is_unchanged_twin]
    drawn = [cell for cell in scored if cell.episodes and not cell.counts]
    alone: dict[str, list[CellRecord]] = {}
    for cell in pick_scratch(counted, cells):
        if len(tasks := assume_curriculum(cell.trial).tasks) == 1:
            alone.setdefault(tasks[0], []).append(cell)
    return TaskCells(counted, alone, drawn, pick_scratch(drawn, cells))


def _list_course(cell: CellRecord, results: CurriculumResults) -> Iterator[CourseStep]:
    """Yield the visits of a trial; tasks outside the curriculum are left out."""
    names = {task.task for task in results.tasks}
    for visit in list_visits(cell):
        if visit.task in names:
            yield CourseStep(visit.task, visit.start, visit.steps, visit.solved_after, visit.again)


def _list_numbers(
    results: CurriculumResults, sources: TaskCells, links: TrialLinks
) -> tuple[list[str], dict[str, list[TaskNumber]]]:
    budget, tasks = results.task_steps, results.tasks
    columns = ["solved", *(["steps"] if budget else [])]
    columns += [name for name in ("alone", "transfer", "retention") if any(getattr(task, name) for task in tasks)]
    ranges: dict[str, Bounds] = {"solved": (0.0, 1.0)}
    ranges |= {"steps": (0.0, budget), "alone": (0.0, budget)} if budget else {}
    rows = {}
    for task in tasks:
        alone = sources.alone.get(task.task, [])
        made_of = {"alone": alone, "transfer": [*sources.counted, *alone]}
        rows[task.task] = [
            TaskNumber(getattr(task, name), ranges.get(name), links.find(made_of.get(name, sources.counted)))
            for name in columns
        ]
    if results.transfer is not None:
        both = links.find([*sources.counted, *(cell for found in sources.alone.values() for cell in found)])
        rows["all tasks"] = [
            TaskNumber(results.transfer if name == "transfer" else None, None, both) for name in columns
        ]
    return columns, rows


def _trace_task(
    task: TaskResults, counted: Sequence[CellRecord], here: Sequence[Marks], there: Sequence[Marks], links: TrialLinks
) -> TaskCurve:
    longest = max((len(marks) for _, marks in (*here, *there)), default=0)
    if not longest:
        return TaskCurve(task.task, task.solved, links.find(counted), None)
    size = math.ceil(longest / MAX_POINTS)
    lines = [
        PlotLine(kind, average_marks([marks for _, marks in found], size))
        for kind, found in (("b", there), ("p", here))
        if found
    ]
    last = max(at for line in lines for at, _ in line.points)
    plot = Plot(
        title=f"{task.task}: share of right answers",
        lines=lines,
        last=last,
        ends=("", "", f"{last:,} questions"),
        address=links.find([cell for cell, _ in (*here, *there)]),
        small=True,
    )
    return TaskCurve(task.task, task.solved, links.find(counted), plot)


def _collect_marks(cells: Iterable[CellRecord]) -> dict[str, list[Marks]]:
    """Return the marks of each task, one text for each cell that came to it, without a retest."""
    found: dict[str, list[Marks]] = {}
    for cell in cells:
        for task, instances in first_instances(cell).items():
            found.setdefault(task, []).append((cell, "".join(instance.marks for instance in instances)))
    return found


def average_marks(trials: Sequence[str], size: int) -> list[Place]:
    """Return the share of right answers in each block of questions, where at least half of the trials have one."""
    return [(at, mean(shares)) for at, shares in list_blocks(trials, size)]


def list_blocks(trials: Sequence[str], size: int) -> Iterator[tuple[int, list[float]]]:
    """Yield the middle of each block of questions, and the share of right answers of each trial that came to it.

    Blocks that fewer than half of the trials came to are left out, except the first.
    """
    for start in range(0, max(map(len, trials), default=0), size):
        blocks = [marks[start : start + size] for marks in trials if len(marks) > start]
        if blocks and (2 * len(blocks) >= len(trials) or not start):
            yield start + size // 2, [block.count("+") / len(block) for block in blocks]


def collect_answers(
    results: CurriculumResults, members: Mapping[Key, Sequence[CellRecord]], cells: Sequence[CellRecord]
) -> dict[str, tuple[list[str], list[str]]]:
    """Return the answers to each task, one text of + and - for each trial: in the curriculum, and where it is alone.

    Args:
        results: The numbers of the tasks.
        members: The cells of each agent in each scenario.
        cells: All cells, those of single tasks among them.
    """
    sources = _find_sources(results, members, cells)
    here, there = _collect_marks(sources.drawn), _collect_marks(sources.drawn_alone)
    names = [task.task for task in results.tasks]
    return {name: ([m for _, m in here.get(name, [])], [m for _, m in there.get(name, [])]) for name in names}
