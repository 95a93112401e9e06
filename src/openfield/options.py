"""What a domain adds to the command line: options of its own, and files it can be started from.

A domain declares flags; `run`, `play` and `serve` read them into a launch and know nothing of any domain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from openfield.errors import InvalidInput, UnknownName

if TYPE_CHECKING:
    from openfield.core import AgentFactory
    from openfield.registry import AgentSource
    from openfield.result import Result
    from openfield.serving.wire import Wire

COMMANDS = ("run", "play", "serve")


@dataclass(frozen=True)
class Launch:
    """What a command is about to do, as far as a domain's flags have a say in it; the user's other options win."""

    settings: dict[str, Any] | None = None
    limits: dict[str, Any] | None = None
    agents: dict[str, AgentSource] | None = None
    """By name; factories can only play in this process, so whoever gives one also sets `workers` to 0."""
    novelty: str | None = None
    trials: int | None = None
    workers: int | None = None
    host: str | None = None
    port: int | None = None
    wire: Wire | None = None
    """The protocol to serve, if not the domain's usual one."""
    view: AgentFactory | None = None
    """How a person plays, if not in the domain's usual way."""
    notes: dict[str, Any] | None = None
    """What flags leave for `Domain.prepare`, for the domain's own dispatcher, or for `visit`."""
    visit: Callable[[Launch, dict[str, Any]], Any] | None = None
    """Has the agents play elsewhere instead of here; told the launch and the user's options, returns what to print."""
    settled: str = ""
    """What says which trials are served, if the user's options have no say in it."""
    notice: str = ""
    """What the user should know before it starts."""
    finish: tuple[Callable[[Result], None], ...] = ()
    """What is done with the result, in this order."""

    def set(self, **settings: Any) -> Launch:
        """The launch with these settings of the domain."""
        return replace(self, settings={**(self.settings or {}), **settings})

    def note(self, **notes: Any) -> Launch:
        """The launch with these notes."""
        return replace(self, notes={**(self.notes or {}), **notes})

    def limit(self, **limits: Any) -> Launch:
        """The launch with these limits for the agent."""
        return replace(self, limits={**(self.limits or {}), **limits})


@dataclass(frozen=True)
class Flag:
    """An option of a domain, or, if its name has no dash, one further word after the domain's name."""

    names: tuple[str, ...]
    """`("-d", "--time-delay")`, or `("CONFIG",)` for a word."""
    note: str
    change: Callable[[Launch, Any], Launch]
    """What the flag does, told its value."""
    kind: Callable[[str], Any] | None = None
    """Reads the value: `int`, `float`, `str`, `Path`; None if there is none to give."""
    commands: tuple[str, ...] = COMMANDS

    @property
    def is_word(self) -> bool:
        """Whether it is given without a dash."""
        return not self.names[0].startswith("-")

    @property
    def usage(self) -> str:
        """How it is typed."""
        value = "" if self.kind is None or self.is_word else f" {_kind_name(self.kind).upper()}"
        return ", ".join(self.names) + value


def read_flags(flags: Iterable[Flag], command: str, words: Sequence[str], own: Iterable[str] = ()) -> Launch:
    """The launch these words describe.

    Args:
        flags: What the domain declares.
        command: Which command was typed.
        words: What the command itself did not understand.
        own: The command's own options, which a wrong word may have meant.

    Raises:
        UnknownName: There is no such option.
        InvalidInput: A value is missing or wrong, or there is a word too many.
    """
    known = [flag for flag in flags if command in flag.commands]
    by_name = {name: flag for flag in known for name in flag.names}
    places = [flag for flag in known if flag.is_word]
    launch, left = Launch(), list(words)
    while left:
        name, given, value = left.pop(0).partition("=")
        if not name.startswith("-"):
            flag, value = _next_place(places, name + given + value), name + given + value
        elif name not in by_name:
            raise UnknownName("option", name, [*own, *(name for name in by_name if name.startswith("-"))], "Known")
        else:
            flag = by_name[name]
            value = _value(flag, name, value if given else None, left)
        launch = flag.change(launch, True if flag.kind is None else _read(flag, value))
    return launch


def _next_place(places: list[Flag], word: str) -> Flag:
    if not places:
        raise InvalidInput(f"There is a word too many: '{word}'.")
    return places.pop(0)


def _value(flag: Flag, name: str, given: str | None, left: list[str]) -> str:
    if flag.kind is None:
        if given is not None:
            raise InvalidInput(f"{name} takes no value.")
        return ""
    if given is None and not left:
        raise InvalidInput(f"{name} needs a value: {flag.usage}.")
    return left.pop(0) if given is None else given


def _read(flag: Flag, value: str) -> Any:
    try:
        return flag.kind(value) if flag.kind is not None else True
    except ValueError:
        kind = _kind_name(flag.kind) if flag.kind is not None else ""
        raise InvalidInput(f"{flag.names[-1]} takes a value of type {kind}, not '{value}'.") from None


def _kind_name(kind: Callable[[str], Any]) -> str:
    return {"str": "text", "int": "number", "float": "number"}.get(kind.__name__, kind.__name__.lower())
