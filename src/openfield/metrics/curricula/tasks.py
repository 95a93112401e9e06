"""The tasks of a curriculum one by one: solved or not, their steps, and what the tasks before them were worth.

All cells of an agent in a scenario, and its cells with single tasks -> estimates for each task. A task is compared with
itself played alone, with the same seeds. That is fair only if every task has the same steps of its own: where all tasks
share the steps of a trial, a late task has what the others left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from openfield.capabilities import Curriculum
from openfield.journal.reader import CellRecord
from openfield.metrics.confidence_sequences import RATIOS, follow_mean
from openfield.metrics.curricula.gradual import retention, task_efforts
from openfield.metrics.curricula.instances import first_instances, steps_to_solve
from openfield.metrics.performance import assume_curriculum, find_curriculum
from openfield.metrics.scenario import CurriculumResults, Key, TaskResults, are_of_control, describe_versions
from openfield.metrics.stats import (
    FROM_ZERO,
    Estimate,
    Intervals,
    Range,
    Ratio,
    Valid,
    bound_mean,
    estimate_mean,
    estimate_rate,
    estimate_ratio,
    mark_people,
)

Unit = int | str
"""The seed of a trial, or the person who played it."""
Values = dict[Unit, float]
"""Unit -> a value there; repeats of a trial, and trials of a person, are averaged."""


class TaskCourse(NamedTuple):
    """What `summarise_tasks` takes from one cell."""

    unit: Unit
    plan: Curriculum
    failed: bool
    steps: dict[str, int | None]
    """From the first step of each task that was met until it was solved; None if it was not."""
    success: dict[str, float]
    """The share of instances of each task that were solved until it was, or until it was left."""
    kept: dict[str, float]
    """The accuracy in the retest relative to when the task was left."""


def summarise_tasks(
    key: Key, played: Sequence[CellRecord], cells: Iterable[CellRecord], intervals: Intervals
) -> CurriculumResults | None:
    """Estimate the numbers of each task; None if the cells play no curriculum of two tasks or more.

    Args:
        key: The scenario and the agent.
        played: The cells of the agent in the scenario.
        cells: All cells, those that play single tasks among them.
        intervals: The rule of the intervals.
    """
    scenario, agent = key
    scored = [cell for cell in played if cell.is_scored and not cell.trial.is_unchanged_twin]
    if not scored or find_curriculum(scored[0].trial) is None:
        return None
    scratch = pick_scratch(scored, cells)
    ordered, alone = list(map(_trace, scored)), list(map(_trace, scratch))
    tasks = list(ordered[0].plan.tasks) or list(dict.fromkeys(task for course in ordered for task in course.steps))
    if len(tasks) < 2:
        return None
    budget = _find_budget([*ordered, *alone])
    found = tuple(_summarise_task(task, ordered, _pick(alone, task), budget, intervals) for task in tasks)
    whole = _relate(tasks, ordered, alone, budget, intervals) if budget and alone else None
    if any(cell.person for cell in scored):
        found, whole = tuple(map(_mark_people, found)), whole and mark_people(whole, True)
    versions = describe_versions([*scored, *scratch])
    valid: Valid = "anytime" if intervals == "anytime" else "fixed"
    return CurriculumResults(agent, scenario, budget, found, whole, versions, are_of_control(scored), valid)


def _mark_people(task: TaskResults) -> TaskResults:
    """Return the results of a task whose numbers say that they are over people."""
    found = msgspec.structs.asdict(task).items()
    marked = {name: mark_people(value, True) for name, value in found if isinstance(value, Estimate)}
    return msgspec.structs.replace(task, **marked)


def pick_scratch(played: Sequence[CellRecord], cells: Iterable[CellRecord]) -> list[CellRecord]:
    """Return the scored cells in which the agent of these cells plays their tasks alone."""
    wanted = {(cell.agent, cell.trial.id) for cell in played}
    return [cell for cell in cells if cell.is_scored and (cell.agent, cell.trial.reference_for) in wanted]


def _trace(cell: CellRecord) -> TaskCourse:
    instances = {} if cell.counts else first_instances(cell)
    return TaskCourse(
        cell.person or cell.trial.seed,
        assume_curriculum(cell.trial),
        bool(cell.counts),
        {task: steps_to_solve(found) for task, found in instances.items()},
        {} if cell.counts else {effort.task: effort.success_rate for effort in task_efforts(cell)},
        {} if cell.counts else retention(cell),
    )


def _summarise_task(
    task: str, ordered: Sequence[TaskCourse], alone: Sequence[TaskCourse], budget: int | None, intervals: Intervals
) -> TaskResults:
    solved = _average(ordered, lambda course: float(course.steps.get(task) is not None))
    success = _average(ordered, lambda course: course.success.get(task, 0.0))
    kept = _average(ordered, lambda course: _retained(course, task))
    return TaskResults(
        task,
        _estimate(solved, (0.0, 1.0), intervals, rate=True),
        _estimate(success, (0.0, 1.0), intervals, rate=True),
        _estimate(_times(ordered, task, budget), (0.0, budget), intervals) if budget else None,
        _estimate(_times(alone, task, budget), (0.0, budget), intervals) if budget and alone else None,
        _relate([task], ordered, alone, budget, intervals) if budget and alone else None,
        _estimate(kept, FROM_ZERO, intervals) if kept else None,
    )


def _relate(
    tasks: Sequence[str], ordered: Sequence[TaskCourse], alone: Sequence[TaskCourse], budget: int, intervals: Intervals
) -> Estimate | None:
    """Estimate the steps of tasks alone, divided by those in the curriculum, over seeds that have all these tasks.

    It is None where none of them was ever solved. A trial alone that the agent failed counts with no steps: with all of
    them, failing would raise the ratio.
    """
    if not any(course.steps.get(task) is not None for task in tasks for course in (*ordered, *alone)):
        return None  # two budgets that ran out say nothing about the worth of a task
    above = _add([_times(_pick(alone, task), task, budget, failed=0) for task in tasks])
    below = _add([_times(ordered, task, budget) for task in tasks])
    most = float(budget * len(tasks))
    found = Ratio(above, below, (most, most))
    usual = estimate_ratio(found)
    equal = usual.mean and usual.low is None  # as with equal times, bounds as far as a budget would say nothing
    return usual if equal else RATIOS[intervals](found)


def _times(courses: Sequence[TaskCourse], task: str, budget: int, failed: int | None = None) -> Values:
    """Return the steps from a task's first one until it is solved, cut at its budget, which a failed trial takes."""
    worst = budget if failed is None else failed

    def measure(course: TaskCourse) -> float:
        steps = course.steps.get(task)
        return float(worst if course.failed else budget if steps is None else min(steps, budget))

    return _average(courses, measure)


