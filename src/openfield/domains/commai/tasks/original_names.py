"""The class names of the original's configuration files, and the classes here that they stand for.

Only the class name counts, not its module: the original moved classes around. `original_packages` lets a Python
configuration import them from the packages they had.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from openfield.domains.commai.environment import schedulers
from openfield.domains.commai.environment.grid_world import GridWorld
from openfield.domains.commai.environment.task import Task
from openfield.domains.commai.tasks.catalogue import CATALOGUE
from openfield.domains.commai.tasks.draws import load_phrasebook
from openfield.domains.commai.tasks.legacy import LEGACY

SCHEDULERS: Mapping[str, Callable[..., schedulers.Scheduler]] = {
    "RandomTaskScheduler": schedulers.RandomScheduler,
    "SequentialTaskScheduler": schedulers.SequentialScheduler,
    "IncrementalTaskScheduler": schedulers.IncrementalScheduler,
    "ConsecutiveTaskScheduler": schedulers.ConsecutiveScheduler,
    "DependenciesTaskScheduler": schedulers.DependenciesScheduler,
}
_OLD_PACKAGES = ("core", "tasks", "worlds")

_MICRO = re.compile(r"Micro(?:Task)?(\d+)(?:Sub(\d+))?(?:Task)?")
_MINI = re.compile(r"TaskSet(\d)(?:Task)?")
_LEGACY = {group: {name.lower(): f"{group}.{name}" for name in tasks} for group, tasks in LEGACY.items()}


def find_task(path: str) -> str | None:
    """Return the id of the task with this dotted class name, or None.

    Names of legacy tasks that occur in two sets are told apart by their module.
    """
    parts = path.split(".")
    name = parts[-1]
    micro, mini = _MICRO.fullmatch(name), _MINI.fullmatch(name)
    if micro:
        wanted = f"micro{micro[1]}.{micro[2]}" if micro[2] else f"micro{micro[1]}"
        return wanted if wanted in CATALOGUE else None
    if mini:
        return f"mini{mini[1]}" if f"mini{mini[1]}" in CATALOGUE else None
    name = name.removesuffix("Task").lower()
    name = load_phrasebook().short_names.get(name, name)
    modules = ["small" if module == "micro" else module for module in parts[:-1]]
    return next((_LEGACY[group][name] for group in [*modules, *_LEGACY] if name in _LEGACY.get(group, {})), None)


def make_alias(path: str) -> Any:
    """Return a stand-in for a dotted class name in a Python configuration; calling it makes the object."""
    task, name = find_task(path), path.rpartition(".")[2]
    if task is not None:
        return partial(_make_task, task)
    return GridWorld if name == "GridWorld" else SCHEDULERS.get(name)


def _make_task(name: str, world: GridWorld | None = None) -> Task:
    """Make a task as a task class of the original does: with a world or without."""
    task = CATALOGUE[name](name)
    if world is not None:
        task.world = world
    return task


@contextmanager
def original_packages() -> Iterator[None]:
    """Make `from core.scheduler import ...` and the like find our classes, whatever else has these names."""
    finder = _OldNames()
    others = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] in _OLD_PACKAGES}
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if isinstance(sys.modules[name], _OldModule)]:
            del sys.modules[name]
        sys.modules.update(others)


class _OldModule(types.ModuleType):
    """A module of the original, which finds every class by its name."""

    def __getattr__(self, name: str) -> Any:
        found = None if name.startswith("__") else make_alias(f"{self.__name__}.{name}")
        if found is None:
            raise AttributeError(f"openfield has nothing for {self.__name__}.{name} of the original.")
        return found


class _OldNames:
    """Finds modules of the original's packages."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        """Return a spec for `core`, `tasks`, `worlds` and the modules below; a capitalised name is a class."""
        first, last = name.split(".")[0], name.rpartition(".")[2]
        if first not in _OLD_PACKAGES or last[:1].isupper():
            return None
        return importlib.util.spec_from_loader(name, loader=self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> types.ModuleType:
        """Return an empty stand-in."""
        return _OldModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: there is no code to run."""
