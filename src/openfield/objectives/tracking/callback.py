"""Log the objectives of an agent that stable-baselines3 trains.

`model.learn(callback=...)` takes any callable of its local and global variables, so nothing of that library is
imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from openfield.objectives.frames.encode import CHANNELS
from openfield.objectives.tracking.inputs import FunctionInputs, PictureInputs
from openfield.objectives.tracking.life import Life
from openfield.objectives.tracking.measured import LifeMeasures, ScalarLog, measure_life


class ObjectivesCallback:
    """A callback for `model.learn` that counts what the agent does and logs its objectives.

    The values go to the logger of the model, under `objectives/`, and to `log` if it is given.
    """

    def __init__(
        self,
        codes: Callable[[Any], Hashable] | None = None,
        *,
        every: int = 10_000,
        window: int = 10_000,
        draws: int = 20,
        log: Any = None,
        max_bytes: int = 1 << 28,
    ) -> None:
        """Prepare to count.

        Args:
            codes: A function from an observation of one environment to a number, text, bytes or tuple; without it
                observations are pictures, with their colours first or last. A stack of frames needs a function, for
                instance `lambda o: o[-1, ::8, ::8].tobytes()`.
            every: Transitions between two logs.
            window: How many of the last transitions are measured alone; 0 measures the whole life only.
            draws: How many times actions are shuffled for the null of empowerment.
            log: A writer with `add_scalar`, or a function of name, value and step.
            max_bytes: The cap of memory.
        """
        inputs = _ModelPictures() if codes is None else FunctionInputs(codes)
        self.life = Life(inputs, window=window, max_bytes=max_bytes)
        self._scalars, self._draws = ScalarLog(self.life, every, draws, log), draws

    def __call__(self, found: Mapping[str, Any], _: Mapping[str, Any]) -> bool:
        """Count one step of all environments. Return True, so that training goes on."""
        model, life, infos = found["self"], self.life, found["infos"]
        for slot, (action, over) in enumerate(zip(found["actions"], found["dones"], strict=True)):
            if not life.is_open(slot):
                life.begin(_look(model._last_obs, slot), slot)
            after = _look(found["new_obs"], slot)
            seen = infos[slot].get("terminal_observation", after) if over else after
            life.step(action, seen, bool(over), slot)
        if life.transitions >= self._scalars.due:
            for name, value in self._scalars.write().items():
                model.logger.record(name, value)
        return True

    def measure(self, last: int | None = None) -> LifeMeasures:
        """Compute the objectives of the life so far, or of its last transitions."""
        return measure_life(self.life, last, draws=self._draws)


class _ModelPictures(PictureInputs):
    """Pictures as models get them: the library puts colours before height and width."""

    def key(self, observation: Any) -> bytes:
        """Return the key of a picture."""
        shape = np.shape(observation)
        if len(shape) == 3 and shape[0] in (1, 3) and shape[2] not in CHANNELS:
            observation = np.moveaxis(observation, 0, 2)
        return super().key(observation)


def _look(observations: Any, slot: int) -> Any:
    """Return what one of several environments showed; those with named parts show a mapping of arrays."""
    if isinstance(observations, Mapping):
        return {name: part[slot] for name, part in observations.items()}
    return observations[slot]
