"""Play one life of a study and keep it in a file: its distinct small frames, and the observations, actions and rewards.

The frames are kept before they are cut into levels, as the thresholds depend on the lives of all agents in a game.
"""

from __future__ import annotations

import importlib
import warnings
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from openfield.errors import InvalidInput, MissingExtra, OpenfieldError, describe_error
from openfield.files.arrays import read_arrays
from openfield.files.atomic import replacing
from openfield.lazy import import_extra
from openfield.objectives.frames.encode import encode_frames, index_words
from openfield.objectives.frames.table_of_episodes import Recipe, hash_of
from openfield.objectives.games.learners import GameAgent, make_study_agent
from openfield.objectives.games.plan import LifeTask, StudyGame
from openfield.objectives.tables.codes import CodeBook
from openfield.objectives.tables.rows import Array, Rows
from openfield.objectives.tables.table import Meta, Table, make_table
from openfield.objectives.tables.transitions import sum_rows
from openfield.objectives.tracking.inputs import PictureInputs, can_hold_pictures

RECIPE = Recipe()
"""How frames become inputs: as in the paper."""
MEMBERS = ("frames", "inputs", "actions", "rewards")


class LifeRecord(NamedTuple):
    """A life that was played. Frame t was seen before action t; the last action of an episode is -1."""

    frames: Array
    """Distinct small frames, (K, 8, 8) float64."""
    inputs: Array
    """Which of them was seen."""
    actions: Array
    rewards: Array
    """What each action was paid."""

    @property
    def rows(self) -> Rows:
        """All transitions in their order, each with count 1."""
        at = np.flatnonzero(self.actions >= 0)
        ones = np.ones(len(at), np.int64)
        inputs = self.inputs.astype(np.int64)
        return Rows(inputs[at], self.actions[at].astype(np.int64), inputs[at + 1], ones)


def play_life(task: LifeTask) -> str:
    """Play a life and write its file. Return what went wrong, or an empty text."""
    try:
        write_life(collect_life(task), task.path)
    except OpenfieldError as error:
        return str(error)
    return ""


def collect_life(task: LifeTask) -> LifeRecord:
    """Play a life: as many actions as the task says, in one episode after the other.

    Raises:
        InvalidInput: The environment cannot be made, or fails.
    """
    env = make_study_env(task.game)
    try:
        actions = int(env.action_space.n)
        agent = make_study_agent(task.agent, actions=actions, noop=task.game.noop, steps=task.steps, seed=task.seed)
        return _live(task, env, agent)
    except OpenfieldError:
        raise
    except Exception as error:
        raise InvalidInput(f"{task.game.name}: {task.game.environment} failed: {_line(error)}") from error
    finally:
        env.close()


def _live(task: LifeTask, env: Any, agent: GameAgent) -> LifeRecord:
    inputs, numbers = PictureInputs(RECIPE.size, RECIPE.levels), dict[bytes, int]()
    seen, actions, rewards = [], [], []
    frame = None
    for step in range(task.steps):
        if frame is None:
            frame = env.reset(seed=task.seed if step == 0 else None)[0]
            seen.append(numbers.setdefault(inputs.key(frame), len(numbers)))
        action = agent.act(frame)
        frame, reward, terminated, truncated, _ = env.step(action)
        over = bool(terminated or truncated)
        agent.learn(action, float(reward), frame, over)
        seen.append(numbers.setdefault(inputs.key(frame), len(numbers)))
        actions += [action, -1] if over else [action]
        rewards.append(reward)
        frame = None if over else frame
    actions += [] if actions[-1] == -1 else [-1]
    return LifeRecord(
        inputs.small(b"".join(numbers)),
        np.array(seen, np.int32),
        np.array(actions, np.int16),
        np.array(rewards, np.float64),
    )


def make_life_table(frames: Array, rows: Rows, bins: Array) -> Table:
    """Make the table of a life, with its code book.

    Args:
        frames: The distinct small frames of the life.
        rows: Transitions between them.
        bins: The thresholds by which frames are cut into levels.
    """
    number, words = index_words(encode_frames(frames, bins), 1)
    summed = sum_rows(rows._replace(obs=number[rows.obs], next_obs=number[rows.next_obs]))
    table = make_table([summed], meta=Meta(thresholds=hash_of(bins), bins=bins.tolist()), ordered=True)
    return msgspec.structs.replace(table, book=CodeBook(words, np.arange(1, len(words) + 1)))


def make_study_env(game: StudyGame) -> Any:
    """Make the environment of a game.

    Raises:
        InvalidInput: The name is unknown, the game shows no pictures, or its actions are not numbered from 0.
        MissingExtra: An optional part is missing.
    """
    gymnasium = import_extra("gymnasium", "gym", "A study of games")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module, colon, name = game.environment.partition(":")
            if colon:
                _import_games(module)
            env = gymnasium.make(name if colon else module, disable_env_checker=True, **game.make)
    except ImportError as error:
        if game.extra:
            raise MissingExtra(game.extra, f"The game '{game.name}'") from None
        raise InvalidInput(f"Game '{game.name}': {game.environment} cannot be imported: {_line(error)}") from None
    except OpenfieldError:
        raise
    except Exception as error:
        raise InvalidInput(f"Game '{game.name}': {game.environment} cannot be made: {_line(error)}") from None
    try:
        _check_spaces(game, env)
    except InvalidInput:
        env.close()
        raise
    return env


def _import_games(module: str) -> None:
    """Import a module that registers games. The emulator of Atari would greet in every process."""
    found = importlib.import_module(module)
    if module == "ale_py":
        found.ALEInterface.setLoggerMode(found.LoggerMode.Error)


def _check_spaces(game: StudyGame, env: Any) -> None:
    actions = getattr(env.action_space, "n", None)
    if actions is None:
        raise InvalidInput(f"Game '{game.name}': its actions are {env.action_space}; a study needs numbered ones.")
    if not 0 <= game.noop < actions:
        raise InvalidInput(f"Game '{game.name}': noop is {game.noop}; its actions are 0 to {actions - 1}.")
    if not can_hold_pictures(env.observation_space):
        raise InvalidInput(f"Game '{game.name}': observations of {env.observation_space} are not pictures.")


def write_life(life: LifeRecord, path: Path) -> None:
    """Write a life as an NPZ file. It appears whole or not at all."""
    with replacing(path) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in zip(MEMBERS, life, strict=True):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)


def read_life(path: Path) -> LifeRecord | None:
    """Read a life; return None if it is missing or damaged, and must be played again."""
    try:
        found = read_arrays(path)
        life = LifeRecord(*(found[name] for name in MEMBERS))
    except (InvalidInput, KeyError):
        return None
    fits = len(life.inputs) == len(life.actions) and life.frames.shape[1:] == (RECIPE.size,) * 2
    return life if fits and int(life.inputs.max(initial=0)) < len(life.frames) else None


def _line(error: BaseException) -> str:
    return " ".join(describe_error(error).split())[:300]
