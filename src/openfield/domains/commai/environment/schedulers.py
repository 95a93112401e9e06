"""Schedulers choose the next task: at random, in turn, by successes, by successes in a row, or by dependencies.

The environment reports each verdict and then asks for a task. None ends the curriculum.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from openfield.domains.commai.environment.task import Task
from openfield.errors import InvalidInput, UnknownName


class Scheduler:
    """Chooses the task of each instance."""

    random_state: Any = None
    """The state of the global generator after code of users has made the tasks; None if there is no such code."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        if not tasks:
            raise InvalidInput("A scheduler needs at least one task; its list `tasks` is empty.")
        self.tasks = tasks

    def next_task(self, rng: random.Random) -> Task | None:
        """Return the task of the next instance, or None if the curriculum is finished."""
        raise NotImplementedError

    def record(self, result: int) -> None:
        """Take the verdict of the instance that just ended; by default ignore it."""

    @property
    def steps_left(self) -> int | None:
        """The steps left for the current task; None where it may take as many as it likes."""
        return None

    def spend(self, steps: int) -> None:
        """Take the steps of the instance that just ended; by default ignore them."""


class RandomScheduler(Scheduler):
    """Chooses uniformly."""

    def next_task(self, rng: random.Random) -> Task:
        """Return a random task."""
        return self.tasks[int(rng.random() * len(self.tasks))]


class SequentialScheduler(Scheduler):
    """Gives each task one instance, in turn, and starts again after the last."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        super().__init__(tasks)
        self._turns = itertools.cycle(tasks)

    def next_task(self, rng: random.Random) -> Task:
        """Return the next task in turn."""
        return next(self._turns)


class IncrementalScheduler(Scheduler):
    """Goes on to the next task after enough successes, in a circle. Failures take nothing away."""

    def __init__(self, tasks: Sequence[Task], success_threshold: int = 2) -> None:
        super().__init__(tasks)
        self.threshold = success_threshold
        self.position = 0
        self.streak = 0

    def next_task(self, rng: random.Random) -> Task:
        """Return the current task, or the next one after enough successes."""
        if self.streak >= self.threshold:
            self.streak, self.position = 0, self.position + 1
        return self.tasks[self.position % len(self.tasks)]

    def record(self, result: int) -> None:
        """Count a success."""
        if result > 0:
            self.streak += result


class ConsecutiveScheduler(Scheduler):
    """Goes on to the next task after enough successes in a row and ends the curriculum after the last.

    Args:
        tasks: The curriculum.
        success_threshold: Successes in a row that finish a task.
        cyclic: Whether the curriculum starts again instead of ending.
        thresholds: Other thresholds for some tasks, by name.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        success_threshold: int = 2,
        cyclic: bool = False,
        thresholds: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(tasks)
        self.threshold = success_threshold
        self._cyclic = cyclic
        self._thresholds = thresholds or {}
        self.position = 0
        """The index of the current task."""
        self.streak = 0
        """Its successes in a row."""
        self.task_budget = 0
        """The steps after which it is over without success; 0 if there is no such number."""
        self._spent = 0

    @property
    def steps_left(self) -> int | None:
        """The steps left of the current task's own budget; None if it has none."""
        return self.task_budget - self._spent if self.task_budget else None

    def spend(self, steps: int) -> None:
        """Count the steps of the current task."""
        self._spent += steps

    def next_task(self, rng: random.Random) -> Task | None:
        """Return the current task, the next one after enough successes in a row, or None after the last.

        A task that has used up its own budget is over as well.
        """
        if self.position < len(self.tasks):
            threshold = self._thresholds.get(self.tasks[self.position].name, self.threshold)
            if self.streak >= threshold or 0 < self.task_budget <= self._spent:
                self.streak, self._spent, self.position = 0, 0, self.position + 1
        if self._cyclic:
            self.position %= len(self.tasks)
        return self.tasks[self.position] if self.position < len(self.tasks) else None

    def record(self, result: int) -> None:
        """Count a success; any other result becomes the count itself, which is 0 for a failure."""
        self.streak = self.streak + 1 if result == 1 else int(result)


class DependenciesScheduler(Scheduler):
    """Chooses uniformly among the tasks whose prerequisites have been solved often enough.

    Args:
        tasks: All tasks.
        tasks_dependencies: Pairs (a, b): b needs a.
        unlock_threshold: Successes after which a task counts as solved. Each object counts for itself.
    """

    def __init__(
        self, tasks: Sequence[Task], tasks_dependencies: Iterable[Sequence[Task]] = (), unlock_threshold: int = 10
    ) -> None:
        super().__init__(tasks)
        self._threshold = unlock_threshold
        self._needs: dict[int, set[int]] = {id(task): set() for task in tasks}
        names = {id(task): task.name for task in tasks}
        for first, then in tasks_dependencies:
            for task in (first, then):
                if id(task) not in self._needs:
                    raise UnknownName("task in tasks_dependencies", task.name, names.values(), "Tasks")
            self._needs[id(then)].add(id(first))
        try:
            TopologicalSorter(self._needs).prepare()
        except CycleError as error:
            circle = " > ".join(names[each] for each in reversed(error.args[1]))
            raise InvalidInput(
                f"The dependencies form a circle: {circle}. Remove one pair of tasks_dependencies."
            ) from None
        self._solved: Counter[int] = Counter()
        self._current = 0

    def next_task(self, rng: random.Random) -> Task:
        """Return a random unlocked task."""
        unlocked = {
            each for each, needs in self._needs.items() if all(self._solved[n] >= self._threshold for n in needs)
        }
        task = rng.choice([task for task in self.tasks if id(task) in unlocked])
        self._current = id(task)
        return task

    def record(self, result: int) -> None:
        """Count a success for the task that was chosen last."""
        if result > 0:
            self._solved[self._current] += result


class IntrudedScheduler(Scheduler):
    """Another scheduler's choice, with an intruder it knows nothing of in every second instance, or another share."""

    def __init__(self, scheduler: Scheduler, intruder: Task, share: float = 0.5) -> None:
        self.tasks = scheduler.tasks
        self.scheduler = scheduler
        self.intruder = intruder
        self.share = share
        """The share of instances that the intruder takes from now on."""
        self._due = 1.0 - share  # the first instance is the intruder's
        self._intruding = False

    def next_task(self, rng: random.Random) -> Task | None:
        """Return the intruder whenever its share is due, and else the scheduler's choice."""
        self._due += self.share
        self._intruding = self.share > 0 and self._due > 1.0 - 1e-9
        if not self._intruding:
            return self.scheduler.next_task(rng)
        self._due -= 1.0
        return self.intruder

    def record(self, result: int) -> None:
        """Pass on the verdicts of the scheduler's own tasks."""
        if not self._intruding:
            self.scheduler.record(result)

    @property
    def steps_left(self) -> int | None:
        """The steps left for the scheduler's own task; an intruder has all it likes."""
        return None if self._intruding else self.scheduler.steps_left

    def spend(self, steps: int) -> None:
        """Pass on the steps of the scheduler's own tasks."""
        if not self._intruding:
            self.scheduler.spend(steps)
