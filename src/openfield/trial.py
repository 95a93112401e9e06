"""A trial is a frozen script: which world, which phases, what changes when, and what is granted.

Domains write trials, plans pair them with agents, rollouts play them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any

import msgspec

from openfield.core import PhaseName


class Phase(msgspec.Struct, frozen=True):
    """A stretch of a trial."""

    name: PhaseName
    episodes: int = 0
    """How many episodes; 0 where the world's own rules decide."""
    novelty: tuple[str, ...] = ()
    """The novelties in force, as `NAME` or `NAME:difficulty`."""
    steps: int = 0
    """How many steps, in a world that counts steps instead of episodes."""


Window = tuple[int, int]
"""How much of a test may precede its change, at least and at most: episodes, or steps where a world counts those."""


Seconds = Annotated[float, msgspec.Meta(gt=0, le=1e8)]
"""Three years at most, so that ten times as many nanoseconds can be counted; None is for ever."""


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an agent may use up. None means no limit."""

    reply_seconds: Seconds | None = 60.0
    """For one reply; passing it ends the cell as `agent_timeout`."""
    episode_turns: Annotated[int, msgspec.Meta(gt=0)] | None = None
    """For one episode; reaching it ends the trial as `truncated`."""
    trial_seconds: Seconds | None = None
    """For the whole trial, time of the world included; passing it ends the trial as `truncated`."""
    tokens: Annotated[int, msgspec.Meta(gt=0)] | msgspec.UnsetType = msgspec.UNSET
    """Tokens of a language model, by the notes of its replies; reaching it ends the trial as `truncated`."""

    def __post_init__(self) -> None:
        """Turn whole seconds into the numbers they are read back as: a trial keeps its id."""
        for name in ("reply_seconds", "trial_seconds"):
            if isinstance(seconds := getattr(self, name), int):
                msgspec.structs.force_setattr(self, name, float(seconds))


class Trial(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A frozen script; its id is the hash of its content."""

    domain: str
    version: int
    seed: int
    phases: tuple[Phase, ...]
    settings: dict[str, Any] = {}
    """The settings that differ from the domain's defaults."""
    red_light: bool = False
    """Whether the agent is told when the world has changed."""
    limits: Limits = Limits()
    after: str | None = None
    """The id of the trial whose saved agent is the starting point."""
    files: dict[str, str] = {}
    """Names and digests of the level and data files the world reads."""
    scenario: tuple[str, ...] | None = None
    """The novelties of the table it belongs to, whether or not they come into force; None: those of its phases."""
    window: Window | None = None
    """Where the place of the change was drawn; None if it is fixed or published."""
    reference_for: str | None = None
    """The id of the trial that is compared with this one. It is in no table of its own then."""
    imported: str | None = None
    """The file that its results were read from: it was played elsewhere, and cannot be played again here."""

    @cached_property
    def id(self) -> str:
        """Twelve hexadecimal digits that stand for everything above."""
        return hash_trial(self)

    @property
    def is_training(self) -> bool:
        """Whether it is nothing but training."""
        return all(phase.name == "training" for phase in self.phases)

    @property
    def novelty(self) -> tuple[str, ...]:
        """The novelties of its scenario, in force or not."""
        return self._in_force if self.scenario is None else self.scenario

    @property
    def is_changed(self) -> bool:
        """Whether the world changes in it."""
        return bool(self._in_force)

    @property
    def is_unchanged_twin(self) -> bool:
        """Whether nothing changes in it although its scenario has a novelty."""
        return bool(self.novelty) and not self.is_changed

    @property
    def test_length(self) -> int:
        """The number of its test episodes, or of its steps if the world counts those; 0 where its rules decide."""
        return measure_test(self.phases)

    @property
    def _in_force(self) -> tuple[str, ...]:
        """The novelties of the first phase that has any."""
        return next((phase.novelty for phase in self.phases if phase.novelty), ())


def measure_test(phases: Iterable[Phase]) -> int:
    """Return the length of the test, in the steps of worlds that count steps, and else in episodes."""
    return sum(phase.steps or phase.episodes for phase in phases if phase.name == "test")


def hash_trial(content: Trial | dict[str, Any]) -> str:
    """Return the id of a trial, or of its recorded content. Fields that came later count only where they are used."""
    plain: dict[str, Any] = {**msgspec.to_builtins(content)}
    for name in ("scenario", "window", "reference_for", "imported"):
        if plain.get(name) is None:
            plain.pop(name, None)
    plain["phases"] = [
        {name: value for name, value in phase.items() if name != "steps" or value} for phase in plain["phases"]
    ]
    return hashlib.sha256(msgspec.json.encode(plain, order="sorted")).hexdigest()[:12]


def with_places(trial: Trial, places: Mapping[str, str]) -> Trial:
    """Return the same trial, with the same id, whose settings name files by the places that they have here.

    Args:
        trial: What is played.
        places: Where files are that the settings name, by how they name them.
    """
    settings = {name: _replace_text(value, places) for name, value in trial.settings.items()}
    if settings == trial.settings:
        return trial
    moved = msgspec.structs.replace(trial, settings=settings)
    vars(moved)["id"] = trial.id  # where the property keeps it
    return moved


def _replace_text(value: Any, places: Mapping[str, str]) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_replace_text(each, places) for each in value)
    return places.get(value, value) if isinstance(value, str) else value


def with_limits(trials: Iterable[Trial], change: Callable[[Limits], Limits]) -> list[Trial]:
    """Return the same trials with other limits."""
    return with_changes(trials, lambda trial: msgspec.structs.replace(trial, limits=change(trial.limits)))


def with_changes(trials: Iterable[Trial], change: Callable[[Trial], Trial]) -> list[Trial]:
    """Return the trials, each changed. A trial that belongs to another one follows it to its new id."""
    made: dict[str, Trial] = {}
    for trial in trials:
        named = {name: getattr(trial, name) for name in ("after", "reference_for")}
        links = {name: made[other].id for name, other in named.items() if other in made}
        made[trial.id] = msgspec.structs.replace(change(trial), **links)
    return list(made.values())


def derive(seed: int, *path: str | int) -> int:
    """Derive a seed from another: the same path gives the same seed everywhere, another path an independent one."""
    text = "/".join(str(part) for part in (seed, *path))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def file_digest(content: bytes) -> str:
    """Return the digest of a file's content for `Trial.files`."""
    return hashlib.sha256(content).hexdigest()
