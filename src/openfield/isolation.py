"""The rights of an isolated agent: the options `--memory`, `--grant`, `--env`, `--gpu` and `--network`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from openfield.errors import InvalidInput, UnknownName
from openfield.options import AGENTS, MORE, Options, fill

UNITS = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
WRITABLE = ":rw"
Positive = msgspec.Meta(ge=1)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Isolation(Options):
    """What every isolated agent of a run may see and use; the keys of `[isolate]` in an experiment file."""

    memory: Annotated[str, Parameter(group=MORE, metavar="SIZE")] = "2GB"
    """Memory of an isolated agent with all its processes and the files in its folder [2GB]."""
    grant: Annotated[tuple[str, ...], Parameter(group=MORE, consume_multiple=False, metavar="PATH")] = ()
    """A file or folder that isolated agents may read; `PATH:rw` may be written. Repeat it for further ones."""
    env: Annotated[tuple[str, ...], Parameter(group=MORE, consume_multiple=False, metavar="NAME")] = ()
    """An environment variable that isolated agents are given. Repeat it for further ones."""
    gpu: Annotated[bool, Parameter(group=MORE)] = False
    """Let isolated agents use the graphics cards."""
    network: Annotated[bool, Parameter(group=MORE)] = False
    """Let isolated agents use the network."""
    processes: Annotated[int, Positive, Parameter(parse=False)] = 1_000
    """Processes and threads at a time."""
    processor_seconds: Annotated[int, Positive, Parameter(parse=False)] = 36_000
    """Processor time of all processes together, in one cell."""
    file_size: Annotated[str, Parameter(parse=False)] = "4GB"
    """The size of one file."""
    missing: Annotated[str, Parameter(parse=False)] = ""
    """Why agents do not run inside bubblewrap. It is set by what works on the machine, not by the user."""

    @property
    def bubblewrap(self) -> bool:
        """Whether agents run inside bubblewrap."""
        return not self.missing

    @property
    def grants(self) -> list[tuple[Path, bool]]:
        """The granted paths, and whether each may be written."""
        return [(Path(word.removesuffix(WRITABLE)).absolute(), word.endswith(WRITABLE)) for word in self.grant]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class IsolationOptions(Isolation):
    """Whether agents are isolated, and their rights if so."""

    isolate: Annotated[bool, Parameter(group=AGENTS)] = False
    """Play every agent in a closed process of its own."""

    def add_to(self, before: bool | Mapping[str, Any]) -> bool | dict[str, Any]:
        """Return the key `isolate` of an experiment with these options."""
        allowed = {name: value for name, value in self.given.items() if name != "isolate"}
        if before is False and not self.isolate:
            if allowed:
                raise InvalidInput(f"--{next(iter(allowed))} is for isolated agents. Add --isolate.")
            return False
        return {**({} if isinstance(before, bool) else before), **allowed}


def read_size(text: str) -> int:
    """Return a size like `2GB` or `1.5GB` in bytes."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]B)", text.strip(), re.IGNORECASE)
    size = int(float(found[1]) * UNITS[found[2].upper()]) if found else 0
    if not size:
        raise InvalidInput(f"'{text}' is not a size; write 500MB or 2GB.")
    return size


@dataclass(frozen=True)
class IsolatedAgents:
    """Agents to be isolated, and their rights."""

    agents: Any
    isolation: Isolation


def isolate(agents: Any, **allowed: object) -> IsolatedAgents:
    """Return agents that `run` plays in isolated processes: `run(isolate("mine.py:Agent"), trials, "run.sqlite")`.

    Args:
        agents: One agent, several, or several by name, as `run` takes them.
        **allowed: What they may see and use: `memory`, `grant`, `env`, `gpu`, `network`, `processes`,
            `processor_seconds`, `file_size`.
    """
    return IsolatedAgents(agents, make_isolation(**allowed))


def make_isolation(**values: object) -> Isolation:
    """Make the settings, with paths that stay right in another folder.

    Raises:
        InvalidInput: A size is malformed, or a path or variable does not exist.
    """
    try:
        made = fill(Isolation, values, "key", "Keys of isolate")
    except (InvalidInput, UnknownName) as error:
        raise InvalidInput(f"isolate: {error}") from None
    for size in (made.memory, made.file_size):
        read_size(size)
    for path, _ in made.grants:
        if not path.exists():
            raise InvalidInput(f"--grant {path}: there is no such file or folder.")
    for name in made.env:
        if name not in os.environ:
            raise InvalidInput(f"--env {name}: there is no such environment variable.")
    grants = tuple(f"{path}{WRITABLE * writable}" for path, writable in made.grants)
    return replace(made, grant=grants)
