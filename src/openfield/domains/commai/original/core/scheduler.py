"""`core.scheduler` of the original: which task comes next.

User code subclasses these or writes its own with `get_next_task()` and `reward(result)`. In a trial the first five are
replaced by those of `environment/schedulers.py`, which do the same and draw from the trial's own generator.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any


class RandomTaskScheduler:
    """Chooses uniformly."""

    def __init__(self, tasks: Sequence[Any]) -> None:
        self.tasks = tasks

    def get_next_task(self) -> Any:
        """Return a random task."""
        return random.choice(self.tasks)

    def reward(self, result: Any) -> None:
        """Ignore the verdict."""


class SequentialTaskScheduler:
    """Gives each task one instance, in turn."""

    def __init__(self, tasks: Sequence[Any]) -> None:
        self.tasks = tasks
        self.i = 0

    def get_next_task(self) -> Any:
        """Return the next task in turn."""
        task = self.tasks[self.i % len(self.tasks)]
        self.i += 1
        return task

    def reward(self, result: Any) -> None:
        """Ignore the verdict."""


class IncrementalTaskScheduler:
    """Goes on to the next task after enough successes, in a circle."""

    def __init__(self, tasks: Sequence[Any], success_threshold: int = 2) -> None:
        self.tasks, self.success_threshold = tasks, success_threshold
        self.task_ptr = self.reward_count = 0

    def get_next_task(self) -> Any:
        """Return the current task, or the next one."""
        if self.reward_count >= self.success_threshold:
            self.reward_count, self.task_ptr = 0, (self.task_ptr + 1) % len(self.tasks)
        return self.tasks[self.task_ptr]

    def reward(self, result: Any) -> None:
        """Count a success."""
        if result > 0:
            self.reward_count += result


class ConsecutiveTaskScheduler:
    """Goes on to the next task after enough successes in a row; none comes after the last."""

    def __init__(self, tasks: Sequence[Any], success_threshold: int = 2, cyclic: bool = False) -> None:
        self.tasks, self.success_threshold, self.cyclic = tasks, success_threshold, cyclic
        self.task_ptr = self.reward_count = 0

    def get_next_task(self) -> Any:
        """Return the current task, the next one, or None."""
        if self.reward_count >= self.success_threshold:
            self.reward_count, self.task_ptr = 0, self.task_ptr + 1
        if self.cyclic:
            self.task_ptr %= len(self.tasks)
        return self.tasks[self.task_ptr] if self.task_ptr < len(self.tasks) else None

    def reward(self, result: Any) -> None:
        """Count a success; anything else starts again."""
        self.reward_count = self.reward_count + 1 if result == 1 else result


class DependenciesTaskScheduler:
    """Chooses uniformly among the tasks whose prerequisites were solved often enough. Each object counts for itself."""

    def __init__(
        self, tasks: Sequence[Any], tasks_dependencies: Sequence[Sequence[Any]], unlock_threshold: int = 10
    ) -> None:
        self.tasks, self.tasks_dependencies, self.unlock_threshold = tasks, tasks_dependencies, unlock_threshold
        self._solved: Counter[int] = Counter()
        self._current = 0

    def get_next_task(self) -> Any:
        """Return a random task that is unlocked."""
        locked = {
            id(then) for first, then in self.tasks_dependencies if self._solved[id(first)] < self.unlock_threshold
        }
        task = random.choice([task for task in self.tasks if id(task) not in locked])
        self._current = id(task)
        return task

    def reward(self, result: Any) -> None:
        """Count a success of the task that was chosen last."""
        if result > 0:
            self._solved[self._current] += result


class IntervalTaskScheduler:
    """The ancestor's: a task is available while the number of the iteration lies in its interval.

    Args:
        tasks: The tasks.
        intervals: For each task the first iteration in which it is available, and the first in which it no longer is.
        tasks_test: Other tasks for `train_mode=False`.
    """

    def __init__(
        self, tasks: Sequence[Any], intervals: Sequence[Sequence[float]], tasks_test: Sequence[Any] | None = None
    ) -> None:
        self.tasks, self.intervals, self.tasks_test = tasks, intervals, tasks_test
        self.iteration = 0

    def get_next_task(self, train_mode: bool = True) -> Any:
        """Return a random task that is available, or None."""
        if not train_mode and self.tasks_test:
            return random.choice(self.tasks_test)
        now = self.iteration
        self.iteration += 1
        available = [task for task, (start, end) in zip(self.tasks, self.intervals, strict=True) if start <= now < end]
        return random.choice(available) if available else None

    def reward(self, result: Any) -> None:
        """Ignore the verdict."""

    def step(self, reward: Any, train_mode: bool = True) -> None:
        """Ignore the verdict: the ancestor's name."""
