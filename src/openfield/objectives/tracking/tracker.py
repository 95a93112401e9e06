"""Wrap a Gymnasium environment, alone or many at once, and measure what its agent does.

The wrapper changes nothing: observations, rewards and the order of calls are those of the environment.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from openfield.errors import InvalidInput, MissingExtra
from openfield.objectives.formats.convert import check_target, convert_table, read_thresholds
from openfield.objectives.formats.table_builder import write_table
from openfield.objectives.measures.permutations import DRAWS
from openfield.objectives.tables.histograms import Array
from openfield.objectives.tables.table import Meta, Table
from openfield.objectives.tracking.inputs import FunctionInputs, Inputs, PictureInputs, can_hold_pictures
from openfield.objectives.tracking.life import Life
from openfield.objectives.tracking.measured import LifeMeasures, ScalarLog, measure_life

try:
    import gymnasium
    from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
    from gymnasium.vector.utils import iterate
except ImportError:
    raise MissingExtra("gym", "Tracker") from None

Codes = Callable[[Any], Hashable]
NEVER = (1 << 63) - 1
"""A number of transitions that no life reaches."""


class TrackerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How observations are counted, held and logged; the arguments of `Tracker`."""

    codes: Codes | None = None
    size: int = 8
    levels: int = 4
    thresholds: Any = None
    window: int = 10_000
    max_bytes: int = 1 << 28
    log: Any = None
    every: int = 10_000
    draws: int = 20


class _Tracked:
    """What trackers of one and of many environments share."""

    life: Life
    _settings: TrackerSettings
    _scalars: ScalarLog
    _due: int

    def _open(self, space: Any, options: dict[str, Any]) -> None:
        try:
            self._settings = TrackerSettings(**options)
        except TypeError:
            wrong = next(name for name in options if name not in TrackerSettings.__struct_fields__)
            known = ", ".join(TrackerSettings.__struct_fields__)
            raise InvalidInput(f"Tracker has no setting '{wrong}'. It has {known}.") from None
        inputs = _inputs_for(space, self._settings)
        self.life = Life(inputs, window=self._settings.window, max_bytes=self._settings.max_bytes)
        self._scalars = ScalarLog(self.life, self._settings.every, self._settings.draws, self._settings.log)
        self._due = NEVER if self._settings.log is None else self._scalars.due

    def measure(self, last: int | None = None, *, num_obs: int | None = None, draws: int = DRAWS) -> LifeMeasures:
        """Compute the objectives of the life so far, or of its last transitions.

        Args:
            last: Measure only this number of transitions at the end, at most those of the window.
            num_obs: Distinct inputs of the environment, for the Dirichlet gain; by default those seen so far.
            draws: How many times actions are shuffled for the null of empowerment; 0 leaves it out.

        Raises:
            InvalidInput: There are no transitions yet, or more are asked for than the window holds.
        """
        return measure_life(self.life, last, num_obs=num_obs, draws=draws)

    def table(self, last: int | None = None) -> Table:
        """Make the table of the life so far, or of its last transitions, with its code book."""
        return self.life.table(last)

    def save(self, path: str | Path, meta: Meta | None = None) -> None:
        """Write the table of the life so far as `.parquet` or `.pkl`; every command for tables reads it.

        Raises:
            InvalidInput: There are no transitions, the file cannot be written, or it is a pickle of sampled inputs.
        """
        path = Path(path)
        check_target(path)
        table = self.life.table(meta=meta)
        if table.notes and path.suffix != ".parquet":
            raise InvalidInput(f"{path}: inputs are sampled, which only .parquet can say of itself.")
        if path.suffix == ".parquet":
            write_table(table, path)
            return
        with tempfile.TemporaryDirectory(prefix="openfield-") as folder:
            between = Path(folder) / "table.parquet"
            write_table(table, between)
            convert_table(between, path)

    def _log(self) -> None:
        """Write the scalars that are due."""
        self._scalars.write()
        self._due = self._scalars.due


