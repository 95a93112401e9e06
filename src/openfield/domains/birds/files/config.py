"""Readers of the two configuration files: `configMeta.xml`, which describes trials, and `config.xml`, which lists them.

Encodings are detected and document types are refused. A bad value is reported with its element, its attribute and the
allowed values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from openfield.domains.birds.files.pool import LevelPool
from openfield.domains.birds.game.level import decode_xml
from openfield.domains.birds.harness import EvaluationScript, LevelSet
from openfield.errors import InvalidInput
from openfield.registry import import_extra

MAX_NUMBER = 10**9
MAX_TRIALS = 10_000
"""Limit of trials, repetitions and test sets, so that a bad file does not fill the memory."""
CHECKPOINT_LIMITS = ("time", "interaction")
SELECTION = "allow_level_selection"
TRAINING_LIMITS = (*CHECKPOINT_LIMITS, "attempt_per_level", SELECTION)
NO_LEVELS = LevelSet(levels=())


class MetaSet(msgspec.Struct, frozen=True, kw_only=True):
    """A set to draw: how many levels of which novelty, and its limits."""

    novelty_level: str
    novelty_type: str
    amount: tuple[int, int]
    """The minimum, and the maximum plus one."""
    where: str = ""
    """Its place in the file, for messages."""
    absence: float = 0.0
    no_difference: float = 0.0
    percentage: float = 100.0
    limits: LevelSet = NO_LEVELS
    """Its limits; the set has no levels yet."""


class MetaTrial(msgspec.Struct, frozen=True, kw_only=True):
    """A group of trials to draw."""

    count: int
    informed: tuple[bool, ...]
    """Whether the agent is told of novelty, for each variant of a trial."""
    training: tuple[MetaSet, ...]
    tests: tuple[MetaSet, ...]
    ordered: bool
    script: EvaluationScript
    """The limits, checkpoints and questions of a trial; its sets have no levels yet."""


class ConfigMeta(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a `configMeta.xml`."""

    trials: tuple[MetaTrial, ...]
    repeats: int = 1


def read_meta(path: Path) -> ConfigMeta:
    """Read the trials that a `configMeta.xml` describes."""
    root = read_root(path, "config_generation")
    asked = _measurement(root)
    trials = tuple(_meta_trial(trial, asked) for trial in _trials(root))
    return ConfigMeta(trials=trials, repeats=root.whole("repeats", 1, MAX_TRIALS))


def read_config(path: Path, pool: LevelPool) -> list[EvaluationScript]:
    """Read the trials that a `config.xml` lists, and find their levels in a pool."""
    root = read_root(path, "evaluation")
    asked = _measurement(root)
    return [_script(trial, asked, pool) for trial in _trials(root)]


def is_meta(path: Path) -> bool:
    """Return whether a file describes trials instead of listing them."""
    try:
        return "<config_generation" in decode_xml(path.read_bytes())
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None


def _trials(root: XmlElement) -> list[XmlElement]:
    if trials := root.all("trials/trial"):
        return trials
    raise InvalidInput(f"{root.path}: <trials> has no <trial>.")


def _measurement(root: XmlElement) -> EvaluationScript:
    """Return a script without levels that says when an agent is asked for its belief."""
    found = root.one("novelty_detection_measurement")
    if found is None:
        return EvaluationScript(training=NO_LEVELS)
    return EvaluationScript(
        training=NO_LEVELS,
        report_step=found.whole("step", 0),
        report_in_training=found.truth("measure_in_training", "false"),
        report_in_testing=found.truth("measure_in_testing", "false"),
    )


def _meta_trial(trial: XmlElement, asked: EvaluationScript) -> MetaTrial:
    training, test = trial.one("training"), trial.one("test")
    if training is None:
        raise trial.error("training", None, "a <training> element")
    checkpoint_seconds, checkpoint_interactions = _limits(trial.all("checkpoint/limit"), CHECKPOINT_LIMITS)
    notify = trial.choice("notify_novelty", ("true", "false", "both"), "false")
    return MetaTrial(
        count=_setting(trial, "count"),
        informed={"both": (False, True), "true": (True,), "false": (False,)}[notify],
        training=tuple(_meta_set(found) for found in training.all("game_level_sets/game_level_set")),
        tests=tuple(_meta_set(found) for found in test.all("game_level_sets/game_level_set")) if test else (),
        ordered=test.truth("ordered", "true") if test else True,
        script=replace(
            asked,
            training=_limited(*_limits(training.all("limits/limit"), TRAINING_LIMITS)),
            checkpoint_seconds=checkpoint_seconds,
            checkpoint_interactions=checkpoint_interactions,
            executions=_setting(trial, "repeats"),
        ),
    )


