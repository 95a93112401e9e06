"""From settings to an environment: new tasks, their scheduler, the serializer and the mode.

Worlds, benchmarks and tests start here. Configuration files are read in `configuration.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from openfield.domains.commai.environment.environment import BitEnvironment, Environment
from openfield.domains.commai.environment.schedulers import (
    ConsecutiveScheduler,
    DependenciesScheduler,
    IncrementalScheduler,
    RandomScheduler,
    Scheduler,
    SequentialScheduler,
)
from openfield.domains.commai.environment.serializers import make_serializer
from openfield.domains.commai.environment.task import Task
from openfield.domains.commai.settings import CommaiSettings
from openfield.domains.commai.tasks.catalogue import make_task, task_ids
from openfield.errors import InvalidInput, UnknownName


def make_environment(
    settings: CommaiSettings | None = None,
    seed: int = 0,
    scheduler: Scheduler | None = None,
    learner: str = "the learner",
) -> Environment:
    """Make an environment that shares nothing with another one.

    Args:
        settings: The domain's settings.
        seed: The seed of all randomness.
        scheduler: Chooses the tasks; by default the scheduler of the settings.
        learner: The name of the learner in error messages.
    """
    chosen = settings or CommaiSettings()
    kind = BitEnvironment if chosen.bit_mode else Environment
    return kind(scheduler or make_scheduler(chosen), chosen, seed, make_serializer(chosen, seed), learner)


def make_scheduler(settings: CommaiSettings) -> Scheduler:
    """Make the scheduler of these settings, with new tasks."""
    tasks = [make_task(name) for name in task_ids(settings.tasks) * (2 if settings.retest else 1)]
    threshold = settings.success_threshold
    if settings.scheduler == "random":
        return RandomScheduler(tasks)
    if settings.scheduler == "sequential":
        return SequentialScheduler(tasks)
    if settings.scheduler == "incremental":
        return IncrementalScheduler(tasks, threshold)
    if settings.scheduler == "dependencies":
        return DependenciesScheduler(tasks, _pairs(tasks, settings.dependencies), settings.unlock_threshold)
    strict = {task.name: max(task.minimum_threshold, threshold) for task in tasks} if settings.strict else None
    return ConsecutiveScheduler(tasks, threshold, settings.cyclic, strict)


def _pairs(tasks: Sequence[Task], dependencies: Sequence[str]) -> list[tuple[Task, Task]]:
    by_name = {task.name: task for task in tasks}
    pairs = []
    for entry in dependencies:
        first, arrow, then = (part.strip() for part in entry.partition(">"))
        if not arrow:
            raise InvalidInput(f"Setting 'dependencies' has {entry!r}. Write 'a>b' to say that b needs a.")
        for name in (first, then):
            if name not in by_name:
                raise UnknownName("task in setting 'dependencies'", name, by_name, label="In the curriculum")
        pairs.append((by_name[first], by_name[then]))
    return pairs
