"""Changes that fit any environment: what lies between its actions, observations and rewards and those of the agent.

They draw from a generator of their own, so that the environment below is the same with and without them.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from openfield.domains.gym.adapter import GymSpace, reader_of, to_plain
from openfield.domains.gym.settings import GymSettings
from openfield.domains.gym.transforms import (
    add_noise,
    blank,
    break_actuators,
    change_parts,
    flip_picture,
    invert_picture,
    is_array,
    mirror,
    permute,
    pick_broken,
    rest,
)

Stage = Callable[[GymSpace, Any], Any]
"""Changes a part of a value, given its space."""


class ActionEffects:
    """Changes the actions of an episode."""

    def __init__(self, settings: GymSettings, space: GymSpace, rng: random.Random) -> None:
        self._settings, self._space, self._rng = settings, space, rng
        self._waiting: deque[Any] = deque()
        self._last: Any = None
        broken = partial(break_actuators, share=settings.broken_actuators)
        stages: list[tuple[Stage, Any]] = [
            (permute, settings.permute_actions),
            (mirror, settings.mirror_actions),
            (broken, settings.broken_actuators),
        ]
        self._stages = [stage for stage, wanted in stages if wanted]

    def apply(self, action: Any) -> Any:
        """Return the action that is carried out."""
        settings = self._settings
        for stage in self._stages:
            action = change_parts(self._space, action, stage)
        if settings.delay_actions:
            self._waiting.append(action)
            action = self._waiting.popleft() if len(self._waiting) > settings.delay_actions else self._waiting[0]
        if settings.drop_actions and self._rng.random() < settings.drop_actions:
            action = rest(self._space)
        if settings.sticky_actions and self._last is not None and self._rng.random() < settings.sticky_actions:
            action = self._last
        self._last = action
        return action


class ObservationEffects:
    """Changes the observations of an episode. It takes those of the environment and returns plain ones."""

    def __init__(self, settings: GymSettings, space: GymSpace, rng: random.Random) -> None:
        self._settings, self._space, self._rng = settings, space, rng
        self._read = reader_of(space)
        self._numbers = np.random.default_rng(rng.getrandbits(63))
        self._seen: deque[Any] = deque(maxlen=settings.delay_observations + 1)
        self._shown: Any = None
        stages: list[tuple[Stage, Any]] = [
            (permute, settings.permute_observations),
            (flip_picture, settings.mirror_observations),
            (invert_picture, settings.invert_observations),
            (self._blind, settings.dead_sensors),
            (self._mask, settings.mask),
            (self._disturb, settings.noise),
        ]
        self._stages = [stage for stage, wanted in stages if wanted]

    def apply(self, observation: Any) -> Any:
        """Return what the agent is shown."""
        settings = self._settings
        seen = self._read(observation)
        for stage in self._stages:
            seen = change_parts(self._space, seen, stage)
        if settings.delay_observations:
            self._seen.append(seen)
            seen = to_plain(self._seen[0])
        if settings.freeze:
            if self._shown is not None and self._rng.random() < settings.freeze:
                seen = self._shown
            self._shown = seen
            seen = to_plain(seen)
        return seen

    def _blind(self, space: GymSpace, seen: Any) -> Any:
        """Blank the numbers of dead sensors, which are the same in every episode."""
        share = self._settings.dead_sensors
        return blank(space, np.asarray(seen), lambda count: pick_broken(count, share)) if is_array(space) else seen

    def _mask(self, space: GymSpace, seen: Any) -> Any:
        """Blank numbers that are drawn anew at every step."""
        share, numbers = self._settings.mask, self._numbers
        return blank(space, np.asarray(seen), lambda count: numbers.random(count) < share) if is_array(space) else seen

    def _disturb(self, space: GymSpace, seen: Any) -> Any:
        """Add noise to numbers."""
        if not is_array(space):
            return seen
        numbers = np.asarray(seen)
        return add_noise(space, numbers, self._numbers.normal(0.0, self._settings.noise, numbers.shape))


class RewardEffects:
    """Changes what the agent is paid. Scores are computed from what the environment gives."""

    def __init__(self, settings: GymSettings) -> None:
        self._factor, self._delay, self._sparse = (
            settings.reward_factor,
            settings.delay_rewards,
            settings.sparse_rewards,
        )
        self._waiting: deque[float] = deque()

    def apply(self, reward: float, ended: bool) -> float:
        """Return what the agent is paid now; what it is still owed comes with the end of the episode."""
        if not self._delay and not self._sparse:
            return reward * self._factor + 0.0  # not -0.0, which would tell of a changed sign
        self._waiting.append(reward * self._factor)
        due = len(self._waiting) if ended else 0 if self._sparse else max(0, len(self._waiting) - self._delay)
        return sum(self._waiting.popleft() for _ in range(due)) + 0.0
