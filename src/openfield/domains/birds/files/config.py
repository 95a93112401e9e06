"""Readers of the two configuration files: `configMeta.xml`, which describes trials, and `config.xml`, which lists them.

Encodings are detected and document types are refused. A bad value is reported with its element, its attribute and the
allowed values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from openfield.domains.birds.evaluation.script import EvaluationScript, LevelSet
from openfield.domains.birds.files.pool import LevelPool
from openfield.domains.birds.files.xml_element import MAX_TRIALS, XmlElement, naming, read_root
from openfield.domains.birds.game.level import decode_xml
from openfield.errors import InvalidInput

CHECKPOINT_LIMITS = ("time", "interaction")
TRAINING_LIMITS = (*CHECKPOINT_LIMITS, "attempt_per_level", "allow_level_selection")
Notify = Literal["true", "false", "both"]


class Measurement(msgspec.Struct, frozen=True):
    """When an agent is asked for its belief."""

    step: int = 0
    training: bool = False
    testing: bool = False


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
    limits: LevelSet = LevelSet(levels=())
    """Its limits; the set has no levels yet."""


class MetaTrial(msgspec.Struct, frozen=True, kw_only=True):
    """A group of trials to draw."""

    count: int
    repeats: int
    notify: Notify
    checkpoint_seconds: int
    checkpoint_interactions: int
    training: tuple[MetaSet, ...]
    limits: LevelSet
    """The limits of training; the set has no levels yet."""
    tests: tuple[MetaSet, ...]
    ordered: bool


class ConfigMeta(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a `configMeta.xml`."""

    measurement: Measurement
    trials: tuple[MetaTrial, ...]
    repeats: int = 1


def read_meta(path: Path) -> ConfigMeta:
    """Read the trials that a `configMeta.xml` describes."""
    root = read_root(path, "config_generation")
    trials = tuple(_meta_trial(trial) for trial in root.all("trials/trial"))
    if not trials:
        raise InvalidInput(f"{path}: <trials> has no <trial>.")
    return ConfigMeta(measurement=_measurement(root), trials=trials, repeats=root.whole("repeats", 1, MAX_TRIALS))


def read_config(path: Path, pool: LevelPool) -> list[EvaluationScript]:
    """Read the trials that a `config.xml` lists, and find their levels in a pool."""
    root = read_root(path, "evaluation")
    measurement = _measurement(root)
    scripts = [_script(trial, measurement, pool) for trial in root.all("trials/trial")]
    if not scripts:
        raise InvalidInput(f"{path}: <trials> has no <trial>.")
    return scripts


def is_meta(path: Path) -> bool:
    """Return whether a file describes trials instead of listing them."""
    try:
        return "<config_generation" in decode_xml(path.read_bytes())
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None


def _measurement(root: XmlElement) -> Measurement:
    found = root.one("novelty_detection_measurement")
    if found is None:
        return Measurement()
    training, testing = found.truth("measure_in_training", "false"), found.truth("measure_in_testing", "false")
    return Measurement(found.whole("step", 0), training, testing)


def _meta_trial(trial: XmlElement) -> MetaTrial:
    training, test = trial.one("training"), trial.one("test")
    if training is None:
        raise trial.error("training", None, "a <training> element")
    limits = _limits(training.all("limits/limit"), TRAINING_LIMITS)
    checkpoint = _limits(trial.all("checkpoint/limit"), CHECKPOINT_LIMITS)
    return MetaTrial(
        count=_setting(trial, "count", 1),
        repeats=_setting(trial, "repeats", 1),
        notify=_notify(trial),
        checkpoint_seconds=_limit(checkpoint, "time"),
        checkpoint_interactions=_limit(checkpoint, "interaction"),
        training=tuple(_meta_set(found) for found in training.all("game_level_sets/game_level_set")),
        limits=LevelSet(
            levels=(),
            seconds=_limit(limits, "time"),
            interactions=_limit(limits, "interaction"),
            attempts=_limit(limits, "attempt_per_level"),
            selection=_limit_truth(limits, "allow_level_selection"),
        ),
        tests=tuple(_meta_set(found) for found in test.all("game_level_sets/game_level_set")) if test else (),
        ordered=test.truth("ordered", "true") if test else True,
    )


def _notify(trial: XmlElement) -> Notify:
    match trial.text("notify_novelty", "false").lower():
        case "true" | "false" | "both" as notify:
            return notify
        case other:
            raise trial.error("notify_novelty", other, '"true", "false" or "both"')


def _setting(trial: XmlElement, name: str, default: int) -> int:
    """Return `count` or `repeats`, which may be attributes or elements."""
    element = trial.one(name)
    return trial.whole(name, default, MAX_TRIALS) if element is None else element.stated_whole(name, MAX_TRIALS)


def _limits(found: list[XmlElement], known: tuple[str, ...]) -> dict[str, XmlElement]:
    for limit in found:
        if limit.text("type") not in known:
            raise limit.error("type", limit.text("type"), " | ".join(known))
    return {limit.text("type"): limit for limit in found}


def _limit(limits: dict[str, XmlElement], kind: str) -> int:
    return limits[kind].stated_whole(kind) if kind in limits else 0


def _limit_truth(limits: dict[str, XmlElement], kind: str) -> bool:
    return limits[kind].stated_truth(kind) if kind in limits else False


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


def _script(trial: XmlElement, measurement: Measurement, pool: LevelPool) -> EvaluationScript:
    sets = [(found.text("mode").lower(), _config_set(found, pool)) for found in trial.all("game_level_set")]
    for found in trial.all("game_level_set"):
        if found.text("mode").lower() not in ("training", "test"):
            raise found.error("mode", found.text("mode"), '"training" or "test"')
    training = next((levels for mode, levels in sets if mode == "training"), None)
    if training is None:
        raise trial.error("game_level_set", None, 'at least one <game_level_set mode="training">')
    return EvaluationScript(
        training=training,
        tests=tuple(levels for mode, levels in sets if mode == "test"),
        checkpoint_seconds=trial.whole("checkpoint_time_limit", 0),
        checkpoint_interactions=trial.whole("checkpoint_interaction_limit", 0),
        informed=trial.truth("notify_novelty", "false"),
        report_step=measurement.step,
        report_in_training=measurement.training,
        report_in_testing=measurement.testing,
        executions=trial.whole("number_of_executions", 1, MAX_TRIALS),
    )


def _config_set(found: XmlElement, pool: LevelPool) -> LevelSet:
    levels = [name for game_levels in found.all("game_levels") for name in _levels(game_levels, pool)]
    return _level_set(found, ("time_limit", "total_interaction_limit", "attempt_limit_per_level"), tuple(levels))


def _level_set(found: XmlElement, limits: tuple[str, str, str], levels: tuple[str, ...] = ()) -> LevelSet:
    seconds, interactions, attempts = (found.whole(name, 0) for name in limits)
    selection = found.truth("allow_level_selection", "false")
    return LevelSet(levels=levels, seconds=seconds, interactions=interactions, attempts=attempts, selection=selection)


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