def _add(values: Sequence[Values]) -> Values:
    """Add the values of units that all of these have."""
    return {
        unit: math.fsum(each[unit] for each in values) for unit in values[0] if all(unit in each for each in values)
    }


def _retained(course: TaskCourse, task: str) -> float | None:
    return (0.0 if course.plan.retested else None) if course.failed else course.kept.get(task)


def _average(courses: Iterable[TaskCourse], measure: Callable[[TaskCourse], float | None]) -> Values:
    """Return a value for each seed or person; repeats are averaged, and cells without a value left out."""
    found: dict[Unit, list[float]] = {}
    for course in courses:
        if (value := measure(course)) is not None:
            found.setdefault(course.unit, []).append(value)
    return {unit: math.fsum(values) / len(values) for unit, values in found.items()}


def _estimate(values: Values, bounds: Range, intervals: Intervals, rate: bool = False) -> Estimate:
    sample = list(values.values())
    if sample and not rate and min(sample) == max(sample):
        return estimate_mean(sample, None)  # bounds as far as a budget would make an interval that says nothing
    if intervals == "anytime":
        return follow_mean(sample, bounds)
    if intervals == "conservative":
        return bound_mean(sample, bounds)
    return estimate_rate(sample) if rate else estimate_mean(sample, bounds)


def _find_budget(courses: Iterable[TaskCourse]) -> int | None:
    """Return the steps that every task has for itself, alone too; None unless they are the same everywhere."""
    budgets = {course.plan.task_steps for course in courses}
    return budgets.pop() if len(budgets) == 1 else None


def _pick(alone: Iterable[TaskCourse], task: str) -> list[TaskCourse]:
    return [course for course in alone if course.plan.tasks == (task,)]
