"""Configurations of the original, JSON and Python, and the classes they name.

A dotted name is resolved by module and class: `my_tasks.MovingTask` is the user's, `tasks.competition.navigation.
MovingTask` is ours. The loaded objects are of the original's kind; `convert_scheduler` then replaces those that the
catalogue has faster, if a curriculum has no others. The two loaders are `core.config_loader` of the original.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from openfield.domains.commai.environment import grid_world, schedulers
from openfield.domains.commai.environment.task import Task
from openfield.domains.commai.original import hosting
from openfield.domains.commai.original.core import scheduler as original_schedulers
from openfield.domains.commai.original.core.task import Task as OriginalTask
from openfield.domains.commai.original.core.task import World
from openfield.domains.commai.original.grid_world import GridWorld
from openfield.domains.commai.original.imports import MODULES, NotShipped, is_old_name, user_folder
from openfield.domains.commai.tasks.catalogue import CATALOGUE
from openfield.domains.commai.tasks.draws import load_phrasebook
from openfield.domains.commai.tasks.legacy import LEGACY
from openfield.errors import InvalidInput, UnknownName, describe_error
from openfield.provenance.versions import Code, identify_source

ARGUMENTS = {"max_time": 1, "failed_task_tolerance": 0}
"""The numbers a file may set for a single task of ours, and their minimum."""
SCHEDULERS: dict[type, Callable[..., schedulers.Scheduler]] = {
    original_schedulers.RandomTaskScheduler: schedulers.RandomScheduler,
    original_schedulers.SequentialTaskScheduler: schedulers.SequentialScheduler,
    original_schedulers.IncrementalTaskScheduler: schedulers.IncrementalScheduler,
    original_schedulers.ConsecutiveTaskScheduler: schedulers.ConsecutiveScheduler,
    original_schedulers.DependenciesTaskScheduler: schedulers.DependenciesScheduler,
}
_MICRO = re.compile(r"Micro(?:Task)?(\d+)(?:Sub(\d+))?(?:Task)?")
_MINI = re.compile(r"TaskSet(\d)(?:Task)?")
_SHORT = {group: {name.lower(): f"{group}.{name}" for name in tasks} for group, tasks in LEGACY.items()}


@dataclass
class ConfiguredTask:
    """A task of a configuration."""

    task: Any
    """The task: one of the original's kind, or one of ours."""
    name: str
    kind: str
    """Its id in the catalogue, or else its class."""
    numbers: dict[str, Any] = field(default_factory=dict)
    """What the file sets for it."""


def find_task(path: str) -> str | None:
    """Return the id of the task of ours with this dotted class name, or None.

    Names that occur in two sets are distinguished by their module. Short names of classes are accepted too.
    """
    if path in CATALOGUE:
        return path
    *modules, name = path.split(".")
    if modules[:1] != ["tasks"]:
        return None
    micro, mini = _MICRO.fullmatch(name), _MINI.fullmatch(name)
    if micro or mini:
        wanted = f"mini{mini[1]}" if mini else _name_micro(micro)
        return wanted if wanted in CATALOGUE else None
    short = name.replace("Task", "").removeprefix("Sample").lower()
    short = load_phrasebook().short_names.get(short, short)
    groups = ["small" if module == "micro" else module for module in modules]
    return next((_SHORT[group][short] for group in [*groups, *_SHORT] if short in _SHORT.get(group, {})), None)


def _name_micro(found: re.Match[str] | None) -> str:
    number, part = found.groups() if found else ("", None)
    return f"micro{number}.{part}" if part else f"micro{number}"


def class_of(task: str) -> type:
    """Return the class of the original's kind for a task of the catalogue."""
    from openfield.domains.commai.original.tasks import challenge_micro, challenge_mini

    if task.startswith("micro"):
        return challenge_micro.CLASSES[challenge_micro.class_name(task)]
    if task.startswith("mini"):
        return challenge_mini.CLASSES[f"TaskSet{task[4:]}"]
    group, _, name = task.partition(".")
    module, class_name = LEGACY[group][name]
    found: type = getattr(importlib.import_module(module), class_name)
    return found


@functools.cache
def _ids() -> dict[type, str]:
    """Return the id of every class of ours."""
    return {class_of(task): task for task in CATALOGUE}


