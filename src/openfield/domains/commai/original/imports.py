"""The old packages `core`, `learners`, `tasks`, `worlds`, `view` and `fsa`, for code of users only.

A module of a user gets an import function of its own, which works while the module is imported and whenever its code
runs. It finds ours under the old names, and modules below the old packages that we do not have in the user's folder.
`sys.modules` never has an old name of ours in it, so a package of the same name that others use stays theirs.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import sys
import sysconfig
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from openfield.registry import add_working_folder

_HERE, _AGENTS = "openfield.domains.commai.original", "openfield.domains.commai.agents"
STANDARD_LIBRARY = sysconfig.get_paths()["stdlib"]
"""Asked for once, before imports come here: the answer itself may import something."""
PACKAGES = ("core", "learners", "tasks", "worlds", "view", "fsa")
MODULES = {
    "core.task": f"{_HERE}.core.task",
    "core.events": f"{_HERE}.core.events",
    "core.obs.observer": f"{_HERE}.core.events",
    "core.aux.observer": f"{_HERE}.core.events",  # its name in CommAI-env
    "core.serializer": f"{_HERE}.core.serializer",
    "core.channels": f"{_HERE}.core.channels",
    "core.byte_channels": f"{_HERE}.core.channels",
    "core.environment": f"{_HERE}.core.environment",
    "core.session": f"{_HERE}.core.session",
    "core.scheduler": f"{_HERE}.core.scheduler",
    "core.config_loader": f"{_HERE}.configuration",
    "worlds.grid_world": f"{_HERE}.grid_world",
    "learners.base": f"{_AGENTS}.original_learners",
    "learners.sample_learners": f"{_AGENTS}.original_learners",
    "learners.human_learner": f"{_AGENTS}.original_learners",
    "tasks.competition.base": f"{_HERE}.tasks.base",
    "tasks.competition.messages": f"{_HERE}.tasks.messages",
    "tasks.competition.repetition": f"{_HERE}.tasks.repetition",
    "tasks.competition.counting": f"{_HERE}.tasks.objects_properties",
    "tasks.competition.objects_properties": f"{_HERE}.tasks.objects_properties",
    "tasks.competition.navigation": f"{_HERE}.tasks.navigation",
    "tasks.micro.repeat": f"{_HERE}.tasks.repetition",
    "tasks.sample.sample_tasks": f"{_HERE}.tasks.sample",
    "tasks.challenge.round1.task_generator": f"{_HERE}.tasks.challenge_micro",
    "tasks.challenge.round1.challenge_micro": f"{_HERE}.tasks.challenge_micro",
    "tasks.challenge.round1.challenge_mini": f"{_HERE}.tasks.challenge_mini",
    "view.console": f"{_AGENTS}.original_view",
    "view.win_console": f"{_AGENTS}.original_view",
    "fsa": f"{_HERE}.tasks.challenge_mini",
}
"""Our module for each module of the original."""
NOT_SHIPPED = (
    "tasks.micro.nano",
    "tasks.micro.small_comp",
    "tasks.micro.lookup_tables",
    "tasks.competition.to_be_validated",
)
"""Modules of the original, or how their names begin, that openfield knows of and does not have."""
_active = threading.local()


class NotShipped(ImportError):
    """A module of the original that openfield does not have."""


def is_old_name(name: str) -> bool:
    """Return whether a module belongs to a package of the original."""
    return name.partition(".")[0] in PACKAGES


class UserFolder:
    """The modules of a user in one folder, which can import those of the original.

    Args:
        folder: Where modules below the old packages are looked for first that are not ours; then where Python looks.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.roots = [folder]
        """The folder, and those of modules elsewhere that the user has named."""
        self._old: dict[str, ModuleType] = {}
        self._builtins = {**vars(builtins), "__import__": self._import}

    def import_module(self, name: str) -> ModuleType:
        """Import a module by its dotted name."""
        if is_old_name(name):
            return self._find_old(name)
        with self._finding():
            self._add_root(name)
            return importlib.import_module(name)

    def _add_root(self, name: str) -> None:
        """Take note of where a module lies that the user has named, unless it is installed or Python's own."""
        first = name.partition(".")[0]
        spec = None if first == "openfield" else PathFinder.find_spec(first)
        if spec is None or spec.origin is None:
            return
        origin = Path(spec.origin).resolve()
        root = origin.parents[1 if spec.submodule_search_locations else 0]
        if not (is_in_installation(origin) or any(root.is_relative_to(known) for known in self.roots)):
            self.roots.append(root)

    def prepare(self, module: ModuleType) -> None:
        """Give a module that has not run yet the import function."""
        vars(module)["__builtins__"] = self._builtins

    def _import(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Sequence[str] | None = (), level: int = 0
    ) -> Any:
        """Stand in for `__import__` in modules of the user."""
        package = (globals or {}).get("__package__") or ""
        whole = importlib.util.resolve_name("." * level + name, package) if level else name
        if not is_old_name(whole):
            with self._finding():
                return builtins.__import__(name, globals, locals, fromlist or (), level)
        module = self._find_old(whole)
        for part in fromlist or ():
            if part != "*" and not hasattr(module, part) and hasattr(module, "__path__"):
                self._try_old(f"{whole}.{part}")
        return module if fromlist else self._find_old(whole.partition(".")[0])

    def _try_old(self, name: str) -> None:
        """Find a module that may be a mere name of its package; the import statement complains if it is missing."""
        try:
            self._find_old(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise

    def _find_old(self, name: str) -> ModuleType:
        """Return a module below an old package: ours, or else the user's."""
        if name in self._old:
            return self._old[name]
        parent, _, last = name.rpartition(".")
        above = self._find_old(parent) if parent else None
        if name in MODULES:
            module = importlib.import_module(MODULES[name])
        elif name in PACKAGES or any(known.startswith(f"{name}.") for known in (*MODULES, *NOT_SHIPPED)):
            module = self._make_package(name)
        else:
            module = self._load(name)
        self._old[name] = module
        if above is not None:
            setattr(above, last, module)
        return module

    def _make_package(self, name: str) -> ModuleType:
        package = ModuleType(name)
        package.__path__ = []
        self.prepare(package)
        return package

    def _load(self, name: str) -> ModuleType:
        """Load a module below an old package from a folder of the user."""
        places = [root.joinpath(*name.split(".")) for root in (*self.roots, *_list_search_folders())]
        files = (path for place in places for path in (place.with_suffix(".py"), place / "__init__.py"))
        found = next((path for path in files if path.is_file()), None)
        if found is None:
            if any(place.is_dir() for place in places):
                return self._make_package(name)
            if name.startswith(NOT_SHIPPED):
                raise NotShipped(f"{name} of the original is known, but not shipped with openfield", name=name)
            raise ModuleNotFoundError(
                f"No module named '{name}': openfield has none of this name, and there is no {places[0]}.py", name=name
            )
        inside = [str(found.parent)] if found.name == "__init__.py" else None
        spec = importlib.util.spec_from_file_location(name, found, submodule_search_locations=inside)
        if spec is None or spec.loader is None:
            raise ImportError(f"{found} cannot be imported", name=name)
        module = importlib.util.module_from_spec(spec)
        self.prepare(module)
        self._old[name] = module
        known = sys.modules.setdefault(name, module)  # pickle finds classes there
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del self._old[name]
            if known is module:
                del sys.modules[name]
            raise
        return module

    @contextmanager
    def _finding(self) -> Iterator[None]:
        """Let the modules beside the user's have the import function too, if they are imported now."""
        add_working_folder()
        if _FINDER not in sys.meta_path:
            sys.meta_path.insert(0, _FINDER)
        before = getattr(_active, "folder", None)
        _active.folder = self
        try:
            yield
        finally:
            _active.folder = before


class _UserLoader(SourceFileLoader):
    """Runs a module with the import function of its folder."""

    def __init__(self, name: str, path: str, folder: UserFolder) -> None:
        super().__init__(name, path)
        self._folder = folder

    def exec_module(self, module: ModuleType) -> None:
        """Run the module."""
        self._folder.prepare(module)
        super().exec_module(module)


class _UserFinder:
    """Finds modules in the user's folder while code of the user imports something. It does nothing otherwise."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of a source file that lies in a folder of the user, and is not installed there."""
        folder: UserFolder | None = getattr(_active, "folder", None)
        if folder is None:
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is None or spec.origin is None or type(spec.loader) is not SourceFileLoader:
            return None
        origin = Path(spec.origin).resolve()
        if is_in_installation(origin) or not any(origin.is_relative_to(root) for root in folder.roots):
            return None
        spec.loader = _UserLoader(name, spec.origin, folder)
        return spec


def is_in_installation(origin: Path) -> bool:
    """Return whether a file belongs to an installed package, or to Python."""
    return "site-packages" in origin.parts or origin.is_relative_to(STANDARD_LIBRARY)


def _list_search_folders() -> Iterator[Path]:
    """Yield the folders where Python looks for modules, without those of installed packages."""
    for name in sys.path:
        folder = Path(name)
        if folder.is_dir() and not is_in_installation(folder.resolve()):
            yield folder


_FINDER: Any = _UserFinder()
_folders: dict[Path, UserFolder] = {}


def user_folder(folder: Path | None = None) -> UserFolder:
    """Return the modules of a folder, by default of the working directory."""
    place = (folder or Path.cwd()).resolve()
    if place not in _folders:
        _folders[place] = UserFolder(place)
    return _folders[place]
