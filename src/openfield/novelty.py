"""A novelty is a named, pure change from one world's settings to another's.

Domains declare novelties, trials name them, worlds apply them at the onset, reports print them in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Generic, Protocol, Self, TypeVar, runtime_checkable

import msgspec

from openfield.change_process import ChangeProcess, split_process
from openfield.errors import InvalidInput, UnknownName
from openfield.settings import make_settings

S = TypeVar("S")

HIERARCHY = (
    "objects",
    "agents",
    "actions",
    "relations",
    "interactions",
    "rules",
    "goals",
    "events",
    "environments",
)
"""The names of the hierarchy that all domains share; their numbers are each domain's own, as published."""


@dataclass(frozen=True)
class Novelty(Generic[S]):
    """A named change of a world."""

    name: str
    level: int
    """The level in the domain's own numbering."""
    kind: str
    """The name in the hierarchy, one of `HIERARCHY`."""
    note: str
    """The change in words, for people."""
    change: Callable[[S], S]
    difficulty: str = ""
    """`easy`, `medium` or `hard` where the domain distinguishes them."""
    process: ChangeProcess | None = None
    """How the change comes; None if it is there at once, and stays."""

    def __post_init__(self) -> None:
        if self.kind not in HIERARCHY:
            raise UnknownName("kind of novelty", self.kind, HIERARCHY, label="Known")

    @property
    def id(self) -> str:
        """The name as the command line takes it: `NAME` or `NAME:difficulty`, and its process: `slip:hard over 20`."""
        name = f"{self.name}:{self.difficulty}" if self.difficulty else self.name
        return name if self.process is None else f"{name} {self.process}"


@runtime_checkable
class ReadsNovelties(Protocol[S]):
    """Novelties that are more than a list: a text such as `gravity=20` is one too."""

    def read_novelty(self, text: str) -> Novelty[S] | None:
        """Return the novelty that a text stands for; None if it stands for none."""
        ...


class SettingNovelties(tuple[Novelty[S], ...]):
    """Novelties of a domain in which `NAME=VALUE` is one too, for some of its settings."""

    kind: type[S]
    names: frozenset[str]
    """The settings that such a text may change."""

    @classmethod
    def of(cls, novelties: Iterable[Novelty[S]], kind: type[S], names: Iterable[str]) -> Self:
        """Return declared novelties in which some settings may be changed by name."""
        made = cls(novelties)
        made.kind, made.names = kind, frozenset(names)
        return made

    def read_novelty(self, text: str) -> Novelty[S] | None:
        """Return the novelty that a text such as `gravity=20` stands for; None if it stands for none.

        Raises:
            InvalidInput: The setting cannot be changed by a novelty, or has no such value.
        """
        name, sign, value = text.partition("=")
        if not sign:
            return None
        if name not in self.names:
            raise UnknownName("setting of a novelty", name, self.names, label="A novelty may change")
        wanted = getattr(make_settings(self.kind, {name: value}), name)  # type: ignore[type-var]
        return Novelty(text, 0, "rules", f"{name} is {value}", lambda settings: set_fields(settings, {name: wanted}))


def set_fields(settings: S, values: Mapping[str, object]) -> S:
    """Return settings with other values."""
    return msgspec.structs.replace(settings, **values)  # type: ignore[type-var]


def find_novelty(novelties: Iterable[Novelty[S]], wanted: str) -> Novelty[S]:
    """Return the novelty called `NAME` or `NAME:difficulty`, with its process if the text has one.

    A bare name takes the first difficulty declared.
    """
    known = list(novelties)
    for novelty in known:
        if wanted in (novelty.id, novelty.name):
            return novelty
    text, process = split_process(wanted)
    if process is not None:
        found = find_novelty(novelties, text)
        return replace(found, note=f"{found.note}, {process}", process=process)
    if isinstance(novelties, ReadsNovelties) and (read := novelties.read_novelty(wanted)) is not None:
        return read
    raise UnknownName("novelty", wanted, [novelty.id for novelty in known], label="Declared")


def apply_novelties(novelties: Iterable[Novelty[S]], wanted: Iterable[str], settings: S) -> S:
    """Return the settings after all the wanted changes, in order: novelties compose."""
    for name in wanted:
        settings = find_novelty(novelties, name).change(settings)
    return settings


def check_effect(novelties: Iterable[Novelty[S]], names: Sequence[str], settings: S) -> None:
    """Refuse a combination of novelties of which one undoes another: records and reports would name both.

    Whether a single novelty can be noticed is for the conformance kit to find out.

    Raises:
        InvalidInput: The world would be the same without one of them, or without all.
    """
    if len(names) < 2:
        return
    changed = apply_novelties(novelties, names, settings)
    if changed == settings:
        raise InvalidInput(f"Novelties {'+'.join(names)} change nothing together.")
    for number, name in enumerate(names):
        others = [*names[:number], *names[number + 1 :]]
        if _apply(novelties, others, settings) == changed:
            raise InvalidInput(f"Novelty '{name}' changes nothing beside {'+'.join(others)}; leave it out.")


def _apply(novelties: Iterable[Novelty[S]], names: Iterable[str], settings: S) -> S | None:
    """The settings under some novelties; None where they make sense only with others."""
    with suppress(InvalidInput):
        return apply_novelties(novelties, names, settings)
    return None
