"""The part of the page about a curriculum: which task was played when, learning curves, and a table of the tasks.

Stands in report: summary and cells -> drawings -> page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

from openfield.journal.reader import CellRecord
from openfield.metrics.curricula.instances import Visit, assume_curriculum, first_instances, list_visits
from openfield.metrics.curricula.tasks import CurriculumResults, TaskResults, pick_scratch
from openfield.metrics.performance import mean
from openfield.metrics.scenario import Key
from openfield.metrics.stats import Bounds, Estimate
from openfield.report.chart import Frame, draw_grid, draw_key, draw_line, pick_evenly, wrap_svg
from openfield.report.tables import Link, draw_estimate, draw_head, draw_table, keep_plain

MAX_POINTS = 30
"""Points of a learning curve: more cannot be told apart at the size drawn."""
MAX_OPEN = 12
"""Tasks whose learning curves are shown at once; more are folded in."""
MAX_NAME = 16
"""Letters of a task's name that fit beside its row."""
ROW = 15
"""The height of a task's row in the picture of a curriculum."""
TIMES = (
    ('<path class="w" d="M1 3h14v5h14"/>', "a trial, from task to task"),
    ('<path class="w q" d="M15 5h0"/>', "task solved"),
)
RETEST = ('<path class="w v" d="M1 5h28"/>', "retest")
CURVES = (('<path class="p" d="M1 5h28"/>', "in the curriculum"),)
ALONE = ('<path class="b" d="M1 5h28"/>', "alone")
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
    """The cells that the tasks of an agent in a scenario are drawn from."""

    counted: list[CellRecord]
    """Those that numbers are made of, failed ones included if they count."""
    alone: dict[str, list[CellRecord]]
    """Task -> those that play it alone, beside the counted ones."""
    drawn: list[CellRecord]
    """Those with a course to draw."""
    drawn_alone: list[CellRecord]
    """Those of single tasks, beside the drawn ones."""


def draw_curricula(
    results: Sequence[CurriculumResults],
    members: Mapping[Key, Sequence[CellRecord]],
    cells: Sequence[CellRecord],
    faint: int,
    link: Link = keep_plain,
) -> str:
    """Draw the tasks of agents in one scenario: when they were played, how they were learnt, and their numbers.

    Args:
        results: The numbers of the tasks, for each agent.
        members: The cells of each agent in each scenario.
        cells: All cells, those of single tasks among them.
        faint: How many trials a picture shows at most; none leaves out the pictures.
        link: Links each number, each curve and the line of each trial to its cells.
    """
    known = [_find_sources(one, members, cells) for one in results]
    drawn = [(one, sources) for one, sources in zip(results, known, strict=True) if sources.drawn] if faint else []
    times = "".join(_draw_times(one, sources, faint, link) for one, sources in drawn)
    curves = "".join(_draw_curves(one, sources, link) for one, sources in drawn)
    again = any(visit.again for _, sources in drawn for cell in sources.drawn for visit in list_visits(cell))
    paired = any(sources.drawn_alone for _, sources in drawn)
    pictures = (
        "<h3>The curriculum over time</h3>",
        draw_key(*TIMES, *([RETEST] if again else [])),
        f'<div class="panels">{times}</div><h3>Learning curves</h3>',
        draw_key(*CURVES, *([ALONE] if paired else [])),
        curves,
    )
    tables = (_draw_tasks(one, sources, link) for one, sources in zip(results, known, strict=True))
    return "".join((*(pictures if drawn else ()), *tables))


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


def _draw_tasks(results: CurriculumResults, sources: TaskCells, link: Link) -> str:
    """Draw the numbers of an agent's tasks as a table."""
    budget, tasks = results.task_steps, results.tasks
    columns = ["solved", *(["steps"] if budget else [])]
    columns += [name for name in ("alone", "transfer", "retention") if any(getattr(task, name) for task in tasks)]
    rows = [_draw_row(task, columns, budget, sources, link) for task in tasks]
    if results.transfer is not None:
        both = [*sources.counted, *(cell for found in sources.alone.values() for cell in found)]
        cells = (_draw_cell(results.transfer if name == "transfer" else None, None, both, link) for name in columns)
        rows.append(f"<th scope=row>all tasks</th>{''.join(cells)}")
    reading = (READING.format(budget) if budget else NO_TIMES) + (RETAINED if "retention" in columns else "")
    reading += f" Version of the agent: {results.versions}." if results.versions else ""
    head = draw_head(["Task", *(name.capitalize() for name in columns)])
    return f"<h3>Tasks: {escape(results.agent)}</h3><p>{escape(reading)}</p>{draw_table(head, rows, 'wide tasks')}"


def _draw_row(task: TaskResults, columns: Sequence[str], budget: int | None, sources: TaskCells, link: Link) -> str:
    alone = sources.alone.get(task.task, [])
    made_of = {"alone": alone, "transfer": [*sources.counted, *alone]}
    ranges: dict[str, Bounds] = {"solved": (0.0, 1.0)}
    ranges |= {"steps": (0.0, budget), "alone": (0.0, budget)} if budget else {}
    cells = (
        _draw_cell(getattr(task, column), ranges.get(column), made_of.get(column, sources.counted), link)
        for column in columns
    )
    return f"<th scope=row>{escape(task.task)}</th>{''.join(cells)}"


def _draw_cell(estimate: Estimate | None, bounds: Bounds | None, cells: Sequence[CellRecord], link: Link) -> str:
    if estimate is None:
        return '<td class="soft">–</td>'
    return f"<td>{link(draw_estimate(estimate, bounds), cells)}</td>"