def _setting(trial: XmlElement, name: str) -> int:
    """Return `count` or `repeats`, which may be attributes or elements; 1 if there is none."""
    element = trial.one(name)
    return (trial if element is None else element.stated(name)).whole(name, 1, MAX_TRIALS)


def _limits(found: list[XmlElement], known: tuple[str, ...]) -> list[int]:
    """Return a value for each known type of limit; 0 where there is none."""
    limits = dict.fromkeys(known, 0)
    for limit in found:
        kind = limit.text("type")
        if kind not in known:
            raise limit.error("type", kind, " | ".join(known))
        stated = limit.stated(kind)
        limits[kind] = stated.truth(kind) if kind == SELECTION else stated.whole(kind)
    return list(limits.values())


def _meta_set(found: XmlElement) -> MetaSet:
    return MetaSet(
        novelty_level=found.text("novelty_level").removeprefix("novelty_level_"),
        novelty_type=found.text("novelty_type").removeprefix("type"),
        amount=_amount(found),
        where=found.place,
        absence=found.share("novelty_absence_portion", 0.0, 1.0),
        no_difference=found.share("no_diff_portion", 0.0, 1.0),
        percentage=found.share("set_appearance_percentage", 100.0, 100.0),
        limits=_level_set(found, ("time", "interaction", "attempt_per_level")),
    )


def _amount(found: XmlElement) -> tuple[int, int]:
    text = found.text("amount")
    match = re.fullmatch(r"\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?", text)
    if not match or (match[2] and int(match[2]) <= int(match[1])):
        allowed = "a whole number up to 999,999, or a range such as 5-10"
        raise found.error("amount", text, allowed)
    least = int(match[1])
    return least, int(match[2]) if match[2] else least + 1


def _script(trial: XmlElement, asked: EvaluationScript, pool: LevelPool) -> EvaluationScript:
    sets: dict[str, list[LevelSet]] = {"training": [], "test": []}
    for found in trial.all("game_level_set"):
        levels = [name for game_levels in found.all("game_levels") for name in _levels(game_levels, pool)]
        limits = _level_set(found, ("time_limit", "total_interaction_limit", "attempt_limit_per_level"))
        sets[found.choice("mode", tuple(sets))].append(replace(limits, levels=tuple(levels)))
    if not sets["training"]:
        raise trial.error("game_level_set", None, 'at least one <game_level_set mode="training">')
    return replace(
        asked,
        training=sets["training"][0],
        tests=tuple(sets["test"]),
        checkpoint_seconds=trial.whole("checkpoint_time_limit", 0),
        checkpoint_interactions=trial.whole("checkpoint_interaction_limit", 0),
        informed=trial.truth("notify_novelty", "false"),
        executions=trial.whole("number_of_executions", 1, MAX_TRIALS),
    )


def _level_set(found: XmlElement, limits: tuple[str, str, str]) -> LevelSet:
    return _limited(*(found.whole(name, 0) for name in limits), found.truth(SELECTION, "false"))


def _limited(*limits: int) -> LevelSet:
    """Return a set without levels by its limits of time, interactions and attempts, and whether levels are chosen."""
    seconds, interactions, attempts, selection = limits
    return replace(NO_LEVELS, seconds=seconds, interactions=interactions, attempts=attempts, selection=bool(selection))


