"""From settings or a configuration file to a scheduler with new tasks, and to an environment.

Worlds, benchmarks and tests start here. A configuration is the original's JSON unchanged, one of its Python modules
with `create_tasks()`, or our TOML, which yields settings as well. Of the original's class names only the last part
counts, because it moved classes around. `original_packages` lets a Python configuration import them.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import runpy
import sys
import traceback
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from openfield.domains.commai.environment import schedulers
from openfield.domains.commai.environment.environment import BitEnvironment, Environment
from openfield.domains.commai.environment.grid_world import GridWorld
from openfield.domains.commai.environment.schedulers import Scheduler
from openfield.domains.commai.environment.serializers import make_serializer
from openfield.domains.commai.environment.task import Task
from openfield.domains.commai.settings import CommaiSettings
from openfield.domains.commai.tasks.catalogue import CATALOGUE, make_task, task_ids
from openfield.domains.commai.tasks.draws import load_phrasebook
from openfield.domains.commai.tasks.legacy import LEGACY
from openfield.errors import InvalidInput, UnknownName
from openfield.files.data import read_toml
from openfield.registry import load
from openfield.settings import make_settings

ARGUMENTS = {"max_time": 1, "failed_task_tolerance": 0}
"""The numbers a file may set for a single task, and their minimum."""


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


def open_scheduler(settings: CommaiSettings) -> Scheduler:
    """Make the scheduler of a trial: from a configuration of the original, a Python file, or the settings."""
    if settings.configuration:
        return _adjust(read_original(settings.configuration, "configuration"), settings)
    if settings.module:
        return _adjust(run_configuration(Path(settings.module)), settings)
    return make_scheduler(settings)


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
        return read_original(_read_json(path), str(path)), CommaiSettings()
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


def read_original(table: Any, name: str) -> Scheduler:
    """Return the scheduler of a configuration in the original's form: `worlds`, `tasks`, `scheduler`."""
    worlds = {key: _world(entry, f"{name}: worlds.{key}") for key, entry in _part(table, "worlds", name).items()}
    tasks = {
        key: _task(key, entry, worlds, f"{name}: tasks.{key}") for key, entry in _part(table, "tasks", name).items()
    }
    return _scheduler(_part(table, "scheduler", name), tasks, f"{name}: scheduler")


def run_configuration(path: Path) -> Scheduler:
    """Return the scheduler that `create_tasks()` of a Python file makes. The file must be in the working directory.

    While it runs, the original's packages `core`, `tasks` and `worlds` can be imported, with our classes in them.
    """
    if not path.resolve().is_relative_to(Path.cwd()):
        raise InvalidInput(f"{path} is not inside the working directory. Python configurations run only from there.")
    with original_packages():
        try:
            create = runpy.run_path(str(path)).get("create_tasks")
            if not callable(create):
                raise InvalidInput(f"{path} has no function create_tasks() that returns a scheduler.")
            made: Scheduler = create()
        except InvalidInput:
            raise
        except Exception as error:  # it may raise anything: it is the user's own code
            raise InvalidInput(f"{path}{_line_in(path, error)}: {type(error).__name__}: {error}") from error
    if not hasattr(made, "next_task"):
        raise InvalidInput(f"{path}: create_tasks() must return a scheduler, not {type(made).__name__}.")
    return made


def _read_json(path: Path) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}.") from None


def _part(table: Any, key: str, name: str) -> dict[str, Any]:
    """Return a table that must be there; it may be empty."""
    if not isinstance(table, Mapping) or not isinstance(table.get(key), dict):
        raise InvalidInput(
            f"{name}: the key '{key}' must be a table. Needed are 'worlds' (may be empty), 'tasks', 'scheduler'."
        )
    found: dict[str, Any] = table[key]
    return found


def _type_of(entry: Any, place: str) -> str:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("type"), str):
        raise InvalidInput(f"{place}: the key 'type' must be the dotted name of a class.")
    kind: str = entry["type"]
    return kind


def _world(entry: Any, place: str) -> GridWorld:
    if _type_of(entry, place).rpartition(".")[2] != "GridWorld":
        raise InvalidInput(f"{place}.type: unknown world '{entry['type']}'. Known: worlds.grid_world.GridWorld.")
    return GridWorld()


