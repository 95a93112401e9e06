"""Gradual learning: what the tasks of a curriculum took, and what earlier tasks were worth to later ones.

One cell -> numbers of its trial, and some measures of several cells. It works on every domain whose episodes have a
detail with their `task`, the answer to each question (`marks`, a text of + and -), the number of `steps`, whether they
were `solved`, and the number of `interruptions`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from openfield.journal.reader import CellRecord
from openfield.metrics.metric import built_in, undefined, worst_numbers
from openfield.metrics.performance import mean, planned_size

BLOCK = 100
"""Questions per point of a learning curve."""
STREAK, STRICT_STREAK = 5, 20
"""Instances in a row that solve a task: in the original curriculum, and so many that luck is not enough."""


class TaskEffort(msgspec.Struct, frozen=True):
    """The effort for one task."""

    task: str
    solved: bool
    """By the original criterion: enough instances solved in a row."""
    solved_strictly: bool
    steps: int
    """Until it was solved, or all if it was not."""
    questions: int
    instances: int
    success_rate: float
    """Of its instances."""
    accuracy: float | None
    """Of its answers."""
    interruptions: int


def task_efforts(cell: CellRecord) -> list[TaskEffort]:
    """Return the effort for each task until it was solved, in the order of first appearance.

    A task is solved by as many instances in a row as its curriculum asks for (`needs`).
    """
    tasks: dict[str, list[dict[str, Any]]] = {}
    for detail in _instances(cell):
        tasks.setdefault(detail["task"], []).append(detail)
    return [_row(task, instances) for task, instances in tasks.items()]


def learning_curve(cell: CellRecord, size: int = BLOCK) -> list[float]:
    """Return the share of right answers in each full block of questions."""
    marks = "".join(detail["marks"] for detail in _instances(cell))
    return [marks[at : at + size].count("+") / size for at in range(0, len(marks) - size + 1, size)]


def accuracy_by_index(cell: CellRecord, most: int = 50) -> list[float]:
    """Return the share of right answers to the first question of an instance, to the second, and so on."""
    columns = itertools.zip_longest(*(detail["marks"][:most] for detail in _instances(cell)))
    return [_accuracy("".join(mark for mark in column if mark)) or 0.0 for column in columns]


def transfer(ordered: CellRecord, scratch: Iterable[CellRecord]) -> dict[str, float]:
    """Return for each task its steps from scratch divided by its steps in the curriculum; above 1 the others helped.

    The cells from scratch have a single task each. Tasks that were not solved on both sides are left out.
    """
    alone = {row.task: row.steps for cell in scratch for row in task_efforts(cell) if row.solved}
    rows = [row for row in task_efforts(ordered) if row.solved and row.task in alone and row.steps]
    return {row.task: alone[row.task] / row.steps for row in rows}


def geometric_mean(ratios: Iterable[float]) -> float | None:
    """Return the geometric mean of ratios."""
    logarithms = [math.log(ratio) for ratio in ratios if ratio > 0]
    return math.exp(math.fsum(logarithms) / len(logarithms)) if logarithms else None


def retention(cell: CellRecord) -> dict[str, float]:
    """Return for each task that comes back its accuracy then, relative to its accuracy when it was left."""
    left: dict[str, float] = {}
    kept: dict[str, float] = {}
    for task, block in itertools.groupby(_instances(cell), key=lambda detail: detail["task"]):
        accuracies = [_accuracy(detail["marks"]) or 0.0 for detail in block]
        if task in left and task not in kept and left[task]:
            kept[task] = accuracies[0] / left[task]
        left[task] = accuracies[-1]
    return kept


def solved_within(cell: CellRecord, budget: int) -> float:
    """Return the share of a curriculum's tasks that were solved within a budget of steps."""
    rows, used, solved = task_efforts(cell), 0, 0
    for row in rows:
        used += row.steps
        solved += row.solved and used <= budget
    return solved / max(_size(cell) or len(rows), 1)


