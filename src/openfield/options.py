"""Options that a domain adds to `openfield run`, `play`, `serve` and `score`, and their effects on the command.

A domain declares its options as a dataclass. The command line parses it together with the command's own options and
shows it in the command's help, where the docstring of a field is its help text. See `CommandOptions` for an example.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, Self, TypeVar, get_args

import msgspec
from cyclopts import Group, Parameter
from cyclopts.validators import Number

from openfield.errors import InvalidInput, UnknownName

if TYPE_CHECKING:
    from cyclopts import Token

    from openfield.registry import AgentSource
    from openfield.result import Result

__all__ = [
    "MORE",
    "CommandChanges",
    "CommandOptions",
    "Count",
    "NumberTable",
    "Port",
    "RecordKind",
    "Seconds",
    "Whole",
    "changed_fields",
]

COMMANDS = ("run", "play", "serve", "score")
"""The commands that take options of a domain."""
MORE = "More options"
"""The group of options that only `--help-all` shows: `Annotated[bool, Parameter(group=MORE)]`."""
AGENTS = Group("Agents", sort_key=1)
RecordKind = Literal["digests", "full"]
"""How large arrays are recorded."""
KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table of keys",
    "null": "nothing",
}
BOUNDS = {">=": "{} or more", ">": "above {}", "<=": "at most {}", "<": "below {}"}
Filled = TypeVar("Filled", bound="Options")
_MISMATCH = re.compile(
    r"Expected `(?P<kinds>[^`]+)`(?: (?P<sign>[<>]=?) (?P<bound>\S+))?(?:, got `(?P<other>[^`]+)`)?"
    r" - at `\$\.(?P<key>.*)`$"
)


class Options:
    """Options that know which of them were given: the others leave what an experiment file says."""

    given: dict[str, Any]
    """The values that were given, by name."""

    def __new__(cls, **given: Any) -> Self:
        """Remember what is given."""
        made = object.__new__(cls)
        object.__setattr__(made, "given", given)
        return made


def fill(kind: type[Filled], values: Mapping[str, Any], word: str = "option", label: str = "Known") -> Filled:
    """Make options from plain values.

    Args:
        kind: Which options.
        values: The values that are given, by name.
        word: The word for a name in a message.
        label: What the names are called that there are.

    Raises:
        UnknownName: There is no such option.
        InvalidInput: A value is of the wrong type.
    """
    known = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    for name in values:
        if name not in known:
            raise UnknownName(word, name, known, label=label)
    check_record_kind(values.get("record"))
    try:
        made = msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{say_mismatch(error)}.") from None
    object.__setattr__(made, "given", dict(values))
    return made


def say_mismatch(error: msgspec.ValidationError) -> str:
    """Explain the fault of a value: `'trials' must be a whole number, 1 or more`."""
    found = _MISMATCH.match(str(error))
    if found is None:
        return str(error).removeprefix("Object ").removesuffix(" - at `$.isolate`")
    kinds = " or ".join(KINDS.get(kind, kind) for kind in found["kinds"].split(" | "))
    bound = f", {BOUNDS[found['sign']].format(found['bound'].removesuffix('.0'))}" if found["sign"] else ""
    other = f", not {KINDS.get(found['other'], found['other'])}" if found["other"] else ""
    return f"'{found['key']}' must be {kinds}{bound}{other}"


def check_record_kind(record: object) -> None:
    """Refuse anything but a `RecordKind`; None leaves the choice open.

    Raises:
        InvalidInput: It is something else.
    """
    if record is not None and record not in get_args(RecordKind):
        raise InvalidInput(f"record is 'digests' or 'full', not {record!r}.")


@dataclass(frozen=True)
class NumberTable:
    """Numbers that a domain computes for `score`: all of them as plain values, and the rows of a table."""

    values: Any
    """Everything, for JSON."""
    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str
    remarks: Sequence[str] = ()
    """Lines below the table."""


@dataclass(frozen=True)
class CommandChanges:
    """What the options of a domain change in a command; the command's own options win."""

    experiment: Mapping[str, Any] = field(default_factory=dict)
    """Keys of an experiment: `settings`, `limits`, `novelty`, `trials`, `workers`."""
    usual_settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of trials that `serve` and `play` make, where the user sets nothing else."""
    agents: Mapping[str, AgentSource] = field(default_factory=dict)
    """Who plays, by name. Factories play only in this process: set `workers` to 0 with them."""
    others: Mapping[str, Any] | None = None
    """The keys of the experiment where the user names other agents; None if they are the same."""
    named_by: str = ""
    """The option with which the user has named who plays: other agents beside it are refused."""
    serving: Any = None
    """What the domain gets when it opens its dispatcher: `Serving.options`."""
    host: str | None = None
    port: int | None = None
    needs_token: bool = False
    """Whether the domain's own options let in only clients that show a token."""
    trials_from: str = ""
    """The file that lists the trials to serve; options that choose trials are refused with it."""
    sealed: bool = False
    """Whether `serve` draws a sealed seed where the user gives none."""
    notice: str = ""
    """What the user should know before the command starts."""
    instead: Callable[[Mapping[str, Any]], Any] | None = None
    """Plays elsewhere instead of here. Takes the command's own options as keys of an experiment, returns JSON."""
    score: Callable[[], NumberTable] | None = None
    """Computes the numbers that `score` prints."""
    terminal: bool = False
    """Whether a person wants to play at the terminal."""
    finish: Sequence[Callable[[Result], None]] = ()
    """Actions on the result, in this order."""

    def for_others(self) -> CommandChanges:
        """Return the changes without these agents, and without what was changed for them.

        Raises:
            InvalidInput: An option has named who plays.
        """
        if self.named_by:
            raise InvalidInput(f"Both {self.named_by} and --agent say who plays. Name all of them with --agent.")
        return replace(self, agents={}, experiment=self.experiment if self.others is None else self.others)


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


def changed_fields(options: Any) -> dict[str, Any]:
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
Tokens = Annotated[int, Parameter(converter=_read_whole, metavar="TOKENS", validator=Number(gte=1, lte=10**15))]
"""How many tokens of language models: long runs use billions."""
Port = Annotated[int, Parameter(converter=_read_whole, metavar="PORT", validator=Number(gte=0, lte=65_535))]
"""The number of a port; 0 takes a free one."""
Seconds = Annotated[float, Parameter(validator=_check_seconds, metavar="SECONDS")]
"""A time to wait."""
