"""Gradual learning: how much of a curriculum was solved, at what cost, and how much was kept.

One cell -> numbers of its trial. Times are steps from the start of the trial, and a task that is not solved takes the
whole budget: an agent must not look fast because it solves only easy tasks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import msgspec

from openfield.capabilities import Curriculum
from openfield.journal.reader import CellRecord
from openfield.metrics.curricula.instances import (
    STRICT_STREAK,
    TaskInstance,
    count_tasks,
    count_to_solve,
    first_instances,
    list_visits,
    read_instances,
    solving_steps,
)
from openfield.metrics.metric import Pooled, built_in, undefined, worst_numbers
from openfield.metrics.performance import assume_curriculum, mean
from openfield.metrics.scenario import unit_of
from openfield.metrics.stats import Estimate

BLOCK = 100
"""Questions per point of a learning curve."""
MAX_QUESTIONS = 50
"""Questions of an instance that are counted one by one, from the first on."""
BUDGETS = (1_000, 10_000, 100_000, 1_000_000)
"""Steps within which solved tasks are counted, as far as they were played."""
MEDIAN = "a median has no interval"
NOT_STRICT = Estimate(None, None, None, 0, "the curriculum leaves a task before it can be solved strictly")


class TaskEffort(msgspec.Struct, frozen=True):
    """The effort for one task."""

    task: str
    solved: bool
    """By the original criterion: enough instances solved in a row."""
    solved_strictly: bool | None
    """None if the curriculum leaves the task before it can be."""
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
    """Return the effort for each task until it was solved, in the order of first appearance, without a retest.

    A task is solved by as many instances in a row as its curriculum asks for (`needs`).
    """
    strict = assume_curriculum(cell.trial).strict
    return [_row(task, instances, strict) for task, instances in first_instances(cell).items()]


def learning_curve(cell: CellRecord, size: int = BLOCK) -> list[float]:
    """Return the share of right answers in each full block of questions."""
    marks = "".join(instance.marks for instance in read_instances(cell))
    return [marks[at : at + size].count("+") / size for at in range(0, len(marks) - size + 1, size)]


def accuracy_by_index(cell: CellRecord) -> list[float]:
    """Return the share of right answers to the first question of an instance, to the second, and so on."""
    columns = itertools.zip_longest(*(instance.marks[:MAX_QUESTIONS] for instance in read_instances(cell)))
    return [_accuracy("".join(mark for mark in column if mark)) or 0.0 for column in columns]


def retention(cell: CellRecord) -> dict[str, float]:
    """Return the accuracy of each solved task in the first instance of its retest, relative to when it was left.

    There is nothing to keep of a task that was never solved.
    """
    solved = {task for task, found in first_instances(cell).items() if _find_end(found) is not None}
    left: dict[str, float] = {}
    kept: dict[str, float] = {}
    for visit in list_visits(cell):
        accuracies = [_accuracy(instance.marks) or 0.0 for instance in visit.instances]
        if not visit.again:
            left[visit.task] = accuracies[-1]
        elif visit.task in solved and left.get(visit.task) and visit.task not in kept:
            kept[visit.task] = accuracies[0] / left[visit.task]
    return kept


def solved_within(cell: CellRecord, budget: int) -> float | None:
    """Return the share of a curriculum's tasks that were solved within a number of steps; None if fewer are played."""
    if budget > assume_curriculum(cell.trial).steps:
        return None
    times = {} if cell.counts else solving_steps(cell)
    return sum(steps <= budget for steps in times.values()) / count_tasks(cell)


def measure_gradual(cell: CellRecord) -> dict[str, float | None]:
    """Compute all numbers of a cell."""
    instances, plan = read_instances(cell), assume_curriculum(cell.trial)
    if cell.counts:
        return _measure_failed(cell, plan, instances)
    if not instances:
        return undefined(GRADUAL)
    rows, marks, size = task_efforts(cell), "".join(each.marks for each in instances), count_tasks(cell)
    solved, verdicts = [row for row in rows if row.solved], [each for each in instances if each.solved is not None]
    curve = learning_curve(cell)
    return {
        "tasks_solved": len(solved) / size,
        "tasks_solved_strictly": sum(bool(row.solved_strictly) for row in rows) / size if plan.strict else None,
        "success": mean([float(bool(each.solved)) for each in verdicts]),
        "success_original": mean([float(each.is_original_success) for each in verdicts]),
        "accuracy": _accuracy(marks),
        "accuracy_last": curve[-1] if curve else None,
        "interruptions": 100 * sum(each.interruptions for each in instances) / len(marks) if marks else None,
        **_measure_steps(cell, plan, size),
        "questions_to_solve": mean([float(row.questions) for row in solved]),
        "instances_to_solve": mean([float(row.instances) for row in solved]),
        "retention": mean(list(retention(cell).values())),
    }


