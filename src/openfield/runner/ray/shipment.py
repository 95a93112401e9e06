"""Bring the files of agents and domains to machines that share no disk with this one.

What travels is what the fingerprints of agents cover: their files, the files that these import, the files that their
parameters and the settings of trials name. On a machine they lie in a folder of their own, each at the path that it has
here, so that a full path here becomes a path in that folder there.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import openfield
from openfield.errors import InvalidInput
from openfield.journal.versions import Code, identify_source, is_command
from openfield.parameters import split_source, write_source
from openfield.registry import AgentSource, absolute, is_control
from openfield.runner.plan import Plan, agent_text

OWN_FOLDERS = tuple(
    Path(each).resolve()
    for each in (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), openfield.__path__[0])
)
"""What every machine has of its own."""
MAX_SHIPMENT = 512 << 20
"""Bytes of all files together. More than that belongs on a disk that the machines share."""


@dataclass(frozen=True)
class Shipment:
    """Files by their full paths, with the folders that this process works and looks for modules in."""

    files: Mapping[str, bytes]
    here: str
    """The working folder."""
    modules: tuple[str, ...]
    """Folders of `sys.path` that hold some of the files."""

    def unpack(self, folder: Path) -> None:
        """Write the files below a folder, work in it from now on, and find modules there."""
        for name, content in self.files.items():
            path = place_in(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        here = place_in(folder, self.here)
        here.mkdir(parents=True, exist_ok=True)
        os.chdir(here)
        sys.path += [str(place_in(folder, each)) for each in self.modules]

    def move(self, source: str, folder: Path) -> str:
        """Return the source of an agent or domain with the places that its files have below a folder."""
        if is_command(source):
            for name in sorted(self.files, key=len, reverse=True):
                source = source.replace(name, str(place_in(folder, name)))
            return source
        if is_control(source):
            return source
        place, parameters = split_source(source)
        moved = {name: self._move_value(value, folder) for name, value in parameters.items()}
        path, colon, attribute = place.partition(":")
        return write_source(f"{self._move_value(path, folder)}{colon}{attribute}", moved)

    def _move_value(self, value: Any, folder: Path) -> Any:
        if isinstance(value, Mapping):
            return {name: self._move_value(one, folder) for name, one in value.items()}
        if isinstance(value, list):
            return [self._move_value(one, folder) for one in value]
        return str(place_in(folder, value)) if isinstance(value, str) and value in self.files else value


def place_in(folder: Path, path: str) -> Path:
    """Return where a file with this full path lies below a folder."""
    return folder / path.lstrip("/")


def pack(plan: Plan, sources: Iterable[str]) -> Shipment:
    """Read all files that the cells of a plan need.

    Args:
        plan: What is to be played.
        sources: The agents and domains as text.

    Raises:
        InvalidInput: They are too large.
    """
    paths = dict.fromkeys(map(str, _list_files(plan, sources)))
    size = sum(Path(path).stat().st_size for path in paths)
    if size > MAX_SHIPMENT:
        raise InvalidInput(
            f"The files of agents and domains have {size >> 20} MB; {MAX_SHIPMENT >> 20} MB are sent to machines. "
            "Put large ones on a disk that the machines share, and let the agent open them there."
        )
    folders = [str(Path(each or ".").absolute()) for each in sys.path]
    used = dict.fromkeys(each for each in folders if any(Path(path).is_relative_to(each) for path in paths))
    modules = tuple(each for each in used if each != "/")
    return Shipment({path: Path(path).read_bytes() for path in paths}, str(Path.cwd()), modules)


def _list_files(plan: Plan, sources: Iterable[str]) -> Iterator[Path]:
    codes: list[Code | None] = [*plan.codes.values()]
    codes += [identify_source(source) for source in sources if not is_control(source)]
    for code in codes:
        yield from () if code is None else (path for path in code.files.values() if not is_everywhere(path))
    settings = {text for cell in plan.cells for text in cell.trial.settings.values() if isinstance(text, str)}
    for path in (Path(text).absolute() for text in sorted(settings) if is_local(text)):
        yield from [each for each in sorted(path.rglob("*")) if each.is_file()] if path.is_dir() else [path]


def is_everywhere(path: Path) -> bool:
    """Return whether a file belongs to Python or to openfield: a part of these would hide the whole."""
    return any(path.is_relative_to(folder) for folder in OWN_FOLDERS)


def is_local(text: str) -> bool:
    """Return whether a setting names a file or folder that lies below the working folder, by a relative path."""
    try:
        path = Path(text)
        return bool(text) and not path.is_absolute() and ".." not in path.parts and path.exists() and text != "."
    except (OSError, ValueError):
        return False


def write_agent(name: str, source: AgentSource) -> str:
    """Return an agent as text that another machine can use.

    Raises:
        InvalidInput: It is defined in the script that runs, or has no name.
    """
    text = agent_text(source)
    if text is None:
        found = source.func if isinstance(source, partial) else source
        raise InvalidInput(
            f"The agent '{name}' ({found!r:.80}) cannot be sent to other machines. Define it at the top of a module, "
            "or name it as 'package.module:name' or 'file.py:name'."
        )
    return text


def write_domain(name: str, source: str) -> str:
    """Return a domain as text that another machine can use."""
    return absolute(source or name)
