"""The gradual design: a curriculum, and with the same seed each of its tasks alone.

`CommaiDomain.trials` makes these trials, and `metrics.curricula` compares them. The cost of a task in the curriculum,
divided into its cost alone, is the worth of the tasks before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from openfield.capabilities import Curriculum
from openfield.domains.commai.settings import STRICT_MINI_THRESHOLD, CommaiSettings
from openfield.errors import InvalidInput
from openfield.settings import make_settings, trial_settings
from openfield.trial import Trial

TASK_BUDGET = 10_000
"""The steps of each task where none are given: a perfect learner needs up to about 5,000."""


def complete_design(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of trials; the gradual design fills in a retest and the budgets that are not given."""
    given = {name: value for name, value in options.items() if name in CommaiSettings.__struct_fields__}
    if make_settings(CommaiSettings, given).design != "gradual":
        return dict(options)
    completed = {"retest": True, "task_budget": TASK_BUDGET} | given
    settings = make_settings(CommaiSettings, completed)
    _check(settings)
    visits = len(list_tasks(settings)) * (1 + settings.retest)
    steps = {"max_steps": visits * settings.task_budget} if settings.task_budget else {}
    return {**options, **steps, **completed}


def add_scratch(trials: Iterable[Trial]) -> Iterator[Trial]:
    """Yield each curriculum, and after it its tasks one by one, with the same seed."""
    for trial in trials:
        if trial.novelty:
            raise InvalidInput("The gradual design has no novelty: leave out the novelty, or the design.")
        yield trial
        settings = make_settings(CommaiSettings, trial.settings)
        for task in list_tasks(settings):
            alone = trial_settings(_isolate(settings, task))
            yield replace(trial, settings=alone, reference_for=trial.id)


def describe_curriculum(trial: Trial, settings: CommaiSettings) -> Curriculum:
    """Return a trial's curriculum as known before it is played."""
    tasks, budget = list_tasks(settings), settings.task_budget
    known = (
        "consecutive" if settings.module else _scheduler_of(settings)
    )  # the only one that a retest or budget changes
    repeats = _is_cyclic(settings) or trial.window is not None or known != "consecutive"
    own = budget if not repeats and 0 < len(tasks) * (1 + settings.retest) * budget <= settings.max_steps else None
    strict = settings.strict or repeats or bool(settings.module)
    return Curriculum(
        tasks=tuple(dict.fromkeys(tasks)),
        steps=len(tasks) * own if own else settings.max_steps,
        task_steps=own,
        retested=settings.retest and not repeats,
        strict=strict or _threshold_of(settings) >= STRICT_MINI_THRESHOLD,
    )


def list_tasks(settings: CommaiSettings) -> list[str]:
    """Return the names of the tasks in order; none for a Python configuration, which would have to be run."""
    from openfield.domains.commai.tasks.catalogue import task_ids

    if settings.module:
        return []
    if settings.configuration:
        named = _arguments(settings).get("tasks")
        return [str(name) for name in named] if isinstance(named, list) else []
    return task_ids(settings.tasks)


def _check(settings: CommaiSettings) -> None:
    if settings.module:
        raise InvalidInput("The gradual design plays single tasks of a JSON configuration or of the setting 'tasks'.")
    if _scheduler_of(settings) != "consecutive" or _is_cyclic(settings):
        raise InvalidInput("The gradual design needs tasks that follow each other once: scheduler=consecutive.")
    tasks = list_tasks(settings)
    if len(tasks) < 2 or len(set(tasks)) < len(tasks):
        raise InvalidInput("The gradual design needs a curriculum of two tasks or more, each of them once.")


def _isolate(settings: CommaiSettings, task: str) -> CommaiSettings:
    """Return the settings of a trial that plays one task alone, with as many steps as it has in the curriculum."""
    steps = settings.task_budget or settings.max_steps
    alone = replace(settings, retest=False, max_steps=steps)
    if not settings.configuration:
        return replace(alone, tasks=(task,))
    scheduler = settings.configuration["scheduler"]
    only = {**scheduler, "args": {**scheduler["args"], "tasks": [task]}}
    return replace(alone, configuration={**settings.configuration, "scheduler": only})


def _scheduler_of(settings: CommaiSettings) -> str:
    """Return the name of the scheduler; empty where that is known only after running a Python configuration."""
    if settings.module or not settings.configuration:
        return "" if settings.module else settings.scheduler
    kind = str(_part(settings.configuration, "scheduler").get("type", ""))
    return kind.rpartition(".")[2].removesuffix("TaskScheduler").lower()


def _is_cyclic(settings: CommaiSettings) -> bool:
    return bool(_arguments(settings).get("cyclic")) if settings.configuration else settings.cyclic


def _threshold_of(settings: CommaiSettings) -> int:
    found = _arguments(settings).get("success_threshold") if settings.configuration else settings.success_threshold
    return found if isinstance(found, int) else 0


def _arguments(settings: CommaiSettings) -> dict[str, Any]:
    return _part(_part(settings.configuration, "scheduler"), "args")


def _part(table: dict[str, Any], key: str) -> dict[str, Any]:
    """Return a table within a recorded configuration, which may hold anything."""
    found = table.get(key)
    return found if isinstance(found, dict) else {}