def pool_gradual(cells: Sequence[CellRecord]) -> Pooled:
    """Compute the median of the steps to solve, and say where no task could be solved strictly."""
    known = [cell for cell in cells if not cell.trial.is_unchanged_twin and (cell.counts or read_instances(cell))]
    found: dict[str, Estimate] = {} if (middle := _estimate_median(known)) is None else {"steps_median": middle}
    if known and not any(assume_curriculum(cell.trial).strict for cell in known):
        found["tasks_solved_strictly"] = NOT_STRICT
    return found


def _estimate_median(known: Sequence[CellRecord]) -> Estimate | None:
    """Estimate the median of the steps to solve, over the tasks of all trials; repeats are one trial, or one person."""
    units = [unit_of(cell) for cell in known]
    times = [
        (steps, 1 / units.count(unit_of(cell)) / count_tasks(cell))
        for cell in known
        for steps in _list_times(cell, math.inf)
    ]
    budgets = {assume_curriculum(cell.trial).steps for cell in known}
    if not times or not all(budgets):
        return None
    middle, n = _find_median(times), len(set(units))
    if middle <= max(budgets):
        return Estimate(float(middle), None, None, n, MEDIAN)
    return Estimate(None, None, None, n, beyond=float(max(budgets)))


def _measure_steps(cell: CellRecord, plan: Curriculum, size: int) -> dict[str, float | None]:
    """Compute the numbers about steps from the start of the trial, where its budget is known."""
    shares = {f"solved_by_{budget}": solved_within(cell, budget) for budget in BUDGETS}
    if not plan.steps:
        return shares
    times = [min(steps, plan.steps) for steps in _list_times(cell, plan.steps)]
    return shares | {"steps_to_solve": math.fsum(times) / size, "steps_to_solve_all": float(max(times))}


def _list_times(cell: CellRecord, unsolved: float) -> list[float]:
    """Return the steps until each task of the curriculum was solved, and a number for those that were not."""
    times: list[float] = [] if cell.counts else list(solving_steps(cell).values())
    return times + [unsolved] * (count_tasks(cell) - len(times))


def _find_median(weighted: Iterable[tuple[float, float]]) -> float:
    """Return the lowest value that half of the weight does not exceed."""
    ordered = sorted(weighted)
    half, reached = math.fsum(weight for _, weight in ordered) / 2, 0.0
    for value, weight in ordered:
        reached += weight
        if reached >= half - 1e-9:
            return value
    return math.inf


def _measure_failed(cell: CellRecord, plan: Curriculum, instances: Sequence[TaskInstance]) -> dict[str, float | None]:
    """Return the worst numbers of a cell: a task takes all steps of the trial, and those left are interruptions.

    Where nothing bounds the steps, these numbers are not defined. Numbers that no trial of this kind has are left out.
    """
    worst = worst_numbers(GRADUAL, cell) | dict.fromkeys(f"solved_by_{budget}" for budget in BUDGETS)
    worst |= {} if plan.strict else {"tasks_solved_strictly": None}
    worst |= {} if plan.retested else {"retention": None}
    if not plan.steps:
        return worst
    left = max(_count_steps(plan) - sum(each.steps for each in instances), 0)
    said, questions = sum(each.interruptions for each in instances), sum(len(each.marks) for each in instances)
    needed = dict.fromkeys(("questions_to_solve", "instances_to_solve"), float(plan.steps))
    spoken = {"interruptions": 100 * (said + left) / max(questions, 1)}
    return worst | _measure_steps(cell, plan, count_tasks(cell)) | needed | spoken


def _count_steps(plan: Curriculum) -> int:
    """Return the steps that a trial can have, those of a retest included."""
    return plan.steps * (1 + (plan.retested and plan.task_steps is not None))


def _row(task: str, instances: Sequence[TaskInstance], strict: bool) -> TaskEffort:
    end = _find_end(instances)
    longest = count_to_solve((each.solved for each in instances), STRICT_STREAK)
    taken = instances[: end or len(instances)]
    marks = "".join(each.marks for each in taken)
    return TaskEffort(
        task,
        end is not None,
        longest is not None or _is_strict(instances, end) if strict else None,
        sum(each.steps for each in taken),
        len(marks),
        len(taken),
        sum(bool(each.solved) for each in taken) / len(taken),
        _accuracy(marks),
        sum(each.interruptions for each in taken),
    )


def _find_end(instances: Sequence[TaskInstance]) -> int | None:
    """Return after how many instances a task was solved by the original criterion; None if it was not."""
    return count_to_solve((each.is_original_success for each in instances), instances[0].needs)


def _is_strict(instances: Sequence[TaskInstance], end: int | None) -> bool:
    """Return whether instances were played by the strict criterion, whose streaks cover all keys, and solved by it."""
    first = instances[0]
    played = first.original is not msgspec.UNSET and len(first.marks) > 1
    return played and end is not None and count_to_solve((each.solved for each in instances), first.needs) is not None


def _accuracy(marks: str) -> float | None:
    return marks.count("+") / len(marks) if marks else None


GRADUAL = built_in("gradual", measure_gradual, pool=pool_gradual, counts_failures=True)
