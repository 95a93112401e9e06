"""Readers of the two configuration files: `configMeta.xml`, which describes trials, and `config.xml`, which lists them.

A bad value is reported with its element, its attribute and the allowed values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from openfield.domains.birds.files.pool import LevelPool
from openfield.domains.birds.files.xml_elements import XmlElement, naming, read_root
from openfield.domains.birds.game.level import decode_xml
from openfield.domains.birds.harness import EvaluationScript, LevelSet
from openfield.errors import InvalidInput

MAX_TRIALS = 10_000
"""Limit of trials, repetitions and test sets, so that a bad file does not fill the memory."""
CHECKPOINT_LIMITS = ("time", "interaction")
SELECTION = "allow_level_selection"
TRAINING_LIMITS = (*CHECKPOINT_LIMITS, "attempt_per_level", SELECTION)
APPEARANCE = "set_appearance_percentage"
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
        report_step=found.whole("step"),
        report_in_training=found.truth("measure_in_training", "false"),
        report_in_testing=found.truth("measure_in_testing", "false"),
    )


class SetLimits(NamedTuple):
    """The limits of a set of a description, and how many of the test sets are of this kind, in percent."""

    time: int = 0
    interaction: int = 0
    attempt_per_level: int = 0
    allow_level_selection: bool = False
    set_appearance_percentage: float = 100.0


def _meta_trial(trial: XmlElement, asked: EvaluationScript) -> MetaTrial:
    training, test = trial.one("training"), trial.one("test")
    if training is None:
        raise trial.error("training", None, "a <training> element")
    checkpoint = trial.one("checkpoint")
    every = _limits(checkpoint, SetLimits(), CHECKPOINT_LIMITS) if checkpoint else SetLimits()
    notify = _stated(trial, "notify_novelty").choice("notify_novelty", ("true", "false", "both"), "false")
    common = _limits(test, SetLimits(), SetLimits._fields) if test else SetLimits()
    overall = _limits(training, SetLimits(), TRAINING_LIMITS)
    return MetaTrial(
        count=_stated(trial, "count").whole("count", 1, MAX_TRIALS),
        informed={"both": (False, True), "true": (True,), "false": (False,)}[notify],
        training=tuple(_meta_set(found, SetLimits()) for found in training.all("game_level_sets/game_level_set")),
        tests=tuple(_meta_set(found, common) for found in test.all("game_level_sets/game_level_set")) if test else (),
        ordered=test.truth("ordered", "true") if test else True,
        script=replace(
            asked,
            training=_limited(*overall[:4]),
            checkpoint_seconds=every.time,
            checkpoint_interactions=every.interaction,
            executions=_stated(trial, "repeats").whole("repeats", 1, MAX_TRIALS),
        ),
    )


def _stated(trial: XmlElement, name: str) -> XmlElement:
    """Return the element that has a value as an attribute: the trial, or an element of this name inside it."""
    element = trial.one(name)
    return trial if element is None else element.stated(name)


def _limits(found: XmlElement, usual: SetLimits, known: tuple[str, ...]) -> SetLimits:
    """Return the limits of an element, where it may state them: in attributes, in <limit>, or in <limits>."""
    stated = [(place, name) for place in (found, *found.all("limits")) for name in known if place.has(name)]
    for limit in (*found.all("limits/limit"), *found.all("limit")):
        kind = limit.text("type", allowed=" | ".join(known))
        if kind not in known:
            raise limit.error("type", kind, " | ".join(known))
        stated.append((limit.stated(kind), kind))
    values: dict[str, Any] = {}
    for place, kind in stated:
        value = _limit(place, kind)
        if values.setdefault(kind, value) != value:
            raise InvalidInput(
                f"{found.place}: its limit '{kind}' is {values[kind]:g} and {value:g}. Leave one of them."
            )
    return usual._replace(**values)


def _limit(found: XmlElement, kind: str) -> float:
    if kind == SELECTION:
        return found.truth(kind)
    return found.share(kind, 100.0, 100.0) if kind == APPEARANCE else found.whole(kind)


def _meta_set(found: XmlElement, usual: SetLimits) -> MetaSet:
    limits = _limits(found, usual, SetLimits._fields)
    return MetaSet(
        novelty_level=_level_name(found),
        novelty_type=_type_name(found, "novelty_type"),
        amount=_amount(found),
        where=found.place,
        absence=found.share("novelty_absence_portion", 0.0, 1.0),
        no_difference=found.share("no_diff_portion", 0.0, 1.0),
        percentage=limits.set_appearance_percentage,
        limits=_limited(*limits[:4]),
    )


def _level_name(found: XmlElement) -> str:
    return found.text("novelty_level", allowed="a level of novelty, such as 1").removeprefix("novelty_level_")


def _type_name(found: XmlElement, name: str) -> str:
    return found.text(name, allowed="a type of levels, such as 010101").removeprefix("type")


def _amount(found: XmlElement) -> tuple[int, int]:
    allowed = "a whole number from 1 to 999,999, or a range such as 5-10"
    text = found.text("amount", allowed=allowed)
    match = re.fullmatch(r"\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?", text)
    least = int(match[1]) if match else 0
    end = int(match[2]) if match and match[2] else least + 1
    if not match or end <= max(least, 1):
        raise found.error("amount", text, allowed)
    return least, end


def _script(trial: XmlElement, asked: EvaluationScript, pool: LevelPool) -> EvaluationScript:
    sets: dict[str, list[LevelSet]] = {"training": [], "test": []}
    for found in trial.all("game_level_set"):
        levels = [name for game_levels in found.all("game_levels") for name in _levels(game_levels, pool)]
        sets[found.choice("mode", tuple(sets))].append(replace(_level_set(found), levels=tuple(levels)))
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


def _level_set(found: XmlElement) -> LevelSet:
    limits = ("time_limit", "total_interaction_limit", "attempt_limit_per_level")
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
    level, type_ = _level_name(found), _type_name(found, "type")
    with naming(f"{found.place}: 'novelty_level' and 'type'"):
        names = pool.names(level, type_)
    start, end = found.whole("start", 0), found.whole("end", len(names) - 1)
    if not 0 <= start < len(names):
        raise found.error("start", str(start), f"an index from 0 to {len(names) - 1}, the last level there is")
    if not start <= end < len(names):
        raise found.error("end", str(end), f"an index from 'start' to {len(names) - 1}, the last level there is")
    yield from names[start : end + 1]
