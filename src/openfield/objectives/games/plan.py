"""The file of a study on live games: which games, which agents, how long they live and with how many seeds."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from openfield.errors import InvalidInput, UnknownName
from openfield.files.data import read_toml

PLAY_VERSION = 1
"""Raised whenever the same life would be played otherwise than before."""
AGENTS = ("noop", "random", "task_reward", "count_bonus", "prediction_error", "random_features")
"""The agents of a study; `learners` says what each is."""
MAX_STEPS = 100_000_000
MAX_SEEDS = 1_000


class StudyGame(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One environment of a study."""

    name: str
    environment: str
    """An id of Gymnasium, or `module:ID` if a module must be imported to register it."""
    make: dict[str, Any] = {}
    """Arguments of the environment."""
    extra: str | None = None
    """The optional part of openfield that brings it, for the message if it is missing."""
    noop: int = 0
    """The action that does nothing."""
    human: str | None = None
    """A run in which a person played, or a table with thresholds; for the human similarity."""
    human_agent: str | None = None
    """The name of the person in that run, if several agents are in it."""


class LifeSizes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long each life is, and how many there are."""

    steps: int
    seeds: int


class GamePlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A study as a TOML file: `[[games]]`, `agents`, and the sizes `[full]` and `[quick]`."""

    games: list[StudyGame]
    agents: list[str]
    full: LifeSizes
    quick: LifeSizes | None = None


class LifeTask(msgspec.Struct, frozen=True):
    """One life: an agent in a game with a seed, and the file that keeps it."""

    game: StudyGame
    agent: str
    seed: int
    steps: int
    path: Path


def is_game_plan(path: Path) -> bool:
    """Return whether a TOML file describes a study on live games."""
    return path.suffix == ".toml" and path.is_file() and "games" in read_toml(path)


def read_game_plan(path: Path) -> GamePlan:
    """Read the file of a study.

    Raises:
        InvalidInput: It cannot be read, has unknown keys, or sizes that make no study.
        UnknownName: It names an agent that does not exist.
    """
    try:
        plan = msgspec.convert(read_toml(path), GamePlan)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{path}: not a study of games ({error}).") from None
    for agent in plan.agents:
        if agent not in AGENTS:
            raise UnknownName(f"agent in {path}:", agent, AGENTS, label="Known")
    for kind, names in (("game", [game.name for game in plan.games]), ("agent", plan.agents)):
        again = next((name for name in names if names.count(name) > 1), None)
        if again is not None or not names:
            raise InvalidInput(f"{path}: {f'{kind} {again!r} is listed twice' if names else f'no {kind} is listed'}.")
    for name, sizes in (("full", plan.full), ("quick", plan.quick or plan.full)):
        if not (2 <= sizes.steps <= MAX_STEPS and 1 <= sizes.seeds <= MAX_SEEDS):
            raise InvalidInput(
                f"{path}: [{name}] has {sizes.steps:,} steps and {sizes.seeds:,} seeds; "
                f"2 to {MAX_STEPS:,} and 1 to {MAX_SEEDS:,} are possible."
            )
    return plan


def list_lives(plan: GamePlan, sizes: LifeSizes, folder: Path) -> list[LifeTask]:
    """Return all lives of a study, seed by seed, so that one that is stopped early has some of everything."""
    return [
        LifeTask(game, agent, seed, sizes.steps, folder / f"{_key(game, agent, seed, sizes.steps)}.npz")
        for seed in range(sizes.seeds)
        for game in plan.games
        for agent in plan.agents
    ]


def _key(game: StudyGame, agent: str, seed: int, steps: int) -> str:
    """Return the name of a life: by everything that decides what happens in it."""
    how = (PLAY_VERSION, game.environment, sorted(game.make.items()), game.noop, agent, seed, steps)
    return f"{game.name}-{agent}-{seed}-{hashlib.sha256(repr(how).encode()).hexdigest()[:12]}".replace("/", "_")
