"""Options that a domain adds to `openfield run`, `play` and `serve`, and what they change in the command.

A domain declares its options as a dataclass. The command line parses it together with the command's own options and
shows it in the command's help, where the docstring of a field is its help text. See `CommandOptions` for an example.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from cyclopts import Parameter
from cyclopts.validators import Number

if TYPE_CHECKING:
    from cyclopts import Token

    from openfield.registry import AgentSource
    from openfield.result import Result

__all__ = ["MORE", "CommandChanges", "CommandOptions", "Count", "Port", "Seconds", "Whole", "given"]

COMMANDS = ("run", "play", "serve")
"""The commands that take options of a domain."""
MORE = "More options"
"""The group of options that only `--help-all` shows: `Annotated[bool, Parameter(group=MORE)]`."""


@dataclass(frozen=True)
class CommandChanges:
    """What the options of a domain change in a command; the command's own options win."""

    experiment: Mapping[str, Any] = field(default_factory=dict)
    """Keys of an experiment: `settings`, `limits`, `novelty`, `trials`, `workers`."""
    usual_settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of trials that `serve` and `play` make, where the user sets nothing else."""
    agents: Mapping[str, AgentSource] = field(default_factory=dict)
    """Who plays, by name. Factories play only in this process: set `workers` to 0 with them."""
    serving: Any = None
    """What the domain wants to be told when it opens its dispatcher: `Serving.options`."""
    host: str | None = None
    port: int | None = None
    needs_token: bool = False
    """Whether the domain's own options let in only clients that show a token."""
    trials_from: str = ""
    """The file that lists the trials to serve; options that choose trials are refused with it."""
    notice: str = ""
    """What the user should know before the command starts."""
    instead: Callable[[Mapping[str, Any]], Any] | None = None
    """Plays elsewhere instead of here. Takes the command's own options as keys of an experiment, returns JSON."""
    terminal: bool = False
    """Whether a person wants to play at the terminal."""
    finish: Sequence[Callable[[Result], None]] = ()
    """What is done with the result, in this order."""


class CommandOptions(Protocol):
    """The options of a domain for a command: a dataclass whose fields cyclopts parses.

    Example:
        @dataclass(frozen=True, kw_only=True)
        class MazeOptions:
            size: int = 5
            \"\"\"Squares on a side.\"\"\"

            def prepare(self):
                return CommandChanges({"settings": {"size": self.size}})
    """

    def prepare(self) -> CommandChanges:
        """Return what the options change in the command."""
        ...


def given(options: Any) -> dict[str, Any]:
    """Return the fields of an options dataclass that differ from their defaults."""
    values = {each.name: (getattr(options, each.name), each.default) for each in fields(options)}
    return {name: value for name, (value, default) in values.items() if default is MISSING or value != default}


def _read_whole(_: Any, tokens: Sequence[Token]) -> int:
    """Read a whole number, also one written like `1e6`; cyclopts would round a half in silence."""
    text = tokens[0].value
    if text.removeprefix("-").isdecimal():
        return int(text)
    with suppress(ValueError, OverflowError):
        if int(float(text)) == float(text):
            return int(float(text))
    raise ValueError("a whole number")


def _check_seconds(_: Any, value: float | None) -> None:
    if value is not None and not 0 <= value < math.inf:
        raise ValueError("Must be a number of seconds, 0 or more.")


Whole = Annotated[int, Parameter(converter=_read_whole, metavar="NUMBER")]
"""A whole number."""
Count = Annotated[int, Parameter(converter=_read_whole, metavar="NUMBER", validator=Number(gte=1, lte=1_000_000))]
"""How many of something: from 1 to a million, which is more than anyone waits for."""
Port = Annotated[int, Parameter(converter=_read_whole, metavar="PORT", validator=Number(gte=0, lte=65_535))]
"""The number of a port; 0 takes a free one."""
Seconds = Annotated[float, Parameter(validator=_check_seconds, metavar="SECONDS")]
"""A time to wait."""