def load_class(path: str, place: str) -> Any:
    """Return the class at a dotted name.

    Raises:
        InvalidInput: A part is missing, which the message names.
    """
    module_name, _, name = path.rpartition(".")
    if not module_name:
        raise InvalidInput(f"{place}: '{path}' has no module. Write it like 'my_module.{path}'.")
    try:
        module = user_folder().import_module(module_name)
    except NotShipped as error:
        raise InvalidInput(f"{place}: {error}.") from None
    except (Exception, SystemExit) as error:
        where = _line_of(error)
        missing = str(error) if isinstance(error, ModuleNotFoundError) and not where else describe_error(error)
        raise InvalidInput(f"{place}: {path} cannot be loaded: {where}{missing}.") from error
    if not hasattr(module, name):
        raise InvalidInput(f"{place}: {UnknownName('class', name, _classes(module), label=f'In {module_name}')}")
    return getattr(module, name)


def _classes(module: ModuleType) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__ and not name.startswith("_")
    ]


def _line_of(error: BaseException) -> str:
    """Return the file and the line of the user's in which an error arose, as text."""
    files = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    own = [
        frame for frame in files if "openfield" not in Path(frame.filename).parts and "importlib" not in frame.filename
    ]
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}, line {error.lineno}: "
    return f"{Path(own[-1].filename).name}, line {own[-1].lineno}: " if own else ""


def read_objects(table: Any, name: str) -> tuple[Any, list[ConfiguredTask]]:
    """Return the scheduler of a configuration in the original's form, and its tasks."""
    worlds = {key: _world(entry, f"{name}: worlds.{key}") for key, entry in _part(table, "worlds", name).items()}
    entries = {
        key: _task(key, entry, worlds, f"{name}: tasks.{key}") for key, entry in _part(table, "tasks", name).items()
    }
    made = _scheduler(_part(table, "scheduler", name), entries, f"{name}: scheduler")
    return made, [*entries.values()]


def read_original(table: Any, name: str) -> schedulers.Scheduler:
    """Return the scheduler of a configuration in the original's form: `worlds`, `tasks`, `scheduler`."""
    return convert_scheduler(*read_objects(table, name), f"{name}: scheduler.args")


def run_configuration(path: Path) -> schedulers.Scheduler:
    """Return the scheduler that `create_tasks()` of a Python file makes. The file must be in the working directory."""
    made = _run(path)
    return made if isinstance(made, schedulers.Scheduler) else convert_scheduler(made, (), str(path))


def _run(path: Path) -> Any:
    if not path.resolve().is_relative_to(Path.cwd()):
        raise InvalidInput(f"{path} is not inside the working directory. Python configurations run only from there.")
    module = ModuleType(f"openfield_configuration_{path.stem}")
    module.__file__ = str(path)
    user_folder().prepare(module)
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), vars(module))  # noqa: S102 (the user asked for it)
        create = getattr(module, "create_tasks", None)
        if not callable(create):
            raise InvalidInput(f"{path} has no function create_tasks() that returns a scheduler.")
        made = create()
    except InvalidInput:
        raise
    except (Exception, SystemExit) as error:  # it may raise anything: it is the user's own code
        raise InvalidInput(f"{path}{_line_in(path, error)}: {describe_error(error)}") from error
    if not callable(getattr(made, "get_next_task", None)) and not isinstance(made, schedulers.Scheduler):
        raise InvalidInput(f"{path}: create_tasks() must return a scheduler, not {type(made).__name__}.")
    return made


