"""Changes that fit any environment: what lies between its actions, observations and rewards and those of the agent.

They draw from a generator of their own, so that the environment below is the same with and without them.
"""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import numpy as np
from gymnasium import spaces as gym_spaces

from openfield.domains.gym.adapter import GymSpace, to_plain
from openfield.domains.gym.settings import GymSettings

MAX_RANGE = 1e6
"""Numbers with a larger range count as unbounded: their noise is in shares of 1."""
MASK_SEED = 7
"""Which numbers are blank is the same in every episode: broken sensors stay broken."""


class ActionEffects:
    """Changes the actions of an episode."""

    def __init__(self, settings: GymSettings, space: GymSpace, rng: random.Random) -> None:
        self._settings, self._space, self._rng = settings, space, rng
        self._waiting: deque[Any] = deque()
        self._last: Any = None

    def apply(self, action: Any) -> Any:
        """Return the action that is carried out."""
        settings = self._settings
        if settings.permute_actions:
            action = permute(self._space, action)
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
        self._noise = np.random.default_rng(rng.getrandbits(63))
        self._seen: deque[Any] = deque(maxlen=settings.delay_observations + 1)
        self._shown: Any = None
        self._inner = bool(settings.noise or settings.mask or settings.permute_observations)

    def apply(self, observation: Any) -> Any:
        """Return what the agent is shown."""
        settings = self._settings
        seen = to_plain(observation)
        if self._inner:
            seen = self._change(self._space, seen)
        if settings.delay_observations:
            self._seen.append(seen)
            seen = to_plain(self._seen[0])
        if settings.freeze:
            if self._shown is not None and self._rng.random() < settings.freeze:
                seen = self._shown
            self._shown = seen
            seen = to_plain(seen)
        return seen

    def _change(self, space: GymSpace, seen: Any) -> Any:
        match space:
            case gym_spaces.Dict():
                return {name: self._change(part, seen[name]) for name, part in space.items()}
            case gym_spaces.Tuple():
                return [self._change(part, each) for part, each in zip(space, seen, strict=True)]
            case gym_spaces.Discrete() if self._settings.permute_observations:
                return permute(space, seen)
            case gym_spaces.Box():
                return self._change_numbers(space, np.asarray(seen))
        return seen

    def _change_numbers(self, space: gym_spaces.Box, seen: Any) -> Any:
        settings, kind = self._settings, seen.dtype
        if settings.permute_observations and can_permute(space):
            seen = permute(space, seen)
        if settings.mask:
            hidden = np.random.default_rng(MASK_SEED).permutation(seen.size) < max(1, round(settings.mask * seen.size))
            seen = np.where(hidden.reshape(seen.shape), 0, seen)
        if settings.noise:
            with np.errstate(over="ignore", invalid="ignore"):
                width = np.asarray(space.high, float) - np.asarray(space.low, float)
            drawn = self._noise.normal(0.0, settings.noise, seen.shape) * np.where(width < MAX_RANGE, width, 1.0)
            seen = seen + (drawn if kind.kind == "f" else np.rint(drawn))
        return np.clip(seen, space.low, space.high).astype(kind)


class RewardEffects:
    """Changes what the agent is paid. Scores are computed from what the environment gives."""

    def __init__(self, settings: GymSettings) -> None:
        self._factor, self._delay = settings.reward_factor, settings.delay_rewards
        self._waiting: deque[float] = deque()

    def apply(self, reward: float, ended: bool) -> float:
        """Return what the agent is paid now; what it is still owed comes with the end of the episode."""
        if not self._delay:
            return reward * self._factor + 0.0  # not -0.0, which would tell of a changed sign
        self._waiting.append(reward * self._factor)
        due = len(self._waiting) if ended else max(0, len(self._waiting) - self._delay)
        return sum(self._waiting.popleft() for _ in range(due)) + 0.0


def can_permute(space: GymSpace) -> bool:
    """Return whether values of a space, or of a part of it, can change places so that something moves."""
    match space:
        case gym_spaces.Discrete():
            return bool(space.n > 1)
        case gym_spaces.Box() | gym_spaces.MultiBinary() | gym_spaces.MultiDiscrete():
            return len(space.shape) == 1 and space.shape[0] > 1
        case gym_spaces.Dict():
            return any(can_permute(part) for part in space.values())
        case gym_spaces.Tuple():
            return any(can_permute(part) for part in space)
    return False


def has_numbers(space: GymSpace) -> bool:
    """Return whether a space, or a part of it, is an array of numbers that noise and blanks fit."""
    match space:
        case gym_spaces.Box():
            return True
        case gym_spaces.Dict():
            return any(has_numbers(part) for part in space.values())
        case gym_spaces.Tuple():
            return any(has_numbers(part) for part in space)
    return False


def permute(space: GymSpace, value: Any) -> Any:
    """Return a value with its place taken by the next one. What does not fit there is moved into the bounds."""
    if not can_permute(space):
        return value
    match space:
        case gym_spaces.Discrete():
            return int(space.start + (value - space.start + 1) % space.n)
        case gym_spaces.Dict():
            return {name: permute(part, value[name]) for name, part in space.items()}
        case gym_spaces.Tuple():
            return tuple(permute(part, each) for part, each in zip(space, value, strict=True))
        case gym_spaces.Box():
            return np.clip(np.roll(value, 1), space.low, space.high).astype(value.dtype)
        case gym_spaces.MultiDiscrete():
            return np.minimum(np.roll(value - space.start, 1), space.nvec - 1) + space.start
    return np.roll(value, 1)


def rest(space: GymSpace) -> Any:
    """Return the action that stands for none: the first, or 0 where the bounds allow it."""
    match space:
        case gym_spaces.Discrete():
            return int(space.start)
        case gym_spaces.Dict():
            return {name: rest(part) for name, part in space.items()}
        case gym_spaces.Tuple():
            return tuple(rest(part) for part in space)
        case gym_spaces.Text():
            return next(iter(sorted(space.character_set))) * space.min_length
        case gym_spaces.Box():
            return np.clip(np.zeros(space.shape, space.dtype), space.low, space.high)
        case gym_spaces.MultiDiscrete():
            return np.array(np.broadcast_to(space.start, space.nvec.shape), space.dtype)
    return np.zeros(space.shape, space.dtype)
