"""What an isolated agent may see and use: the options `--memory`, `--grant`, `--env`, `--gpu` and `--network`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from openfield.errors import InvalidInput

UNITS = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
WRITABLE = ":rw"
Positive = Annotated[int, msgspec.Meta(ge=1)]


class Isolation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What every isolated agent of a run may see and use; the keys of `[isolate]` in an experiment file."""

    memory: str = "2GB"
    """Resident memory of all processes of an agent together, with the files in its folder: `500MB`, `2GB`."""
    grant: tuple[str, ...] = ()
    """Files and folders it may read; `PATH:rw` may also be written."""
    env: tuple[str, ...] = ()
    """Environment variables that are passed on."""
    gpu: bool = False
    network: bool = False
    processes: Positive = 1_000
    """Processes and threads at a time."""
    processor_seconds: Positive = 36_000
    """Processor time of all processes together, in one cell."""
    file_size: str = "4GB"
    """The size of one file."""
    missing: str = ""
    """Why agents do not run inside bubblewrap. It is set by what works on the machine, not by the user."""

    def __post_init__(self) -> None:
        """Refuse sizes that are not sizes."""
        for size in (self.memory, self.file_size):
            read_size(size)

    @property
    def bubblewrap(self) -> bool:
        """Whether agents run inside bubblewrap."""
        return not self.missing

    @property
    def grants(self) -> list[tuple[Path, bool]]:
        """The granted paths, and whether each may be written."""
        return [(Path(word.removesuffix(WRITABLE)).absolute(), word.endswith(WRITABLE)) for word in self.grant]


def read_size(text: str) -> int:
    """Return a size like `2GB` or `1.5GB` in bytes."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]B)", text.strip(), re.IGNORECASE)
    size = int(float(found[1]) * UNITS[found[2].upper()]) if found else 0
    if not size:
        raise ValueError(f"'{text}' is not a size; write 500MB or 2GB")
    return size


@dataclass(frozen=True)
class IsolatedAgents:
    """Agents that are to be isolated, and what they may see and use."""

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
        InvalidInput: A size is none, a path or variable does not exist.
    """
    try:
        made = msgspec.convert(values, Isolation)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"isolate: {str(error).partition(' - at')[0]}.") from None
    for path, _ in made.grants:
        if not path.exists():
            raise InvalidInput(f"--grant {path}: there is no such file or folder.")
    for name in made.env:
        if name not in os.environ:
            raise InvalidInput(f"--env {name}: there is no such environment variable.")
    grants = tuple(f"{path}{WRITABLE * writable}" for path, writable in made.grants)
    return msgspec.structs.replace(made, grant=grants)