def _draw_times(results: CurriculumResults, sources: TaskCells, faint: int, link: Link) -> str:
    """Draw which task was played when, one line for each trial, with a dot where a task is solved."""
    names, cells = [task.task for task in results.tasks], sources.drawn
    chosen = [(cell, list_visits(cell)) for cell in pick_evenly(cells, faint)]
    steps = max((visits[-1].start + visits[-1].steps for _, visits in chosen if visits), default=0)
    widest = max(min(len(name), MAX_NAME) for name in names)
    frame = Frame(0, max(steps, 1), 380, ROW * len(names) + 24, left=10 + round(5.6 * widest), right=14, top=4)
    body = "".join(_draw_name(frame, row, name) for row, name in enumerate(names))
    body += "".join(
        link(course, [cell], "line") for cell, visits in chosen if (course := _draw_course(frame, names, visits))
    )
    body += "".join(
        f'<text class="t {kind}" x="{frame.x(at)}" y="{frame.height - 5}">{words}</text>'
        for at, kind, words in ((0, "m", "0"), (steps, "e", f"{steps:,} steps"))
    )
    which = f"{len(chosen)} of {len(cells)} trials" if len(chosen) < len(cells) else f"{len(cells)} trials"
    caption = f"<figcaption><b>{escape(results.agent)}</b> <small>{link(which, cells)}</small></figcaption>"
    return f"<figure>{caption}{wrap_svg(frame, f'{results.agent}: the task at each step, {which}', body)}</figure>"


def _draw_name(frame: Frame, row: int, name: str) -> str:
    y, short = _row(row), name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"
    line = f'<path class="g" d="M{frame.left} {y}H{frame.width - frame.right}"/>'
    return f'{line}<text class="t e" x="{frame.left - 6}" y="{y + 4}">{escape(short)}</text>'


def _draw_course(frame: Frame, names: Sequence[str], visits: Sequence[Visit]) -> str:
    """Draw the way of one trial through the tasks; tasks that are none of the curriculum have no row."""
    known = [visit for visit in visits if visit.task in names]
    once, again = ([visit for visit in known if visit.again is retest] for retest in (False, True))
    dots = "".join(
        f"M{frame.x(visit.start + after)} {_row(names.index(visit.task))}h0"
        for visit in known
        if (after := visit.solved_after) is not None
    )
    lines = "".join(
        f'<path class="{kind}" d="{_climb(frame, names, part)}"/>'
        for kind, part in (("w", once), ("w v", again))
        if part
    )
    return lines + (f'<path class="w q" d="{dots}"/>' if dots else "")


def _climb(frame: Frame, names: Sequence[str], visits: Sequence[Visit]) -> str:
    """Return the path of steps from task to task."""
    path = f"M{frame.x(visits[0].start)} {_row(names.index(visits[0].task))}"
    for visit in visits:
        path += f"V{_row(names.index(visit.task))}H{frame.x(visit.start + visit.steps)}"
    return path


def _row(number: int) -> int:
    return 10 + ROW * number


def _draw_curves(results: CurriculumResults, sources: TaskCells, link: Link) -> str:
    """Draw the share of right answers in each task as questions go by, in the curriculum and alone."""
    here, there = _collect_marks(sources.drawn), _collect_marks(sources.drawn_alone)
    figures = "".join(
        _draw_curve(each, sources.counted, here.get(each.task, []), there.get(each.task, []), link)
        for each in results.tasks
    )
    agent, state = escape(results.agent), " open" if len(results.tasks) <= MAX_OPEN else ""
    return (
        f"<details{state}><summary><b>{agent}</b>, task by task <small>share of right answers, question by question, "
        f'mean of the trials that are still at it</small></summary><div class="trials">{figures}</div></details>'
    )


def _draw_curve(
    task: TaskResults, counted: Sequence[CellRecord], here: Sequence[Marks], there: Sequence[Marks], link: Link
) -> str:
    name = escape(task.task)
    longest = max((len(marks) for _, marks in (*here, *there)), default=0)
    if not longest:
        return f"<figure><figcaption><b>{name}</b> · no question</figcaption></figure>"
    size = math.ceil(longest / MAX_POINTS)
    both = [
        (kind, average_marks([marks for _, marks in found], size))
        for kind, found in (("b", there), ("p", here))
        if found
    ]
    last = max(at for _, curve in both for at, _ in curve)
    frame = Frame(0, last, 232, 96, left=20, right=6, top=8, bottom=16)
    lines = "".join(draw_line(kind, frame, curve) for kind, curve in both)
    end = f'<text class="t e" x="{frame.x(last)}" y="{frame.height - 3}">{last:,} questions</text>'
    drawing = wrap_svg(frame, f"{task.task}: share of right answers", draw_grid(frame) + lines + end)
    caption = f"<b>{name}</b> · solved {link(escape(str(task.solved)), counted)}"
    plot = link(drawing, [cell for cell, _ in (*here, *there)], "plot")
    return f"<figure><figcaption>{caption}</figcaption>{plot}</figure>"


def _collect_marks(cells: Iterable[CellRecord]) -> dict[str, list[Marks]]:
    """Return the marks of each task, one text for each cell that came to it, without a retest."""
    found: dict[str, list[Marks]] = {}
    for cell in cells:
        for task, instances in first_instances(cell).items():
            found.setdefault(task, []).append((cell, "".join(instance.marks for instance in instances)))
    return found


def average_marks(trials: Sequence[str], size: int) -> list[tuple[int, float]]:
    """Return the share of right answers in each block of questions, where at least half of the trials have one."""
    curve: list[tuple[int, float]] = []
    for start in range(0, max(map(len, trials), default=0), size):
        blocks = [marks[start : start + size] for marks in trials if len(marks) > start]
        share = mean([block.count("+") / len(block) for block in blocks])
        if share is not None and (2 * len(blocks) >= len(trials) or not curve):
            curve.append((start + size // 2, share))
    return curve
