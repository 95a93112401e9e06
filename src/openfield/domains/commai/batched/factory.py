"""From tasks and settings to a batch, compiled or not."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from openfield.domains.commai.batched.batch import Batch
from openfield.domains.commai.settings import CommaiSettings
from openfield.domains.commai.tasks.catalogue import MICRO, task_ids
from openfield.errors import InvalidInput, MissingExtra

Tasks = str | Sequence[str] | Sequence[Sequence[str]]
SETTINGS = (
    *("tasks", "scheduler", "success_threshold", "cyclic", "max_steps", "compat", "vocabulary", "distinct"),
    *("required_consecutive_rewards", "success_tolerance", "failed_task_tolerance", "alphabet_size", "mapping_size"),
)
"""The settings that a batch follows."""
SCHEDULERS = ("consecutive", "incremental", "sequential", "random")


def batch(
    tasks: Tasks,
    n: int,
    settings: CommaiSettings | None = None,
    seed: int | Sequence[int] = 0,
    compiled: bool | None = None,
) -> Batch:
    """Make n environments that are stepped in lockstep, to train a learner.

    Args:
        tasks: A micro task or a group such as `micro`; a list of them, which is the curriculum of every environment;
            or a list of n lists, one curriculum for each.
        n: The number of environments.
        settings: How tasks follow each other and when an instance is solved; see `SETTINGS` for those that count.
        seed: The seed of the first environment, and those of the others are the numbers behind it; or one for each.
        compiled: Whether to use numba; by default where it is installed.

    Raises:
        InvalidInput: A task or a setting cannot be batched.
        UnknownName: There is no such task.
    """
    if n < 1:
        raise InvalidInput(f"A batch needs at least one environment, not {n}.")
    chosen = settings or CommaiSettings()
    _check_settings(chosen)
    curricula = _read_curricula(tasks, n)
    if compiled is None:
        compiled = find_spec("numba") is not None
    if not compiled:
        from openfield.domains.commai.batched.plain import PlainBatch

        return PlainBatch(curricula, chosen, seed)
    try:
        from openfield.domains.commai.batched.compiled import CompiledBatch
    except ImportError:
        raise MissingExtra("fast", "compiled=True") from None
    return CompiledBatch(curricula, chosen, seed)


def _check_settings(settings: CommaiSettings) -> None:
    """Refuse what a batch cannot do."""
    default = CommaiSettings()
    for name in settings.__struct_fields__:
        if name not in SETTINGS and getattr(settings, name) != getattr(default, name):
            raise InvalidInput(f"Setting '{name}' cannot be batched. A batch follows: {', '.join(SETTINGS)}.")
    if settings.scheduler not in SCHEDULERS:
        known = ", ".join(SCHEDULERS)
        raise InvalidInput(f"Setting scheduler={settings.scheduler} cannot be batched. Use one of: {known}.")


def _read_curricula(tasks: Tasks, n: int) -> list[tuple[str, ...]]:
    """Return the task ids of each environment."""
    if isinstance(tasks, str):
        tasks = [tasks]
    if not tasks:
        raise InvalidInput("A batch needs at least one task.")
    if all(isinstance(each, str) for each in tasks):
        return [_read_curriculum(tasks)] * n  # type: ignore[arg-type]
    if len(tasks) != n or any(isinstance(each, str) or not each for each in tasks):
        raise InvalidInput(f"'tasks' must be names, or one list of names for each of the {n} environments.")
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    for each in tasks:
        if tuple(each) not in known:
            known[tuple(each)] = _read_curriculum(each)
    return [known[tuple(each)] for each in tasks]


def _read_curriculum(names: Sequence[str]) -> tuple[str, ...]:
    ids = tuple(task_ids(names))
    for name in ids:
        if name not in MICRO:
            raise InvalidInput(f"{name} is not a micro task. A batch plays only these: {', '.join(MICRO)}.")
    return ids
