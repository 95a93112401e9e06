"""Decide which files an isolated program sees: Python, packages, its own folder, and granted ones.

Its own folder is shown without hidden files, and without run files at any depth: they hold the truth. Its subfolders
are shown as they are when the program starts, unless they are too large for that. Of installed domains the folders
`truth` are empty, where labels of packaged samples lie.
"""

from __future__ import annotations

import errno
import importlib.machinery
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path

import openfield
from openfield.errors import InvalidInput
from openfield.journal.schema import RUN_LOGS, select_run_files
from openfield.parameters import LLM, MODELS, named_files, read_agent, strip_parameters
from openfield.registry import find_family, split_family

RUN_FILES = ".sqlite"
"""In the usual names of run files, of their logs, and of folders beside them."""
MAX_ENTRIES = 500
"""A folder with more entries is shown as a whole and its run files are covered. Every entry is a mount of its own."""
MAX_FIXED = 100
"""Entries of all folders together that are shown as they are at the start: no run file appears in them later.

bubblewrap looks at all mounts for each further one: 250 take it 0.1 s, and 1,000 take 1.4 s, at each start of an agent.
"""
MAX_FILES = 200_000
MAX_LINKS = 40
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
CONFIGURATION = (
    *("alternatives", "ca-certificates", "fonts", "group", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d"),
    *("localtime", "nsswitch.conf", "passwd", "resolv.conf", "ssl"),
)
"""What programs read in /etc to find libraries, names, fonts, certificates and the time."""
PACKAGES = ("site-packages", "dist-packages")
OWN_PACKAGE = Path(openfield.__file__).parent


@dataclass(frozen=True)
class Listing:
    """The content of a folder at one moment. Files made in it later are not shown by accident."""

    folder: Path
    names: tuple[str, ...]
    hidden: frozenset[str]
    """Those of the names that are not to be seen."""

    def show(self, bind: str, alone: bool) -> list[str]:
        """Return the arguments that show the folder without hidden files; its links lead only to shown ones.

        Args:
            bind: The argument that shows one entry.
            alone: Whether the folder is not shown yet as a part of another one.
        """
        if len(self.names) > MAX_ENTRIES:
            words = [bind, str(self.folder), str(self.folder)] if alone else []
            return words + [word for name in sorted(self.hidden) for word in _cover(self.folder / name)]
        words = ["--tmpfs", str(self.folder)]
        for entry in (self.folder / name for name in self.names):
            if entry.is_symlink():
                words += ["--symlink", os.readlink(entry), str(entry)]
            elif entry.name not in self.hidden:
                words += [bind, str(entry), str(entry)]
        return words


@dataclass(frozen=True)
class View:
    """What one program sees beside the system's programs and libraries."""

    folders: tuple[Path, ...] = ()
    """Its own folders, without hidden files and run files."""
    packages: tuple[Path, ...] = ()
    """Python and installed packages, as they are."""
    files: tuple[tuple[Path, bool], ...] = ()
    """Granted files and folders, and whether each may be written."""
    modules: tuple[Path, ...] = ()
    """Where Python must look for modules beside where it always does."""
    run: Path | None = None
    """The run file, which may have any name."""

    def __or__(self, other: View) -> View:
        """Return a view that shows what either shows."""
        return View(
            self.folders + other.folders,
            self.packages + other.packages,
            self.files + other.files,
            self.modules + other.modules,
            self.run or other.run,
        )

    def mounts(self) -> list[str]:
        """Return the arguments that make bubblewrap show all this, folders before their content."""
        words, packages = list[str](), _outermost_first(self.packages)
        folders = [
            folder
            for folder in _outermost_first(self.folders)
            if not any(each in (folder, *folder.parents) for each in packages)
        ]
        listings = {folder: list(self._look_through(folder, with_dots=False)) for folder in folders}
        fixed = _choose_fixed(chain.from_iterable(listings.values()))
        for folder, found in listings.items():
            for each in found:
                if each.folder == folder or each.hidden or each.folder in fixed:
                    words += each.show("--ro-bind-try", each.folder == folder)
        for package in packages:
            words += ["--ro-bind-try", str(package), str(package)]
        free = {path for path, writable in self.files if writable}
        for path, writable in sorted(set(self.files)):
            if not writable and any(each in free for each in (path, *path.parents)):
                continue
            bind = "--bind-try" if writable else "--ro-bind-try"
            words += [bind, str(path), str(path)]
            for each in self._look_through(path, with_dots=True) if path.is_dir() else ():
                words += each.show(bind, alone=False) if each.hidden else []
        shown = (*folders, *packages, *(path for path, _ in self.files))
        for path in sorted(OWN_PACKAGE.glob("domains/*/truth")):
            if _is_system(path) or any(each in path.parents for each in shown):
                words += _cover(path)
        made = {path for word, path in pairwise(words) if word == "--tmpfs"}
        made -= set(map(str, free))
        return words + [word for path in sorted(made) for word in ("--remount-ro", path)]

    def _look_through(self, folder: Path, with_dots: bool) -> Iterator[Listing]:
        """Yield the content of a folder and of each folder in it, but not of hidden folders.

        Args:
            folder: Where to begin.
            with_dots: Whether names in it that begin with a dot are seen.

        Raises:
            InvalidInput: It has too many files.
        """
        count = 0
        for place, folders, files in os.walk(folder):
            count += len(files)
            if count > MAX_FILES:
                raise InvalidInput(
                    f"{folder} has more than {MAX_FILES:,} files to look through for run files. "
                    "Put an agent to be isolated into a folder of its own."
                )
            here, names = Path(place), (*folders, *files)
            hidden = self._find_run_files(here, files)
            hidden |= {name for name in folders if self._is_run_folder(here / name)}
            hidden |= {name for name in names if name.startswith(".") and place == str(folder) and not with_dots}
            yield Listing(here, tuple(sorted(names)), frozenset(hidden))
            folders[:] = [name for name in folders if name not in hidden]

    def _find_run_files(self, folder: Path, files: Iterable[str]) -> set[str]:
        """Return which of the files in a folder are run files or logs of them."""
        known = {name for name in files if RUN_FILES in name}
        if self.run is not None and _is_same(folder, self.run.parent):
            known |= {self.run.name, *(f"{self.run.name}{end}" for end in RUN_LOGS)} & set(files)
        return known | select_run_files(folder, set(files) - known)

    def _is_run_folder(self, path: Path) -> bool:
        """Return whether a folder belongs to a run file, or holds the run and nothing that is to be seen."""
        if RUN_FILES in path.name:
            return True
        if self.run is None or not _is_same(path, self.run.parent):
            return False
        needed = [each.resolve() for each in (*self.folders, *self.packages, *(file for file, _ in self.files))]
        return not any(path.resolve() in (each, *each.parents) for each in needed)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _choose_fixed(listings: Iterable[Listing]) -> set[Path]:
    """Return the folders to show as they are now, small ones first: each of their entries takes time to show."""
    chosen, left = set[Path](), MAX_FIXED
    for each in sorted(listings, key=lambda each: (len(each.names), each.folder)):
        if not each.folder.is_relative_to(OWN_PACKAGE):  # it has hundreds of folders, and they are the same for all
            left -= len(each.names) + 1
            if left < 0:
                break
            chosen.add(each.folder)
    return chosen


def _cover(path: Path) -> list[str]:
    if path.is_symlink():
        return []
    return ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", os.devnull, str(path)]


def _outermost_first(paths: Iterable[Path]) -> list[Path]:
    """Return the paths that exist, each once, and none of the system's own."""
    return sorted({path for path in paths if path.exists() and not _is_system(path)})


def _is_system(path: Path) -> bool:
    return any(Path(system) in (path, *path.parents) for system in SYSTEM)


def system_mounts(network: bool, gpu: bool) -> list[str]:
    """Return the arguments that show the system's programs and libraries, and no more of it than they need."""
    words: list[str] = []
    for name in SYSTEM:
        link = os.readlink(name) if os.path.islink(name) else ""
        words += ["--symlink", link, name] if link else ["--ro-bind-try", name, name]
    for name in CONFIGURATION:
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"] if network or name != "resolv.conf" else []
    words += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", "--dir", "/tmp"]  # noqa: S108
    words += ["--ro-bind-try", "/sys/devices/system/cpu", "/sys/devices/system/cpu"]
    if gpu:
        devices = [*Path("/dev").glob("nvidia*"), Path("/dev/dri"), Path("/dev/kfd")]
        words += [word for each in devices for word in ("--dev-bind-try", str(each), str(each))]
        words += ["--ro-bind-try", "/sys", "/sys"]
    return words


def view_of_python(*sources: str) -> View:
    """Return the files that a Python process like this one sees that imports some sources.

    Args:
        sources: Agents and domains as `name`, `module:attribute` or `file.py:attribute`, or domains of a family.
            Files that their parameters name, and a suite, are seen too.
    """
    here, own = Path.cwd(), [place for source in sources for place in _folders_of(source)]
    paths = [Path(entry).absolute() for entry in sys.path if entry and Path(entry).exists()]
    paths = [path for path in paths if path != here or path in own]
    packages = [path for path in paths if path.name in PACKAGES or path.is_file()]
    prefixes = list_installations(Path(sys.executable))
    others = [path for path in [*paths, *own] if not any(prefix in path.parents for prefix in prefixes)]
    folders = [Path(openfield.__file__).parents[1], *(path for path in others if path not in packages)]
    granted = [path for source in sources for path in _files_of(source)]
    seen = tuple((path, False) for path in granted)
    return View(tuple(folders), (*prefixes, *packages), seen, modules=tuple(others))


def _folders_of(source: str) -> list[Path]:
    """Return the folders that a source is imported from; none for an installed name. Nothing is imported here."""
    source = _split_data(source)[1]
    place, sign, _ = strip_parameters(source).partition(":")
    if source.startswith((*MODELS, LLM)):
        return []
    if place.endswith(".py"):
        return [Path(place).resolve().parent]
    top = place.partition(".")[0]
    if not sign or not top:
        return []
    found = importlib.machinery.PathFinder.find_spec(top, [*sys.path, str(Path.cwd())])
    if found is None:
        with suppress(ImportError, ValueError):
            found = importlib.util.find_spec(top)
    if found is None:
        return []
    places = found.submodule_search_locations or ([found.origin] if found.has_location and found.origin else [])
    return [Path(each).absolute().parent for each in places]


def _files_of(source: str) -> list[Path]:
    """Return the files that exist among those that a source names beside its code."""
    return [*read_agent(source).files, *named_files({"data": _split_data(source)[0]})]


def _split_data(source: str) -> tuple[str, str]:
    """Return the data that the source of a family's domain names, such as a suite, and its code; others are all code.

    Only a family can tell: `gym:lab.toml:envs.py:make`.
    """
    family, text = split_family(source)
    code = find_family(family).strip_data(text) if family else source
    return text.removesuffix(code).rstrip(":"), code


def view_of_command(words: list[str]) -> tuple[View, list[str]]:
    """Return what the program of a command sees, and the command as it is typed in another folder.

    Its own folder is that of the first file the command names; further files and folders in it are granted.

    Raises:
        FileNotFoundError: There is no such program.
    """
    program = shutil.which(words[0])
    if program is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), words[0])
    path, command, named = Path(program).absolute(), [str(Path(program).absolute())], list[Path]()
    for word in words[1:]:
        option, sign, value = word.rpartition("=")
        exists = bool(value) and Path(value).exists()
        named += [Path(value).absolute()] if exists else []
        command.append(f"{option}{sign}{Path(value).absolute()}" if exists else word)
    own = [each for each in named if each.is_file()][:1] + follow_links(path)
    folders = [each.resolve().parent for each in own] + [each.parent for each in own]
    places = tuple(place for before, word in pairwise(words) if before == "-m" for place in _folders_of(f"{word}:"))
    python = view_of_python() if Path(sys.prefix) in list_installations(path) else View()  # with its packages
    seen = View((*folders, *places), tuple(list_installations(path)), tuple((each, False) for each in named), places)
    return seen | replace(python, modules=()), command


def list_installations(path: Path) -> list[Path]:
    """Return the installations of Python that a program, or a link that leads to it, belongs to."""
    prefixes = [each.parent.parent for each in follow_links(path)]
    if path == Path(sys.executable):
        prefixes += [Path(sys.prefix), Path(sys.base_prefix)]
    return [each for each in prefixes if _is_installation(each)]


def _is_installation(folder: Path) -> bool:
    marks = "pyvenv.cfg", "shims", "lib/python3*"  # shims are those of pyenv and asdf
    return folder not in (Path("/"), Path.home()) and any(any(folder.glob(mark)) for mark in marks)


def follow_links(path: Path) -> list[Path]:
    """Return a path and, if it is a link, all paths that it leads to."""
    paths = [path]
    while paths[-1].is_symlink() and len(paths) < MAX_LINKS:
        paths.append(Path(os.path.normpath(paths[-1].parent / os.readlink(paths[-1]))))
    return paths