def _line_in(path: Path, error: BaseException) -> str:
    """Return the line of a file where an error arose, as text."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == path.resolve()]
    if isinstance(error, SyntaxError):
        lines.append(error.lineno)
    return f", line {lines[-1]}" if lines else ""


def convert_scheduler(made: Any, entries: Sequence[ConfiguredTask], place: str) -> schedulers.Scheduler:
    """Return a scheduler as a trial needs it.

    If all tasks are the catalogue's, they are replaced by those. Otherwise tasks of the original are hosted.
    """
    make = SCHEDULERS.get(type(made))
    if make is None:
        return hosting.ForeignScheduler(made)
    known = {id(entry.task): entry for entry in entries}
    for task in made.tasks:
        known.setdefault(id(task), _describe(task))
    convert = _Conversion(all(_is_fast(known[id(task)].task) for task in made.tasks))
    converted = {id(task): convert(known[id(task)]) for task in made.tasks}
    arguments: dict[str, Any] = {"tasks": [converted[id(task)] for task in made.tasks]}
    for argument in inspect.signature(make).parameters:
        if argument == "tasks_dependencies":
            pairs = made.tasks_dependencies
            arguments[argument] = [[converted[id(task)] for task in pair] for pair in pairs]
        elif argument not in ("tasks", "thresholds"):
            arguments[argument] = getattr(made, argument)
    try:
        return make(**arguments)
    except (InvalidInput, UnknownName) as error:
        raise InvalidInput(f"{place}: {error}") from None


def _describe(task: Any) -> ConfiguredTask:
    """Describe a task that a Python configuration made."""
    kind = _ids().get(type(task), "")
    name = task.name if isinstance(task, Task) else kind or task.get_name()
    return ConfiguredTask(task, name, kind or name)


def _is_fast(task: Any) -> bool:
    """Return whether the catalogue has a task, in a world of ours or in none."""
    if isinstance(task, Task):
        return True
    world = task.get_world()
    return _ids().get(type(task), "")[:2] == "mi" and (world is None or type(world) is GridWorld)


class _Conversion:
    """Makes the tasks of a trial from the objects of a configuration.

    Args:
        fast: Whether tasks of the catalogue are taken from there.
    """

    def __init__(self, fast: bool) -> None:
        self._fast = fast
        self._worlds: dict[int, grid_world.GridWorld] = {}

    def __call__(self, entry: ConfiguredTask) -> Task:
        made = self._convert(entry)
        for number, value in entry.numbers.items():
            if number == "failed_task_tolerance" and isinstance(made, hosting.HostedTask):
                made.hosted.FAILED_TASK_TOLERANCE = value  # type: ignore[attr-defined]
            else:
                setattr(made, number, value)
        return made

    def _convert(self, entry: ConfiguredTask) -> Task:
        if isinstance(entry.task, Task):
            return entry.task
        if not self._fast:
            return hosting.HostedTask(entry.task, entry.name, entry.kind)
        task = CATALOGUE[_ids()[type(entry.task)]](entry.name)
        task.kind = entry.kind
        world = entry.task.get_world()
        if world is not None:
            task.world = self._worlds.setdefault(id(world), grid_world.GridWorld())
        return task


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


def _world(entry: Any, place: str) -> Any:
    path = _type_of(entry, place)
    found = load_class(path, f"{place}.type")
    if not (inspect.isclass(found) and issubclass(found, World)):
        raise InvalidInput(f"{place}.type: {path} is not a world: it must be a subclass of core.task.World.")
    return _make(found, place)


def _make(kind: Any, place: str, *args: Any, **options: Any) -> Any:
    """Make an object of the user's class."""
    try:
        return kind(*args, **options)
    except (Exception, SystemExit) as error:
        raise InvalidInput(
            f"{place}: {kind.__name__} cannot be made: {_line_of(error)}{describe_error(error)}"
        ) from error


def _task(key: str, entry: Any, worlds: Mapping[str, Any], place: str) -> ConfiguredTask:
    """Make a task with the name it has in the file, which reports use too."""
    path = _type_of(entry, place)
    args = entry.get("args") or {}
    if not isinstance(args, Mapping):
        raise InvalidInput(f"{place}.args must be a table of arguments, such as {{'max_time': 1000}}.")
    wanted = entry.get("world")
    world = None if wanted is None else _lookup(wanted, worlds, "world", f"{place}.world")
    found = _find_class(path, place)
    if inspect.isclass(found) and issubclass(found, Task):
        return _own_task(found, ConfiguredTask(None, key, path), world, args, place)
    if not (inspect.isclass(found) and issubclass(found, OriginalTask)):
        raise InvalidInput(f"{place}.type: {path} is not a task: it must be a subclass of Task or MicroTask.")
    if not found.__module__.startswith(hosting.OURS):
        options = {**args, **({"world": world} if world is not None and args else {})}
        positional = (world,) if world is not None and not args else ()
        return ConfiguredTask(_make(found, place, *positional, **options), key, found.__name__)
    if isinstance(args.get("world"), str):
        world = _lookup(args["world"], worlds, "world", f"{place}.args.world")
    kind = _ids().get(found, path)
    numbers = _numbers(args, kind, place)
    if world is None and inspect.signature(found).parameters["world"].default is inspect.Parameter.empty:
        world = GridWorld()
    return ConfiguredTask(_make(found, place, world), key, kind, numbers)


