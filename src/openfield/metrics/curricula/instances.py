"""The tasks of a cell as recorded: instances, visits, and the steps after which tasks were solved.

One cell -> values that `gradual`, `borders` and `tasks` measure. It works on every domain whose episodes have a detail
with their `task`, the answer to each question (`marks`, a text of + and -), the number of `steps`, whether they were
`solved`, and the number of `interruptions`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Annotated, Any

import msgspec

from openfield.journal.reader import CellRecord
from openfield.metrics.performance import assume_curriculum

STREAK, STRICT_STREAK = 5, 20
"""Instances in a row that solve a task: in the original curriculum, and enough to rule out luck."""

Whole = Annotated[int, msgspec.Meta(ge=0)]


class TaskInstance(msgspec.Struct, frozen=True):
    """One instance of a task, as the detail of its episode gives it."""

    task: str
    marks: str
    """The answer to each question: + or -."""
    steps: Whole
    interruptions: Whole
    solved: bool | float | None
    """By the criterion in force; None if it has no verdict."""
    original: bool | float | msgspec.UnsetType | None = msgspec.UNSET
    """By the original criterion, where the criterion in force is the strict one."""
    needs: Annotated[int, msgspec.Meta(ge=1)] = STREAK
    """The instances in a row that solve its task."""
    at: Whole = 0
    """Its place in the curriculum, from 1; 0 if the curriculum has no order."""
    of: Whole = 0
    """The places of the curriculum, those of a retest included."""

    @property
    def is_original_success(self) -> bool:
        """Whether it is solved by the original criterion."""
        return bool(self.solved if self.original is msgspec.UNSET else self.original)


class Visit(msgspec.Struct, frozen=True):
    """The instances of a task that follow each other."""

    task: str
    start: int
    """The steps of the trial before it."""
    instances: tuple[TaskInstance, ...]
    again: bool
    """Whether it belongs to the retest."""

    @property
    def steps(self) -> int:
        """Its steps."""
        return sum(instance.steps for instance in self.instances)

    @property
    def solved_after(self) -> int | None:
        """The steps from its start until its task is solved; None if it is left unsolved."""
        return steps_to_solve(self.instances)


def read_instances(cell: CellRecord) -> list[TaskInstance]:
    """Return the instances of a cell; other episodes are left out."""
    found = []
    for episode in cell.episodes:
        with suppress(msgspec.ValidationError):
            found.append(msgspec.convert(episode.detail, TaskInstance))
    return found


def list_visits(cell: CellRecord) -> list[Visit]:
    """Return the visits of a cell to its tasks, in order."""
    retested = assume_curriculum(cell.trial).retested
    visits: list[Visit] = []
    start = 0
    for _, group in itertools.groupby(read_instances(cell), key=lambda each: (each.at, each.task)):
        instances = tuple(group)
        first = instances[0]
        visits.append(Visit(first.task, start, instances, retested and 2 * first.at > first.of))
        start += visits[-1].steps
    return visits


def first_instances(cell: CellRecord) -> dict[str, list[TaskInstance]]:
    """Return the instances of each task of the curriculum, without those of a retest, in order of appearance."""
    wanted = assume_curriculum(cell.trial).tasks
    tasks: dict[str, list[TaskInstance]] = {}
    for visit in list_visits(cell):
        if not visit.again and (not wanted or visit.task in wanted):
            tasks.setdefault(visit.task, []).extend(visit.instances)
    return tasks


def count_tasks(cell: CellRecord) -> int:
    """Return how many tasks the curriculum of a cell has, whether or not it came to them; at least 1."""
    plan, instances = assume_curriculum(cell.trial), read_instances(cell)
    places = next((instance.of for instance in instances if instance.of), 0) // (1 + plan.retested)
    return len(plan.tasks) or places or max(len({instance.task for instance in instances}), 1)


def solving_steps(cell: CellRecord) -> dict[str, int]:
    """Return for each task that was solved the steps from the start of the trial until then. A retest is left out."""
    wanted = assume_curriculum(cell.trial).tasks
    done, streaks, solved = 0, dict[str, int](), dict[str, int]()
    for visit in list_visits(cell):
        for instance in () if visit.again else visit.instances:
            done += instance.steps
            streak = streaks[visit.task] = streaks.get(visit.task, 0) + 1 if instance.is_original_success else 0
            if streak >= instance.needs and (not wanted or visit.task in wanted):
                solved.setdefault(visit.task, done)
    return solved


def steps_to_solve(instances: Sequence[TaskInstance]) -> int | None:
    """Return the steps of these instances until their task is solved by the original criterion; None if never."""
    end = count_to_solve([instance.is_original_success for instance in instances], instances[0].needs)
    return None if end is None else sum(instance.steps for instance in instances[:end])


def count_to_solve(successes: Iterable[Any], needed: int) -> int | None:
    """Return after how many instances enough in a row were solved; None if never."""
    streak = 0
    for number, success in enumerate(successes, 1):
        streak = streak + 1 if success else 0
        if streak >= needed:
            return number
    return None