def _levels(found: XmlElement, pool: LevelPool) -> Iterator[str]:
    """Yield one level by its path, or a range of the levels of a type."""
    path = found.text("level_path", "")
    if path:
        with naming(f"{found.place}: 'level_path'"):
            name = pool.resolve(path)
        yield name
        return
    level = found.text("novelty_level").removeprefix("novelty_level_")
    type_ = found.text("type").removeprefix("type")
    with naming(f"{found.place}: 'novelty_level' and 'type'"):
        names = pool.names(level, type_)
    start, end = found.whole("start", 0), found.whole("end", len(names) - 1)
    if not 0 <= start < len(names):
        raise found.error("start", str(start), f"an index from 0 to {len(names) - 1}, the last level there is")
    if not start <= end < len(names):
        raise found.error("end", str(end), f"an index from 'start' to {len(names) - 1}, the last level there is")
    yield from names[start : end + 1]


def read_root(path: Path, name: str) -> XmlElement:
    """Read an XML file and return its root element; entities are refused, and the encoding is detected."""
    import_extra("defusedxml", "birds", "Reading configurations of birds")
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import ParseError, fromstring

    try:
        text = re.sub(r"^\s*<\?xml[^>]*\?>", "", decode_xml(path.read_bytes()))
        element = fromstring(text.strip("\x00 \t\r\n"), forbid_dtd=True)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None
    except DefusedXmlException:
        raise InvalidInput(f"{path}: document types and entities are not allowed.") from None
    except (ParseError, ValueError) as error:
        raise InvalidInput(f"{path} is not well-formed: {error}.") from None
    if element.tag != name:
        raise InvalidInput(f"{path} has <{element.tag}> at its top; expected <{name}>.")
    return XmlElement(element, path)


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Prefix the message of an `InvalidInput` with a place."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"{place}: {error}") from None


class XmlElement:
    """An XML element with typed attributes."""

    def __init__(self, element: Any, path: Path) -> None:
        self._element, self.path = element, path

    @property
    def place(self) -> str:
        """The file and the tag, for messages."""
        return f"{self.path}: <{self._element.tag}>"

    def all(self, where: str) -> list[XmlElement]:
        """Return the elements at a path below this one."""
        return [XmlElement(found, self.path) for found in self._element.findall(where)]

    def one(self, where: str) -> XmlElement | None:
        """Return the first element at a path below this one, or None."""
        return next(iter(self.all(where)), None)

    def text(self, name: str, default: str | None = None) -> str:
        """Return an attribute; without a default it is required."""
        value = self._element.get(name, default)
        if value is None:
            raise InvalidInput(f"{self.place}: '{name}' is missing.")
        return str(value).strip()

    def whole(self, name: str, default: int | None = None, most: int = MAX_NUMBER) -> int:
        """Return a whole number from an attribute."""
        text = self.text(name, None if default is None else str(default))
        if not re.fullmatch(r"[+-]?\d{1,10}(\.0*)?", text) or float(text) > most:
            raise self.error(name, text, f"a whole number up to {most:,}")
        return int(float(text))

    def choice(self, name: str, allowed: tuple[str, ...], default: str | None = None) -> str:
        """Return an attribute that has one of some values, in any case."""
        text = self.text(name, default)
        if text.lower() not in allowed:
            *quoted, last = (f'"{value}"' for value in allowed)
            raise self.error(name, text, f"{', '.join(quoted)} or {last}")
        return text.lower()

    def truth(self, name: str, default: str | None = None) -> bool:
        """Return `true` or `false` from an attribute, in any case."""
        return self.choice(name, ("true", "false"), default) == "true"

    def stated(self, name: str) -> XmlElement:
        """Move the value of the element to an attribute of this name; it may be there, in `value`, or in the text."""
        places = (self._element.get(name), self._element.get("value"), self._element.text, "")
        self._element.set(name, next(text for text in places if text is not None))
        return self

    def share(self, name: str, default: float, highest: float) -> float:
        """Return a number from 0 up from an attribute."""
        text = self.text(name, str(default))
        if not re.fullmatch(r"\d{1,9}(\.\d+)?", text) or float(text) > highest:
            raise self.error(name, text, f"a number from 0 to {highest:g}")
        return float(text)

    def error(self, name: str, value: str | None, allowed: str) -> InvalidInput:
        """Return an error about an attribute."""
        found = "is missing" if value is None else f"cannot be {value!r}"
        return InvalidInput(f"{self.place}: '{name}' {found}. Allowed: {allowed}.")