def _find_class(path: str, place: str) -> Any:
    """Return the class of a task: of ours where the module is the original's, else the user's."""
    module = path.rpartition(".")[0]
    task = find_task(path)
    if task is not None and (path in CATALOGUE or module in MODULES):
        return class_of(task)
    if task is not None and is_old_name(path):  # a name that the original has moved, unless the user has such a module
        try:
            return getattr(user_folder().import_module(module), path.rpartition(".")[2])
        except (ImportError, AttributeError):
            return class_of(task)
    return load_class(path, f"{place}.type")


def _own_task(kind: Any, entry: ConfiguredTask, world: Any, args: Mapping[str, Any], place: str) -> ConfiguredTask:
    """Make a task that a user wrote for openfield."""
    entry.task = task = _make(kind, place, entry.name)
    task.kind = entry.kind
    known = [argument for argument in ARGUMENTS if hasattr(task, argument)]
    for name in args:
        if name not in known:
            raise InvalidInput(f"{place}.args.{name}: {UnknownName('argument', name, known, label='Known')}")
    entry.numbers = {name: _number(value, ARGUMENTS[name], f"{place}.args.{name}") for name, value in args.items()}
    if type(world) is GridWorld:
        task.world = grid_world.GridWorld()
    return entry


def _numbers(args: Mapping[str, Any], kind: str, place: str) -> dict[str, Any]:
    """Return the numbers a file sets for a task of ours."""
    known = [*ARGUMENTS] if kind.startswith("micro") else ["max_time"]
    for name in args:
        if name not in (*known, "world"):
            raise InvalidInput(
                f"{place}.args.{name}: {UnknownName('argument', name, ['world', *known], label='Known')}"
            )
    return {
        name: _number(value, ARGUMENTS[name], f"{place}.args.{name}") for name, value in args.items() if name != "world"
    }


def _scheduler(entry: dict[str, Any], entries: Mapping[str, ConfiguredTask], place: str) -> Any:
    path = _type_of(entry, place)
    args = entry.get("args") or {}
    if not isinstance(args, dict):
        raise InvalidInput(f"{place}.args must be a table.")
    module, _, name = path.rpartition(".")
    if module == "core.scheduler" and not hasattr(original_schedulers, name):
        known = [f"core.scheduler.{kind.__name__}" for kind in SCHEDULERS]
        raise InvalidInput(f"{place}.type: {UnknownName('scheduler', path, known, label='Known')}")
    make = load_class(path, f"{place}.type")
    if not (inspect.isclass(make) and callable(getattr(make, "get_next_task", None))):
        raise InvalidInput(f"{place}.type: {path} is not a scheduler: it must be a class with get_next_task().")
    if make not in SCHEDULERS:
        ready = {key: _replace(value, entries, f"{place}.args.{key}") if key.startswith("tasks") else value
                 for key, value in args.items()}  # fmt: skip
        return _make(make, place, **ready)
    parameters = [*inspect.signature(make).parameters]
    ready = {key: _scheduler_argument(key, value, parameters, entries, f"{place}.args") for key, value in args.items()}
    if "tasks" not in ready:
        raise InvalidInput(f"{place}.args: the key 'tasks' must be the list of task ids.")
    return _make(make, f"{place}.args", **ready)


def _replace(value: Any, entries: Mapping[str, ConfiguredTask], place: str) -> Any:
    """Return nested lists of task ids as nested lists of tasks."""
    if isinstance(value, list):
        return [_replace(part, entries, place) for part in value]
    return _lookup(value, entries, "task", place).task