def _task(key: str, entry: Any, worlds: Mapping[str, GridWorld], place: str) -> Task:
    """Make a task with the name it has in the file, which reports use too."""
    path = _type_of(entry, place)
    kind = path if path in CATALOGUE else find_task(path)
    task = _own_task(path, key, place) if kind is None else CATALOGUE[kind](key)
    task.kind = kind or path
    args = entry.get("args") or {}
    if not isinstance(args, Mapping):
        raise InvalidInput(f"{place}.args must be a table of arguments, such as {{'max_time': 1000}}.")
    known = [argument for argument in ARGUMENTS if hasattr(task, argument)]
    for name, value in args.items():
        at = f"{place}.args.{name}"
        if name == "world":
            task.world = _lookup(value, worlds, "world", at)
        elif name in known:  # a number that its instances read
            setattr(task, name, _number(value, ARGUMENTS[name], at))
        else:
            raise InvalidInput(f"{at}: {UnknownName('argument', name, ['world', *known], label='Known')}")
    if entry.get("world") is not None:
        task.world = _lookup(entry["world"], worlds, "world", f"{place}.world")
    return task


def _own_task(path: str, key: str, place: str) -> Task:
    """Make a task of the user's own: a class in a module that can be imported."""
    module, _, name = path.rpartition(".")
    try:
        found = load(f"{module}:{name}") if module else None
    except (InvalidInput, UnknownName) as error:
        if isinstance(error.__cause__, ModuleNotFoundError):
            raise InvalidInput(f"{place}.type: {UnknownName('task', path, CATALOGUE, label='Ours')}") from None
        raise InvalidInput(f"{place}.type: {error}") from None
    if not (isinstance(found, type) and issubclass(found, Task)):
        raise InvalidInput(f"{place}.type: {path} is not a task: it must be a subclass of Task or MicroTask.")
    return found(key)


def _scheduler(entry: dict[str, Any], tasks: Mapping[str, Task], place: str) -> Scheduler:
    kind = _type_of(entry, place)
    make = SCHEDULERS.get(kind.rpartition(".")[2])
    if make is None:
        known = [f"core.scheduler.{name}" for name in SCHEDULERS]
        raise InvalidInput(f"{place}.type: {UnknownName('scheduler', kind, known, label='Known')}")
    args = entry.get("args") or {}
    if not isinstance(args, dict):
        raise InvalidInput(f"{place}.args must be a table.")
    known = [name for name in inspect.signature(make).parameters if name != "thresholds"]
    ready = {key: _scheduler_argument(key, value, known, tasks, f"{place}.args") for key, value in args.items()}
    if "tasks" not in ready:
        raise InvalidInput(f"{place}.args: the key 'tasks' must be the list of task ids.")
    try:
        return make(**ready)
    except (InvalidInput, UnknownName) as error:
        raise InvalidInput(f"{place}.args: {error}") from None


def _scheduler_argument(key: str, value: Any, known: Sequence[str], tasks: Mapping[str, Task], place: str) -> Any:
    if key not in known:
        raise InvalidInput(f"{place}: {UnknownName('argument', key, known, label='Known')}")
    place = f"{place}.{key}"
    if key == "tasks":
        return _tasks(value, tasks, place)
    if key == "tasks_dependencies":
        if not isinstance(value, list):
            raise InvalidInput(f"{place} must be a list of pairs of task ids.")
        return [_tasks(pair, tasks, place, exactly=2) for pair in value]
    if key != "cyclic":
        return _number(value, 1, place)
    if not isinstance(value, bool):
        raise InvalidInput(f"{place} must be true or false, not {value!r}.")
    return value


def _tasks(value: Any, tasks: Mapping[str, Task], place: str, exactly: int | None = None) -> list[Task]:
    """Return the tasks of a list of ids."""
    if not isinstance(value, list) or not value or len(value) != (exactly or len(value)):
        wanted = f"a list of {exactly}" if exactly else "a list of"
        raise InvalidInput(f"{place}: {value!r} must be {wanted} task ids.")
    return [_lookup(name, tasks, "task", place) for name in value]


def _lookup(name: Any, known: Mapping[str, Any], kind: str, place: str) -> Any:
    if not isinstance(name, str) or name not in known:
        raise InvalidInput(f"{place}: {UnknownName(kind, str(name), known, label='In this file')}")
    return known[name]


def _number(value: Any, minimum: int, place: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, int if minimum else int | float) or value < minimum:
        raise InvalidInput(f"{place} must be a number of at least {minimum}, not {value!r}.")
    return value


def _line_in(path: Path, error: BaseException) -> str:
    """Return the line of a file where an error arose, as text."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == path.resolve()]
    if isinstance(error, SyntaxError):
        lines.append(error.lineno)
    return f", line {lines[-1]}" if lines else ""


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
