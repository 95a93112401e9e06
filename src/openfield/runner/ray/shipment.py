"""Bring the files of agents and domains to machines that share no disk with this one.

What travels is what the fingerprints of agents cover: their files, the files that these import, the files that their
parameters and the settings of trials name. On a machine they lie in a folder of their own, each at the path that it has
here, so that a full path here becomes a path in that folder there.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import openfield
from openfield.errors import InvalidInput
from openfield.parameters import is_command, is_control, make_agent_text, read_agent
from openfield.provenance.versions import Code, identify_source
from openfield.registry import absolute
from openfield.runner.plan import Plan, PlannedAgent, settle_agent
from openfield.trial import Trial

OWN_FOLDERS = tuple(
    Path(each).resolve()
    for each in (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), openfield.__path__[0])
)
"""What every machine has of its own."""
MAX_SHIPMENT, MAX_FILES = 512 << 20, 100_000
"""Bytes and number of all files together. More than that belongs on a disk that the machines share."""


@dataclass(frozen=True)
class Shipment:
    """Files by their full paths, with the folders that this process works and looks for modules in."""

    files: Mapping[str, bytes]
    here: str
    """The working folder."""
    modules: tuple[str, ...]
    """Folders of `sys.path` that hold some of the files."""

    def unpack(self, folder: Path) -> None:
        """Write the files below a folder."""
        for name, content in self.files.items():
            path = place_in(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def enter(self, folder: Path) -> None:
        """Change to the working folder below a folder, and find modules there."""
        here = place_in(folder, self.here)
        here.mkdir(parents=True, exist_ok=True)
        os.chdir(here)
        sys.path += [str(place_in(folder, each)) for each in self.modules]

    def move(self, source: str, folder: Path) -> str:
        """Return the source of an agent or domain with the places that its files have below a folder."""
        if is_control(source):
            return source
        if is_command(source):
            return self._move_words(source, folder)
        agent = read_agent(source)
        moved = {name: self._move_value(value, folder) for name, value in agent.parameters.items()}
        return make_agent_text(self._move_words(agent.place, folder), moved, agent.detector).text

    def find_places(self, trial: Trial, folder: Path) -> dict[str, str]:
        """Return where files and folders lie below a folder that the settings of a trial name by full paths."""
        texts = [text for text in list_texts(trial.settings) if text.startswith("/")]
        moved = {
            text: self._move_value(text, folder) if self._holds(text) else self._move_words(text, folder)
            for text in texts
        }
        return {text: place for text, place in moved.items() if place != text}

    def _move_words(self, text: str, folder: Path) -> str:
        """Return a text in which the full paths of files are those below a folder."""
        names = sorted((re.escape(name) for name in self.files if name in text), key=len, reverse=True)
        return re.sub("|".join(names), lambda name: str(place_in(folder, name[0])), text) if names else text

    def _move_value(self, value: Any, folder: Path) -> Any:
        if isinstance(value, Mapping):
            return {name: self._move_value(one, folder) for name, one in value.items()}
        if isinstance(value, list):
            return [self._move_value(one, folder) for one in value]
        return str(place_in(folder, value)) if isinstance(value, str) and self._holds(value) else value

    def _holds(self, path: str) -> bool:
        inside = f"{path.rstrip('/')}/"
        return path in self.files or (path.startswith("/") and any(name.startswith(inside) for name in self.files))


def place_in(folder: Path, path: str) -> Path:
    """Return where a file with this full path lies below a folder."""
    return folder / path.lstrip("/")


def pack_shipment(plan: Plan, domains: Iterable[str]) -> Shipment:
    """Read all files that the cells of a plan need.

    Args:
        plan: The plan to play.
        domains: The domains as text.

    Raises:
        InvalidInput: They are too large.
    """
    paths, size = dict[str, None](), 0
    for path in _list_files(plan, domains):
        size += 0 if str(path) in paths else path.stat().st_size
        paths[str(path)] = None
        if size > MAX_SHIPMENT or len(paths) > MAX_FILES:
            raise InvalidInput(
                f"The files of agents and domains are too many or too large ({path} is one of them): {MAX_FILES:,} "
                f"files and {MAX_SHIPMENT >> 20} MB are sent to machines. Put them on a disk that the machines share, "
                "and let the agent open them there."
            )
    folders = [str(Path(each or ".").absolute()) for each in sys.path]
    used = dict.fromkeys(each for each in folders if any(Path(path).is_relative_to(each) for path in paths))
    modules = tuple(each for each in used if each != "/")
    return Shipment({path: Path(path).read_bytes() for path in paths}, str(Path.cwd()), modules)


def _list_files(plan: Plan, domains: Iterable[str]) -> Iterator[Path]:
    codes: list[Code | None] = [*plan.codes.values()]
    codes += [identify_source(source) for source in (*domains, *plan.trial_code)]
    for code in codes:
        yield from () if code is None else (path for path in code.files.values() if not is_everywhere(path))
    settings = {text for cell in plan.cells for text in list_texts(cell.trial.settings)}
    for path in filter(None, map(find_path, sorted(settings))):
        yield from (each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]


def list_texts(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts among settings."""
    for value in settings.values():
        yield from (text for text in (value if isinstance(value, list | tuple) else [value]) if isinstance(text, str))


def is_everywhere(path: Path) -> bool:
    """Return whether a file belongs to Python or to openfield: a part of these would hide the whole."""
    return any(path.is_relative_to(folder) for folder in OWN_FOLDERS)


def find_path(text: str) -> Path | None:
    """Return the file or folder that a setting names; None if it names none, or one that this process works in."""
    try:
        path = Path(os.path.abspath(text))  # `..` is taken away, and links stay
        return path if text and path.exists() and not Path.cwd().is_relative_to(path) else None
    except (OSError, ValueError):
        return None


def check_agents(plan: Plan) -> None:
    """Check that the agents of a plan can be sent to other machines.

    Raises:
        InvalidInput: One cannot.
    """
    for name, agent in plan.agents.items():
        write_agent(name, agent)


def write_agent(name: str, agent: PlannedAgent) -> str:
    """Return an agent as text that another machine can use.

    Raises:
        InvalidInput: It is defined in the script that runs, or has no name.
    """
    text = settle_agent(agent)
    if text is None:
        found = agent.func if isinstance(agent, partial) else agent
        raise InvalidInput(
            f"The agent '{name}' ({found!r:.80}) cannot be sent to other machines. Define it at the top of a module, "
            "or name it as 'package.module:name' or 'file.py:name'."
        )
    return text.text


def write_domain(name: str, source: str) -> str:
    """Return a domain as text that another machine can use."""
    return absolute(source or name)