def _scheduler_argument(
    key: str, value: Any, known: Sequence[str], entries: Mapping[str, ConfiguredTask], place: str
) -> Any:
    if key not in known:
        raise InvalidInput(f"{place}: {UnknownName('argument', key, known, label='Known')}")
    place = f"{place}.{key}"
    if key == "tasks":
        return _tasks(value, entries, place)
    if key == "tasks_dependencies":
        if not isinstance(value, list):
            raise InvalidInput(f"{place} must be a list of pairs of task ids.")
        return [_tasks(pair, entries, place, exactly=2) for pair in value]
    if key != "cyclic":
        return _number(value, 1, place)
    if not isinstance(value, bool):
        raise InvalidInput(f"{place} must be true or false, not {value!r}.")
    return value


def _tasks(value: Any, entries: Mapping[str, ConfiguredTask], place: str, exactly: int | None = None) -> list[Any]:
    """Return the tasks of a list of ids."""
    if not isinstance(value, list) or not value or len(value) != (exactly or len(value)):
        wanted = f"a list of {exactly}" if exactly else "a list of"
        raise InvalidInput(f"{place}: {value!r} must be {wanted} task ids.")
    return [_lookup(name, entries, "task", place).task for name in value]


def _lookup(name: Any, known: Mapping[str, Any], kind: str, place: str) -> Any:
    if not isinstance(name, str) or name not in known:
        raise InvalidInput(f"{place}: {UnknownName(kind, str(name), known, label='In this file')}")
    return known[name]


def _number(value: Any, minimum: int, place: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, int if minimum else int | float) or value < minimum:
        raise InvalidInput(f"{place} must be a number of at least {minimum}, not {value!r}.")
    return value


def read_json_configuration(path: Path) -> Any:
    """Return the content of a JSON file."""
    try:
        return msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}.") from None


class JSONConfigLoader:
    """Loads a JSON configuration, for user code."""

    def create_tasks(self, tasks_config: Any) -> Any:
        """Return the scheduler of a file, or of a table."""
        if isinstance(tasks_config, Mapping):
            return read_objects(tasks_config, "the configuration")[0]
        return read_objects(read_json_configuration(Path(tasks_config)), str(tasks_config))[0]


class PythonConfigLoader:
    """Runs a Python configuration, for user code."""

    def create_tasks(self, tasks_config: str | Path) -> Any:
        """Return the scheduler that `create_tasks()` of a file makes."""
        return _run(Path(tasks_config))


def list_user_code(settings: Mapping[str, Any]) -> list[str]:
    """Return the code that settings name: the file of a Python configuration, and classes as `module:NAME`.

    A run file that names code does not run it unasked, so nothing is imported here. The settings may
    come from a run file and hold anything.
    """
    module, table = settings.get("module"), settings.get("configuration")
    files = [module] if isinstance(module, str) and module else []
    classes = {path for path in _list_types(table) if not _is_ours(path)} if isinstance(table, Mapping) else set()
    return [*files, *(":".join(path.rpartition(".")[::2]) for path in sorted(classes))]


def digest_files(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the digests of the files that hold this code, and of those beside them that they import.

    A Python configuration has the name that the settings give it, all others their place in the working directory.
    Installed packages have versions of their own.
    """
    found: dict[str, str] = {}
    module = settings.get("module")
    for source in list_user_code(settings):
        if source == module:
            code = Code()
            code.add_file(Path(source).resolve(), Path.cwd())
        else:
            code = identify_source(source) or Code()
        for name, path in code.files.items():
            if name.removesuffix(".py").replace("/", ".") in MODULES:
                continue  # ours are used, also in a checkout of the original
            found[module if module and path == Path(module).resolve() else name] = code.parts[f"file {name}"]
    return found


def _list_types(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the dotted names of classes in a configuration."""
    groups = [table.get("worlds"), table.get("tasks"), {"": table.get("scheduler")}]
    for entries in groups:
        for entry in entries.values() if isinstance(entries, Mapping) else ():
            path = entry.get("type") if isinstance(entry, Mapping) else None
            if isinstance(path, str) and "." in path:
                yield path


def _is_ours(path: str) -> bool:
    """Return whether a class is one of ours; that of a module of the original's may have moved since."""
    module = path.rpartition(".")[0]
    if path in CATALOGUE or module in MODULES:
        return True
    if not is_old_name(module) or find_task(path) is None:
        return False
    place = user_folder().folder.joinpath(*module.split("."))
    return not (place.with_suffix(".py").is_file() or place.is_dir())
