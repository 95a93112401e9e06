"""Suites: files that describe environments and their novelties, so that a laboratory can publish its own.

A suite is a TOML file. Those beside this module are found by the id of the environment, others by their path:
`gym:lab.toml:CartPole-v1`. A suite names no code that runs when it is read.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import msgspec

from openfield.domains.gym.formula import read_formula
from openfield.domains.gym.settings import GymSettings
from openfield.errors import InvalidInput, OpenfieldError
from openfield.files.data import read_toml
from openfield.novelty import Novelty
from openfield.registry import names_class

SUITES = ("atari", "classic-control", "crafter", "minigrid", "toy-text")
"""The suites that come with the package."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
Scale = tuple[float, float]


class SuiteNovelty(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A novelty of a suite. `change` is what `--novelty` takes: `masscart*=5`, `make.mode=4`, several joined by `+`."""

    name: Text
    change: Text
    description: Text
    level: int
    kind: Text
    difficulty: str = ""
    rare: bool = False
    """Whether random play seldom shows it, so that `openfield check` does not insist."""

    @property
    def id(self) -> str:
        """The name as the command line takes it."""
        return f"{self.name}:{self.difficulty}" if self.difficulty else self.name


class SuiteEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A suite's description of the environments whose ids fit some patterns."""

    ids: tuple[Text, ...]
    novelties: tuple[SuiteNovelty, ...] = ()
    derived: dict[Text, Text] = {}
    """Attributes that the environment computes from others once: name -> formula."""
    reuse: bool | None = None
    """Whether an environment that is used again is equal to a fresh one."""
    pays_late: bool | None = None
    """Whether rewards come only with the end of an episode."""
    steps: int = 0
    """Steps of an episode, where the environment does not say it."""
    reference: Scale | None = None
    """Published returns that are a performance of 0 and 1."""
    returns: Scale | None = None
    """The lowest and the highest return that there can be."""
    source: str = ""
    """Where the reference was published."""
    neutral: tuple[Text, ...] = ()
    """Arguments of the constructor under which the reference still holds."""
    check: dict[str, Any] = {}
    """Settings with which `openfield check` plays."""
    task: str = ""
    """The task in words, for agents."""


class Suite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of novelties and of facts about environments."""

    name: Text
    description: str = ""
    ids: tuple[Text, ...] = ("*",)
    """Patterns of the ids that the suite is about."""
    extra: str = ""
    """The optional part of openfield that these environments need."""
    modules: tuple[str, ...] = ()
    """The packages that register them."""
    source: str = ""
    """Where the references were published."""
    references: dict[Text, Scale] = {}
    """Published returns that are a performance of 0 and 1, by patterns of ids."""
    environments: Annotated[tuple[SuiteEntry, ...], msgspec.Meta(min_length=1)]

    def covers(self, name: str) -> bool:
        """Return whether the suite is about an id."""
        return _fits(name, self.ids) and any(_fits(name, entry.ids) for entry in self.environments)

    def describe(self, name: str) -> SuiteEntry:
        """Return all that the suite says of an environment. Where entries differ, the first one counts."""
        entries = [entry for entry in self.environments if _fits(name, self.ids) and _fits(name, entry.ids)]
        published = next((scale for pattern, scale in self.references.items() if _fits(name, (pattern,))), None)
        found = _join(name, entries)
        if found.reference is None and published is not None and entries:
            return msgspec.structs.replace(found, reference=published, source=self.source)
        return found


def find_entry(name: str, suite: Suite | None = None) -> SuiteEntry:
    """Return the known facts of an environment: from a suite of the user's, and from those of the package.

    The novelties are those of the user's suite if there is one.
    """
    own = [entry.describe(name) for entry in map(read_suite, SUITES) if entry.covers(name)][:1]
    if suite is None:
        return _join(name, own)
    return _join(name, [suite.describe(name), *(msgspec.structs.replace(entry, novelties=()) for entry in own)])


def find_suite(name: str) -> Suite | None:
    """Return the suite of the package that is about an id, whether or not the environment is installed."""
    return next((suite for suite in map(read_suite, SUITES) if _fits(name, suite.ids)), None)


def list_suite_novelties(entry: SuiteEntry) -> Iterator[Novelty[GymSettings]]:
    """Yield the novelties of an environment that its suite declares."""
    from openfield.domains.gym.novelty import join_changes  # it needs Gymnasium, and a suite says how to install that

    for each in entry.novelties:
        yield Novelty(each.name, each.level, each.kind, each.description, join_changes(each.change), each.difficulty)


@cache
def read_suite(name: str) -> Suite:
    """Return a suite of the package."""
    text = files(__package__).joinpath(f"{name}.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), Suite, strict=False)


def open_suite(path: Path) -> Suite:
    """Return the suite in a file of the user's. Files that it names lie beside it.

    Raises:
        InvalidInput: It cannot be read, or something in it cannot be used.
    """
    found = path if path.is_file() else Path(path.name)  # a run and its files may have moved together
    try:
        suite = msgspec.convert(read_toml(found), Suite, strict=False)
        suite = _locate(suite, found.parent)
        check_suite(suite)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{path} is not a suite: {error}.") from None
    except OpenfieldError as error:
        raise InvalidInput(str(error) if str(path) in str(error) else f"{path}: {error}") from None
    return suite


def check_suite(suite: Suite) -> None:
    """Refuse a suite with names, changes or formulas that cannot be used.

    Raises:
        InvalidInput: There is one.
    """
    if not _NAME.fullmatch(suite.name):
        raise InvalidInput(f"A suite cannot be called '{suite.name}': use letters, digits, dots and dashes.")
    if suite.modules or suite.extra:
        raise InvalidInput("Only suites of the package may have 'modules' and 'extra': write gym:FILE:module:ID.")
    for entry in suite.environments:
        for scale in (entry.reference, entry.returns):
            if scale is not None and not scale[0] < scale[1]:
                raise InvalidInput(f"{scale[0]:g}, {scale[1]:g} is not a scale: the first must be below the second.")
        for formula in entry.derived.values():
            read_formula(formula)
        for novelty in entry.novelties:
            if not _NAME.fullmatch(novelty.name) or novelty.difficulty not in ("", "easy", "medium", "hard"):
                raise InvalidInput(
                    f"Novelty '{novelty.name}:{novelty.difficulty}' has no usable name: use letters, digits, dots and "
                    "dashes, and easy, medium or hard as difficulty."
                )
        list(list_suite_novelties(entry))


def _join(name: str, entries: list[SuiteEntry]) -> SuiteEntry:
    """Return several entries as one; of single facts the first one given counts."""
    joined: dict[str, Any] = {"ids": (name,)}
    given: list[Any]
    for field in SuiteEntry.__struct_fields__[1:]:
        values = (getattr(entry, field) for entry in entries)
        given = [value for value in values if value or isinstance(value, bool)]
        if field == "novelties":
            joined[field] = tuple(novelty for each in given for novelty in each)
        elif given and isinstance(given[0], Mapping):
            joined[field] = {key: value for each in reversed(given) for key, value in each.items()}
        elif given:
            joined[field] = given[0]
    return SuiteEntry(**joined)


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _locate(suite: Suite, folder: Path) -> Suite:
    """Return a suite in which wrappers in files are named by paths that hold in the working directory."""

    def locate(text: str) -> str:
        place = text.partition(":")[0]
        found = names_class(text) and place.endswith(".py") and not Path(place).is_absolute()
        return f"{folder / text}" if found else text

    def locate_all(entry: SuiteEntry) -> SuiteEntry:
        moved = [
            msgspec.structs.replace(each, change="+".join(map(locate, each.change.split("+"))))
            for each in entry.novelties
        ]
        return msgspec.structs.replace(entry, novelties=tuple(moved))

    return msgspec.structs.replace(suite, environments=tuple(map(locate_all, suite.environments)))