class Tracker(_Tracked, gymnasium.Wrapper[Any, Any, Any, Any]):
    """A Gymnasium environment whose agent is measured while it lives.

    Use it in place of the environment, in any loop. `measure()` gives entropy, information gain and empowerment, with
    null and excess, at any moment; `measure(last=1000)` those of the last transitions; `save(FILE)` writes the table.
    A vector environment gives a `VectorTracker`, which counts the transitions of all its environments together.
    """

    def __new__(cls, env: Any, **settings: Any) -> Any:
        """Return a tracker that fits the environment."""
        return VectorTracker(env, **settings) if isinstance(env, VectorEnv) else super().__new__(cls)

    def __init__(self, env: gymnasium.Env[Any, Any], **settings: Any) -> None:
        """Wrap an environment.

        Args:
            env: The environment.
            **settings: `codes` is a function from an observation to a number, text, bytes or tuple; without it
                pictures are downscaled to `size` (8) and cut into `levels` (4) by `thresholds` (an array, or a table
                that has them; by default those of all pictures seen so far). `window` is how many of the last
                transitions are held (10,000), `max_bytes` the cap of memory (256 MB). `log` is a writer with
                `add_scalar`, such as SummaryWriter of torch or tensorboardX, or a function of name, value and step.
                It gets scalars `every` (10,000) transitions, with nulls of `draws` (20) shuffles.

        Raises:
            InvalidInput: A setting cannot be used, or observations are not pictures and there is no function.
        """
        if not isinstance(env, gymnasium.Env):
            raise InvalidInput(f"Tracker wraps a Gymnasium environment; this is a {type(env).__name__}.")
        super().__init__(env)
        self._open(env.observation_space, settings)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment and begin an episode. One that was under way ends without a further transition."""
        found = self.env.reset(seed=seed, options=options)
        self.life.begin(found[0])
        return found

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment and count the transition.

        After the end of an episode, an environment that resets itself takes no action: it begins the next one.
        """
        found = self.env.step(action)
        life = self.life
        if life.is_open():
            life.step(action, found[0], found[2] or found[3])
            if life.transitions >= self._due:
                self._log()
        else:
            life.begin(found[0])
        return found


class VectorTracker(_Tracked, VectorWrapper):
    """A vector environment whose agent is measured: all its environments are one life."""

    def __init__(self, env: VectorEnv[Any, Any, Any], **settings: Any) -> None:
        """Wrap a vector environment. The settings are those of `Tracker`."""
        if not isinstance(env, VectorEnv):
            raise InvalidInput(f"VectorTracker wraps a vector environment; this is a {type(env).__name__}.")
        super().__init__(env)
        self._open(env.single_observation_space, settings)
        mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self._same_step = AutoresetMode(mode) is AutoresetMode.SAME_STEP

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset the environments, or those of `reset_mask` in the options, and begin their episodes."""
        mask = (options or {}).get("reset_mask")  # before the environment takes it out
        found = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]  # takes a list as well
        for slot, observation in enumerate(iterate(self.env.observation_space, found[0])):
            if mask is None or mask[slot]:
                self.life.begin(observation, slot)
        return found

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """Step all environments and count their transitions."""
        found = self.env.step(actions)
        observations, _, terminated, truncated, infos = found
        over = np.logical_or(terminated, truncated).tolist()
        life = self.life
        each = zip(
            iterate(self.env.action_space, actions), iterate(self.env.observation_space, observations), strict=True
        )
        for slot, (action, observation) in enumerate(each):
            if not life.is_open(slot):
                life.begin(observation, slot)
            elif over[slot] and self._same_step:
                life.step(action, infos["final_obs"][slot], True, slot)
                life.begin(observation, slot)
            else:
                life.step(action, observation, over[slot], slot)
        if life.transitions >= self._due:
            self._log()
        return found


def _inputs_for(space: Any, settings: TrackerSettings) -> Inputs:
    """Return what counts the observations of a space: a function, the numbers of a discrete space, or pictures."""
    if settings.codes is not None:
        return FunctionInputs(settings.codes)
    if isinstance(space, gymnasium.spaces.Discrete):
        return FunctionInputs(int)
    if not can_hold_pictures(space):
        raise InvalidInput(
            f"Observations of {space} are not pictures (height, width[, colours]). "
            "Give a function of your own: Tracker(env, codes=FUNCTION)."
        )
    given = settings.thresholds
    bins = read_thresholds(given) if isinstance(given, str | Path) else given
    return PictureInputs(settings.size, settings.levels, bins)
