"""From settings or a configuration file to a scheduler with new tasks, and to an environment.

Worlds, benchmarks and tests start here. A configuration is the original's JSON unchanged, one of its Python modules
with `create_tasks()` (both are loaded by `original/configuration.py`), or our TOML, which yields settings as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from openfield.domains.commai.environment import schedulers
from openfield.domains.commai.environment.environment import BitEnvironment, Environment
from openfield.domains.commai.environment.schedulers import Scheduler
from openfield.domains.commai.environment.serializers import make_serializer
from openfield.domains.commai.environment.task import Task
from openfield.domains.commai.original.configuration import read_json_configuration, read_original, run_configuration
from openfield.domains.commai.original.hosting import ForeignScheduler, HostedEnvironment, HostedTask, draw_seeded
from openfield.domains.commai.settings import CommaiSettings
from openfield.domains.commai.tasks.catalogue import make_task, task_ids
from openfield.errors import InvalidInput, UnknownName
from openfield.files.data import read_toml
from openfield.settings import make_settings


def make_environment(
    settings: CommaiSettings | None = None,
    seed: int = 0,
    scheduler: Scheduler | None = None,
) -> Environment:
    """Make an environment that shares nothing with another one.

    Args:
        settings: The domain's settings.
        seed: The seed of all randomness.
        scheduler: Chooses the tasks; by default the scheduler of the settings.
    """
    chosen = settings or CommaiSettings()
    scheduler = scheduler or make_scheduler(chosen)
    kind: type[Environment] = BitEnvironment if chosen.bit_mode else Environment
    if isinstance(scheduler, ForeignScheduler) or any(isinstance(task, HostedTask) for task in scheduler.tasks):
        kind = HostedEnvironment
    return kind(scheduler, chosen, seed, make_serializer(chosen, seed))


def make_scheduler(settings: CommaiSettings) -> Scheduler:
    """Make the scheduler of these settings, with new tasks."""
    return _adjust(_choose_scheduler(settings), settings)


def _choose_scheduler(settings: CommaiSettings) -> Scheduler:
    again = settings.retest and settings.scheduler != "consecutive"
    tasks = [make_task(name) for name in task_ids(settings.tasks) * (2 if again else 1)]
    threshold = settings.success_threshold
    if settings.scheduler == "random":
        return schedulers.RandomScheduler(tasks)
    if settings.scheduler == "sequential":
        return schedulers.SequentialScheduler(tasks)
    if settings.scheduler == "incremental":
        return schedulers.IncrementalScheduler(tasks, threshold)
    if settings.scheduler == "dependencies":
        pairs = _pairs(tasks, settings.dependencies)
        return schedulers.DependenciesScheduler(tasks, pairs, settings.unlock_threshold)
    strict = {task.name: max(task.minimum_threshold, threshold) for task in tasks} if settings.strict else None
    return schedulers.ConsecutiveScheduler(tasks, threshold, settings.cyclic, strict)


def open_scheduler(settings: CommaiSettings, seed: int = 0) -> Scheduler:
    """Make the scheduler of a trial: from a configuration of the original, a Python file, or the settings.

    Code of users draws from the global generator, which has the trial's seed while tasks are made.
    """
    if settings.configuration:
        made = draw_seeded(seed, lambda: read_original(settings.configuration, "configuration"))
    elif settings.module:
        made = draw_seeded(seed, lambda: run_configuration(Path(settings.module)))
    else:
        return make_scheduler(settings)
    return _adjust(made, settings)


def _adjust(scheduler: Scheduler, settings: CommaiSettings) -> Scheduler:
    """Return a scheduler that knows the retest and the budget of these settings."""
    if isinstance(scheduler, schedulers.ConsecutiveScheduler):
        scheduler.task_budget = settings.task_budget
        if settings.retest:
            scheduler.tasks = [*scheduler.tasks] * 2
    elif settings.task_budget:
        raise InvalidInput("Setting 'task_budget' needs tasks that follow each other: scheduler=consecutive.")
    return scheduler


def load_configuration(source: str | Path | Mapping[str, Any]) -> tuple[Scheduler, CommaiSettings]:
    """Return the scheduler and the settings of a file, or of a mapping in the original's form.

    A TOML file has the settings at its top or in a table `[commai]`.

    Raises:
        InvalidInput: The file cannot be used. The message names the key and what would be right.
    """
    if isinstance(source, Mapping):
        return read_original(source, "the configuration"), CommaiSettings()
    path = Path(source)
    if not path.is_file():
        raise InvalidInput(f"There is no configuration file {path}.")
    if path.suffix == ".json":
        return read_original(read_json_configuration(path), str(path)), CommaiSettings()
    if path.suffix == ".toml":
        table = read_toml(path)
        values = table.get("commai", table)
        if not isinstance(values, dict):
            raise InvalidInput(f"{path}: commai must be a table of settings.")
        try:
            settings = make_settings(CommaiSettings, values)
            return make_scheduler(settings), settings
        except (InvalidInput, UnknownName) as error:
            raise InvalidInput(f"{path}: {error}") from None
    if path.suffix == ".py":
        return run_configuration(path), CommaiSettings()
    raise InvalidInput(f"{path} is not a configuration: its name must end in .json, .py or .toml.")


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
