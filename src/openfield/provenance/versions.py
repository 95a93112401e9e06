"""Identify versions of an agent: by its files, its package or its program, without running any of them.

The plan of a run has a fingerprint for every agent; the journal keeps it with every attempt. What an agent imports by a
computed name, and the files that it opens by itself, are not seen.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from itertools import accumulate, islice, pairwise
from operator import itemgetter
from pathlib import Path
from types import CodeType
from typing import Any

import msgspec

from openfield import __version__
from openfield.domain import Domain
from openfield.journal.fingerprint import CodeVersion
from openfield.journal.schema import select_run_files
from openfield.parameters import LLM, MODELS, RIVER, AgentText, is_command, is_control, named_files, read_agent
from openfield.record import UNWRITABLE, action_key
from openfield.registry import (
    FIND_CONTROL,
    LANGUAGE_MODEL,
    MODEL_AGENTS,
    AgentSource,
    add_working_folder,
    find_entry_points,
    name_control,
)

INSTALLED = {"site-packages", "dist-packages"}
"""Folders of installed packages: their version stands for all their files."""

RUNTIMES = {"onnx": "onnxruntime", "sb3": "stable_baselines3"}
"""The packages that run trained models, by what the sources of agents begin with."""
MAX_NESTING = 6
"""How deep objects in objects are compared."""
MAX_FOLDER_FILES, MAX_FOLDER_BYTES = 100_000, 4 << 30
"""A folder with more of either is known by the names, sizes and times of its first files, not by their content."""
UNCOVERED = (".", "__pycache__")
"""How the names of files and folders in a folder begin that are not part of an agent."""
CODE_SUFFIXES = (".py", ".pyc", ".so")
SYSTEM_FOLDERS = (Path("/proc"), Path("/sys"))
"""Their files are not on a disk: reading one may never end."""


class Code:
    """The code behind an agent or a domain, as far as it is found."""

    def __init__(self) -> None:
        self.parts: dict[str, str] = {}
        self.files: dict[str, Path] = {}
        """Source files that belong to no package, by the name they have in `parts`."""
        self.paths: list[Path] = []
        """Where the files are, and the modules of packages."""
        self.imports: set[str] = set()
        """Modules that these files import and that are not among them."""

    @property
    def version(self) -> CodeVersion:
        """The parts, as they are recorded."""
        return CodeVersion(self.parts)

    @property
    def has_data(self) -> bool:
        """Whether there are files that are not code: agents read them whenever they are made."""
        return any(map(_is_data, self.parts))

    def loaded_as(self, earlier: Code) -> Code:
        """Return the same data with all else of an earlier time, when this process loaded the code."""
        data = {name: digest for name, digest in self.parts.items() if _is_data(name)}
        loaded = Code()
        loaded.parts = data | {name: digest for name, digest in earlier.parts.items() if not _is_data(name)}
        return loaded

    def named(self, name: str) -> Code:
        """Return this code with the name that chooses something in it."""
        self.parts["name"] = name
        return self

    def names(self, *words: str) -> bool:
        """Return whether a function, an attribute or a text in these files is one of the words."""
        return not self._words().isdisjoint(words)

    def quotes(self, *parts: str) -> bool:
        """Return whether a text in these files has one of the parts."""
        return any(isinstance(word, str) and part in word for word in self._words() for part in parts)

    def _words(self) -> set[object]:
        return set[object]().union(*(_list_words(path) for path in self.files.values() if path.suffix == ".py"))

    def add_file(self, path: Path, root: Path | None = None) -> None:
        """Add a file. A Python file comes with all files that it imports and that are below its folder, or `root`."""
        root = root or path.parent
        waiting = [path]
        while waiting:
            path = waiting.pop()
            name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
            if self.files.get(name, path) != path:  # files of two folders have the same name
                name = path.as_posix()
            if name not in self.files:
                self.parts[f"file {name}"] = digest_file(path)
                self.files[name] = path
                self.paths.append(path)
                waiting += self._follow(path, root) if path.suffix == ".py" else ()

    def add_folder(self, path: Path) -> None:
        """Add a folder of data, as one part: its files are not read as code."""
        digest = digest_folder(path)
        same = self.parts.get(f"folder {path.name}", digest) == digest  # else two folders have the same name
        self.parts[f"folder {path.name if same else path.as_posix()}"] = digest

    def add_module(self, name: str, path: Path) -> None:
        """Add a module by its dotted name: with the version of its package, or with the files that it imports."""
        package = _find_package(name.partition(".")[0], path)
        if package is not None:
            self.parts[f"package {package[0]}"] = package[1]
            self.parts[f"module {name}"] = digest_file(path)
            self.paths.append(path)
            return
        depth = name.count(".") + (path.stem == "__init__")
        is_nested = list(path.with_suffix("").parts[-depth - 1 :])[: name.count(".") + 1] == name.split(".")
        root = path.parents[depth] if is_nested else path.parent
        for each in (*_locate(name, root), path):
            self.add_file(each, root)

    def add_parameter(self, name: str, value: object) -> None:
        """Add a parameter, and the files and folders that it names, by itself or in a list or table."""
        path = _existing_file(value) or _existing_folder(value)
        for each in [path] if path is not None else [*named_files({name: value}), *_named_folders(value)]:
            if each.is_dir():
                self.add_folder(each)
            else:
                self.add_file(each)
        if path is not None:
            self.parts[f"parameter {name}"] = path.name
            return
        try:
            self.parts[f"parameter {name}"] = hashlib.sha256(action_key(value)).hexdigest()
        except UNWRITABLE:
            self._add_object(name, value)

    def _add_object(self, name: str, value: object) -> None:
        """Add a parameter that is a function, a class or an object: the code behind it, and its content."""
        made = value if inspect.isroutine(value) or inspect.isclass(value) else type(value)
        module = getattr(made, "__module__", "") or ""
        path = getattr(sys.modules.get(module), "__file__", None)
        if path is not None and Path(path).is_file() and module.partition(".")[0] not in sys.stdlib_module_names:
            self.add_module(module, Path(path).resolve())
        self.parts[f"parameter {name}"] = hashlib.sha256(repr(_describe(value, set())).encode()).hexdigest()

    def _follow(self, path: Path, root: Path) -> Iterator[Path]:
        """Yield the files below a folder that a Python file imports."""
        for level, name in _list_imports(path):
            base = root if not level else path.parents[level - 1]
            found = list(_locate(name, base)) if base.is_relative_to(root) else []
            if not found and not level:
                self.imports.add(name.partition(".")[0])
            yield from found


def _is_data(part: str) -> bool:
    """Return whether a part is a file without code, which agents read anew; code is loaded once in a process.

    Folders are not: agents keep notes in them while they play.
    """
    return part.startswith("file ") and not part.endswith(CODE_SUFFIXES)


def identify_agent(source: AgentSource, domain: Domain[Any]) -> Code | None:
    """Return the code behind an agent, however the agent was named; None if it is not found."""
    agent = read_agent(source)
    if not isinstance(agent, AgentText):
        return identify_object(agent)
    if agent.detector is not None:
        return _add_detector(identify_agent(agent.player, domain), agent.detector)
    if is_command(agent.text):
        return identify_source(agent)
    if is_control(control := name_control(agent, domain).text):
        code = _identify_place(FIND_CONTROL)
        return None if code is None else code.named(control)
    points = find_entry_points("openfield.agents")
    plain = agent.place
    place = domain.agents.get(plain) or (points[plain].value if plain in points else plain)
    code = _identify_place(place) if isinstance(place, str) else identify_object(place)
    return _add_parameters(code, agent.parameters)


def identify_source(source: str | AgentText) -> Code | None:
    """Return the code that a source names as a command, a file or a module; None if it is not found."""
    agent = read_agent(source)
    if agent.detector is not None:
        return _add_detector(identify_source(agent.player), agent.detector)
    if is_command(agent.text):
        return _identify_command(agent.text.partition(":")[2])
    return _add_parameters(_identify_place(agent.place), agent.parameters)


def _add_detector(code: Code | None, detector: AgentText) -> Code | None:
    """Add the detector of an agent, and the version of the package that it comes from, to the agent's code."""
    if code is not None:
        code.add_parameter("detector", detector.name)
        if detector.place.startswith(RIVER):
            code.parts |= {f"package {name}": number for name, number in find_versions(["river"]).items()}
    return code


