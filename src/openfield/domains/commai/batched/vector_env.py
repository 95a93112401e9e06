"""A batch as a vector environment of Gymnasium, to train learners of micro tasks.

`gymnasium.make_vec("openfield/CommAI-v0", num_envs=1024, vectorization_mode="vector_entry_point")` makes one. It plays
no trials and records nothing, because its `info` holds facts that a learner must not know when it is evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from openfield.domains.commai.batched.batch import Array
from openfield.domains.commai.batched.factory import Tasks, batch
from openfield.domains.commai.settings import CommaiSettings
from openfield.errors import InvalidInput, MissingExtra
from openfield.settings import make_settings

try:
    import gymnasium
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ImportError:
    raise MissingExtra("gym", "openfield.domains.commai.batched.vector_env") from None

TRAINING_ONLY = "training_only"
"""The key of `info` under which is what only training may use."""


class CommaiVectorEnv(VectorEnv[Array, Array, Array]):
    """Many environments of micro tasks: each hears a byte and says one.

    An environment terminates when its curriculum is finished and is truncated after `max_steps`. The next step starts
    its curriculum anew, whatever the action is.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(
        self,
        num_envs: int = 1,
        tasks: Tasks = "micro",
        settings: CommaiSettings | Mapping[str, Any] | None = None,
        compiled: bool | None = None,
        device: str = "cpu",
        domain: str = "commai",
        **others: Any,
    ) -> None:
        """Make the environments; the arguments are those of `gymnasium.make_vec`.

        Args:
            num_envs: How many there are.
            tasks: Their tasks, as for `batch`.
            settings: How tasks follow each other and when an instance is solved, as for `batch`.
            compiled: Whether to use numba; by default where it is installed.
            device: Where they are stepped, as for `batch`. On a card all arrays are there, and `actions` should be.
            domain: The domain, which is always CommAI.
            others: Arguments of single environments, which are refused.
        """
        if others:
            raise InvalidInput(
                f"The batched {domain} has no argument '{next(iter(others))}': it plays no trials and records nothing. "
                'To play trials, write vectorization_mode="sync".'
            )
        chosen = settings if isinstance(settings, CommaiSettings) else make_settings(CommaiSettings, settings or {})
        self.num_envs = num_envs
        self.batch = batch(tasks, num_envs, chosen, compiled=compiled, device=device)
        arrays = self.batch.arrays
        self.single_action_space = self.single_observation_space = gymnasium.spaces.Discrete(256)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._max_steps = chosen.max_steps
        self._steps = arrays.zeros(num_envs, np.int64)
        self._done = arrays.zeros(num_envs, bool)
        self._started = False

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Start all curricula: from a seed (environment i has seed + i), from one for each, or with further draws."""
        if seed is None and not self._started:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        if seed is None:
            observations = self.batch.restart(np.arange(self.num_envs))
        elif isinstance(seed, int | np.integer):
            observations = self.batch.reset(int(seed))
        else:
            observations = self.batch.reset([_check_seed(each) for each in seed])
        self._started = True
        self._steps[:], self._done[:] = 0, False
        return observations, self._info()

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Let every environment hear a byte; those that were done start anew instead."""
        if not self._started:
            raise gymnasium.error.ResetNeeded("Call reset() first.")
        observations, rewards = (each.copy() for each in self.batch.step(actions))  # a batch of one keeps its own
        self._steps += 1
        done = self._done
        if done.any():
            observations = self.batch.restart(self.batch.arrays.flatnonzero(done))
            rewards[done], self._steps[done] = 0.0, 0
        terminated = self.batch.over
        truncated = (self._steps >= self._max_steps) & ~terminated
        self._done = terminated | truncated
        return observations, rewards, terminated, truncated, self._info()

    def _info(self) -> dict[str, Any]:
        return {TRAINING_ONLY: self.batch.training_info()}


def _check_seed(seed: int | None) -> int:
    if seed is None:
        raise InvalidInput("Every environment needs a seed if one has a seed of its own.")
    return seed