def measure_gradual(cell: CellRecord) -> dict[str, float | None]:
    """Compute all numbers of a cell."""
    details = list(_instances(cell))
    if cell.counts:
        return _measure_failed(cell, details)
    if not details:
        return undefined(GRADUAL)
    rows, marks = task_efforts(cell), "".join(detail["marks"] for detail in details)
    solved, size = [row for row in rows if row.solved], max(_size(cell) or len(rows), 1)
    verdicts = [detail for detail in details if detail["solved"] is not None]
    kept, curve = retention(cell), learning_curve(cell)
    return {
        "tasks_solved": len(solved) / size,
        "tasks_solved_strictly": sum(row.solved_strictly for row in rows) / size,
        "success": mean([float(detail["solved"]) for detail in verdicts]),
        "success_original": mean([float(detail.get("original", detail["solved"]) or 0) for detail in verdicts]),
        "accuracy": _accuracy(marks),
        "accuracy_last": curve[-1] if curve else None,
        "interruptions": 100 * sum(detail["interruptions"] for detail in details) / len(marks) if marks else None,
        "steps_to_solve": mean([float(row.steps) for row in solved]),
        "questions_to_solve": mean([float(row.questions) for row in solved]),
        "instances_to_solve": mean([float(row.instances) for row in solved]),
        "retention": mean(list(kept.values())),
    }


def _measure_failed(cell: CellRecord, details: Sequence[dict[str, Any]]) -> dict[str, float | None]:
    """Return the worst numbers of a cell: a task takes all steps of the trial, and those left are interruptions.

    Where neither the trial nor its domain's `max_steps` bounds the steps, these numbers are not defined.
    """
    worst = worst_numbers(GRADUAL, cell)
    if not (steps := sum(phase.steps for phase in cell.trial.phases) or planned_size(cell.trial, "max_steps")):
        return worst
    left = max(steps - sum(detail["steps"] for detail in details), 0)
    said = sum(detail["interruptions"] for detail in details)
    questions = sum(len(detail["marks"]) for detail in details)
    needed = dict.fromkeys(("steps_to_solve", "questions_to_solve", "instances_to_solve"), float(steps))
    return worst | needed | {"interruptions": 100 * (said + left) / max(questions, 1)}


def _row(task: str, instances: Sequence[dict[str, Any]]) -> TaskEffort:
    end = _solved_at(instances, instances[0].get("needs", STREAK), "original")
    strict = _solved_at(instances, STRICT_STREAK, "solved")
    taken = instances[: end or len(instances)]
    marks = "".join(detail["marks"] for detail in taken)
    return TaskEffort(
        task,
        end is not None,
        strict is not None or _is_strict(instances, end),
        sum(detail["steps"] for detail in taken),
        len(marks),
        len(taken),
        sum(bool(detail["solved"]) for detail in taken) / len(taken),
        _accuracy(marks),
        sum(detail["interruptions"] for detail in taken),
    )


def _solved_at(instances: Sequence[dict[str, Any]], needed: int, key: str) -> int | None:
    """Return after how many instances enough in a row were solved; None if never."""
    run = 0
    for number, detail in enumerate(instances, 1):
        run = run + 1 if detail.get(key, detail["solved"]) else 0
        if run >= needed:
            return number
    return None


def _is_strict(instances: Sequence[dict[str, Any]], end: int | None) -> bool:
    """Return whether instances were played by the strict criterion, whose streaks cover all keys, and solved by it."""
    played = "original" in instances[0] and len(instances[0]["marks"]) > 1
    needed = instances[0].get("needs", STREAK)
    return played and end is not None and _solved_at(instances, needed, "solved") is not None


def _instances(cell: CellRecord) -> Iterator[dict[str, Any]]:
    for episode in cell.episodes:
        if isinstance(episode.detail, dict) and {"task", "marks", "steps"} <= episode.detail.keys():
            yield episode.detail


def _size(cell: CellRecord) -> int:
    return next((detail["of"] for detail in _instances(cell) if "of" in detail), 0)


def _accuracy(marks: str) -> float | None:
    return marks.count("+") / len(marks) if marks else None


GRADUAL = built_in("gradual", measure_gradual, counts_failures=True)