def _add_parameters(code: Code | None, parameters: Mapping[str, Any]) -> Code | None:
    if code is not None:
        for name, value in parameters.items():
            code.add_parameter(name, value)
    return code


def identify_object(given: Any) -> Code:
    """Return the code behind a function, a class or an object: the file of its module, or its compiled form."""
    code = Code()
    found = _strip(given, code)
    module, name = getattr(found, "__module__", "") or "", getattr(found, "__qualname__", repr(type(found)))
    path = getattr(sys.modules.get(module), "__file__", None)
    code.named(name)
    if path is not None and Path(path).is_file():
        code.add_module(module, Path(path).resolve())
    else:
        code.parts["code"] = hashlib.sha256(repr(list(_list_code(found))).encode()).hexdigest()
    return code


def identify_file(path: Path) -> Code:
    """Return a file by itself, such as an experiment file."""
    code = Code()
    code.add_file(path.resolve())
    return code


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file; empty if it cannot be read."""
    try:
        return _digest(path, *_state_of(path))
    except OSError:
        return ""


def _state_of(path: Path) -> tuple[int, int, int]:
    """Return the number, the size and the time of a file: it is read again only if one of them has changed."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


@lru_cache(maxsize=1024)
def _digest(path: Path, *_: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_folder(path: Path) -> str:
    """Return a digest of the files in a folder, by their names below it and their content; the same on every machine.

    Hidden files, compiled Python and run files are left out. A link to a folder counts with where it leads.
    """
    entries = list(islice(_list_entries(path), MAX_FOLDER_FILES + 1))
    sizes = [_read_status(path / name) for name in entries]
    by_content = len(entries) <= MAX_FOLDER_FILES and sum(size for size, _ in sizes) <= MAX_FOLDER_BYTES
    digest = hashlib.sha256()
    for name, (size, changed) in zip(entries[:MAX_FOLDER_FILES], sizes, strict=False):
        place = path / name
        if place.is_dir():
            content = ascii(os.readlink(place))
        else:
            content = digest_file(place) if by_content else f"{size} {changed}"
        digest.update(msgspec.json.encode((os.fsencode(name), content)))
    return digest.hexdigest()


def _list_entries(folder: Path) -> Iterator[str]:
    """Yield the names, below a folder, of the files in it and of links to folders, always in the same order."""
    for place, folders, files in os.walk(folder):
        here = Path(place)
        folders[:] = sorted(name for name in folders if not name.startswith(UNCOVERED))
        left = {name for name in files if not name.startswith(UNCOVERED)}
        left -= select_run_files(here, left)
        left |= {name for name in folders if (here / name).is_symlink()}
        for path in (here / name for name in sorted(left)):
            end = Path(os.path.realpath(path)) if path.is_symlink() else path
            leads_to_run = end != path and end.name in select_run_files(end.parent, [end.name])
            if (end.is_dir() or end.is_file()) and not leads_to_run:  # a pipe would be waited for
                yield path.relative_to(folder).as_posix()


def _read_status(path: Path) -> tuple[int, int]:
    """Return the bytes of a file and when it was last changed; zeros if it is gone."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


def find_versions(modules: Iterable[str]) -> dict[str, str]:
    """Return the installed packages that modules belong to, with their versions; modules without one are left out."""
    found, rest = {}, []
    for name in modules:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            rest.append(name)
    known = _read_packages(*map(_read_status, map(Path, sys.path))) if rest else {}
    return found | {each: version(each) for name in rest for each in known.get(name, ())}


@lru_cache(maxsize=4)
def _read_packages(*_: tuple[int, int]) -> Mapping[str, list[str]]:
    """Return the installed packages of each module. That takes 0.3 s; it is done again if a folder of them changes."""
    return packages_distributions()


def _identify_place(source: str) -> Code | None:
    """Return the code at `package.module:attribute` or `file.py:attribute`."""
    place, _, attribute = source.partition(":")
    if source.startswith(MODELS):
        return _identify_model(place, attribute)
    if source.startswith(LLM):  # how turns are put in words is part of what plays
        code = _identify_place(LANGUAGE_MODEL)
        return None if code is None else code.named(source)
    code = Code().named(attribute)
    if place.endswith(".py"):
        path = next((each for each in (Path(place), Path(Path(place).name)) if each.is_file()), None)
        if path is not None:
            code.add_file(path.resolve())
    else:
        place, path = _find_definition(place, attribute)
        if path is not None:
            code.add_module(place, path)
    return None if path is None else code


def _identify_model(kind: str, place: str) -> Code | None:
    """Return the file of a trained model with what runs it."""
    code = _identify_place(MODEL_AGENTS[kind])
    name, _, file = place.rpartition(":")
    path = _existing_file(file)
    if code is None or path is None:
        return None
    code.add_file(path)
    code.parts |= {f"package {each}": number for each, number in find_versions([RUNTIMES[kind]]).items()}
    return code.named(f"{kind}:{name}")


def _identify_command(command: str) -> Code | None:
    """Return the program of a command and the files among its words; `-m` names a module of the working folder."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    found = shutil.which(words[0]) if words else None
    if found is None:
        return None
    code, said = Code(), [Path(found).name]
    code.parts[f"program {said[0]}"] = digest_file(Path(found))
    code.paths.append(Path(found).resolve())
    if found.endswith(".py"):
        code.add_file(Path(found).resolve())
    for before, word in pairwise(words):
        option, sign, value = word.partition("=") if word.startswith("-") else ("", "", word)
        files = list(_locate(value, Path.cwd())) if before == "-m" else list(filter(None, [_existing_file(value)]))
        for path in files:
            code.add_file(path, Path.cwd() if before == "-m" else None)
        said.append(f"{option}{sign}{files[0].name}" if files and before != "-m" else word)
    code.parts["command"] = shlex.join(said)
    return code


def _existing_file(value: object) -> Path | None:
    """Return the file that a value names, if there is one."""
    try:
        path = Path(value).resolve() if isinstance(value, str | Path) and value else None
        return path if path is not None and path.is_file() else None
    except (OSError, ValueError):  # a text that is too long for a name, or has a zero byte
        return None


def _existing_folder(value: object) -> Path | None:
    """Return the folder that a value names, if there is one and this process does not work in it or below it."""
    try:
        path = Path(value).resolve() if isinstance(value, str | Path) and value else None
        if path is None or not path.is_dir() or Path.cwd().is_relative_to(path):  # `.` and `/` are seldom data
            return None
    except (OSError, ValueError):  # a text that is too long for a name, or has a zero byte
        return None
    return None if any(path.is_relative_to(each) for each in SYSTEM_FOLDERS) else path


def _named_folders(value: object) -> Iterator[Path]:
    """Yield the folders that exist among values in a list or table. As with files, a plain word there is not taken."""
    if isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _named_folders(each)
    elif isinstance(value, str | Path) and {".", "/"} & set(str(value)):
        path = _existing_folder(value)
        yield from [] if path is None else [path]


def _find_definition(name: str, attribute: str, depth: int = 5) -> tuple[str, Path | None]:
    """Return the module that defines an attribute, and its file: a package may only pass on names of its modules."""
    path = _find_module(name)
    for level, imported in _list_imports(path) if path is not None and depth else ():
        module, _, last = imported.rpartition(".")
        if not level and last == attribute and module.startswith(f"{name.partition('.')[0]}."):
            return _find_definition(module, attribute, depth - 1)
    return name, path


def _find_module(name: str) -> Path | None:
    """Return the file of a module, which is neither imported nor are the packages that hold it."""
    add_working_folder()
    places: Any = None
    spec = None
    for each in accumulate(name.split("."), "{}.{}".format):
        finders: Iterable[Any] = (getattr(finder, "find_spec", None) for finder in sys.meta_path)
        spec = next((found for find in finders if find and (found := _find_spec(find, each, places))), None)
        if spec is None:
            return None
        places = spec.submodule_search_locations
    path = None if spec is None or not spec.has_location else Path(str(spec.origin))
    return path.resolve() if path is not None and path.is_file() else None


def _find_spec(find: Callable[..., Any], name: str, places: Any) -> Any:
    """Return what a finder finds; a folder without `__init__.py` in a package that is not imported by its own name."""
    try:
        return find(name, places, None)
    except KeyError:  # such a folder asks for the package that holds it
        return find(name.rpartition(".")[2], places, None)


def _find_package(top: str, path: Path) -> tuple[str, str] | None:
    """Return the installed package that a module belongs to, and its version."""
    if top == "openfield":
        return top, __version__
    if not INSTALLED & set(path.parts):
        return None
    return next(iter(find_versions([top]).items()), (top, "unknown"))


def _list_words(path: Path) -> set[object]:
    """Return the names of functions, variables and attributes in a Python file, and its texts."""
    fields = ((ast.FunctionDef, "name"), (ast.AsyncFunctionDef, "name"), (ast.Name, "id"), (ast.Attribute, "attr"))
    kinds = dict([*fields, (ast.Constant, "value")])
    try:
        nodes = ast.walk(ast.parse(path.read_bytes()))
        return {getattr(node, kinds[type(node)]) for node in nodes if type(node) in kinds}
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return set()


def _list_imports(path: Path) -> Sequence[tuple[int, str]]:
    """Return every import of a Python file, anywhere in it: how many packages it goes up, and the module's name."""
    try:
        return _parse_imports(path, *_state_of(path))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


@lru_cache(maxsize=1024)
def _parse_imports(path: Path, *_: int) -> tuple[tuple[int, str], ...]:
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found += ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = f"{node.module}." if node.module else ""
            found += ((node.level, f"{start}{alias.name}") for alias in node.names)
    return tuple(found)


def _locate(name: str, base: Path) -> Iterator[Path]:
    """Yield the files of a module and of the packages that hold it, as far as they are below a folder."""
    for each in accumulate(name.split("."), "{}/{}".format):
        sources = (base / f"{each}.py", base / each / "__init__.py")
        places = (*sources, *(place.with_suffix(".pyc") for place in sources), *base.glob(f"{each}.*.so"))
        yield from (place for place in places if place.is_file())


def _strip(found: Any, code: Code) -> Any:
    """Return the function or class inside an object, and add what else makes the object: its parameters."""
    while isinstance(found, partial):
        for name, value in (*enumerate(found.args), *found.keywords.items()):
            code.add_parameter(str(name), value)
        found = found.func
    found = inspect.unwrap(found)
    owner = getattr(found, "__self__", None)
    if owner is None and not inspect.isroutine(found) and not inspect.isclass(found):
        owner = found
    for name, value in getattr(owner, "__dict__", {}).items() if not inspect.isclass(owner) else ():
        code.add_parameter(name, value)
    function = getattr(found, "__func__", found)
    for name, cell in zip(*_closure(function), strict=False):
        code.add_parameter(name, cell.cell_contents)
    return type(owner) if owner is found else function


def _describe(value: object, seen: set[int], depth: int = MAX_NESTING) -> object:
    """Return what makes an object, in values whose text is the same in every process: no address in memory."""
    with suppress(*UNWRITABLE):
        return hashlib.sha256(action_key(value)).hexdigest()
    kind = type(value).__qualname__
    if not depth or id(value) in seen:
        return kind
    seen.add(id(value))
    if inspect.isclass(value) or isinstance(getattr(value, "__code__", None), CodeType):
        return [_describe(each, seen, depth - 1) for each in (*_list_code(value), *_list_cells(value))]
    if isinstance(value, list | tuple):
        return [kind, *(_describe(each, seen, depth - 1) for each in value)]
    held = value if isinstance(value, Mapping) else getattr(value, "__dict__", {})
    owner = getattr(value, "__self__", None)
    inner = [] if owner is None or inspect.ismodule(owner) else [_describe(owner, seen, depth - 1)]
    names = [
        (str(name), _describe(each, seen, depth - 1)) for name, each in held.items() if isinstance(name, str | int)
    ]
    return [kind, getattr(value, "__name__", ""), *inner, *sorted(names, key=itemgetter(0))]


def _list_cells(function: Any) -> Iterator[Any]:
    for cell in _closure(function)[1]:
        with suppress(ValueError):  # a variable that has no value yet
            yield cell.cell_contents


def _closure(function: Any) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    compiled = getattr(function, "__code__", None)
    return (compiled.co_freevars, function.__closure__ or ()) if isinstance(compiled, CodeType) else ((), ())


def _list_code(found: Any) -> Iterator[object]:
    """Yield what functions compile to, those of a class by name; places and line numbers are left out."""
    if inspect.isclass(found):
        for each in found.__mro__[:-1]:
            for name, value in sorted(vars(each).items()):
                inner: Callable[..., Any] | None = getattr(value, "__func__", getattr(value, "fget", value))
                if isinstance(getattr(inner, "__code__", None), CodeType):
                    yield name, *_list_code(inner)
        return
    compiled = found if isinstance(found, CodeType) else getattr(found, "__code__", None)
    if isinstance(compiled, CodeType):
        yield compiled.co_code, compiled.co_names, compiled.co_varnames
        for value in compiled.co_consts:
            yield list(_list_code(value)) if isinstance(value, CodeType) else _write(value)


def _write(value: object) -> str:
    """Return a constant as text, the same in every process."""
    return repr(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)
