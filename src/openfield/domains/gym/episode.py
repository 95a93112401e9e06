"""One episode of an environment, and the world that plays a trial of them.

Every episode has an environment of its own: one that is used again is not always like a fresh one.
"""

from __future__ import annotations

import random
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from openfield.core import Ending
from openfield.domains.gym.adapter import to_action
from openfield.domains.gym.effects import ActionEffects, ObservationEffects, RewardEffects
from openfield.domains.gym.environment import Env, find_meter
from openfield.domains.gym.settings import GymSettings
from openfield.episodic import EpisodicWorld
from openfield.trial import Trial

if TYPE_CHECKING:
    from openfield.domains.gym.domain import GymDomain


class GymEpisode:
    """One episode. It is a `Play` of `EpisodicWorld`."""

    def __init__(self, settings: GymSettings, rng: random.Random, env: Env, limit: int, declared: Any) -> None:
        """Start an episode.

        Args:
            settings: The settings in force.
            rng: The source of its seeds.
            env: A fresh environment.
            limit: Steps until the episode is cut off.
            declared: The action space, as agents know it.
        """
        self._settings, self._env, self._limit, self._declared = settings, env, limit, declared
        seed, other = rng.getrandbits(31), random.Random(rng.getrandbits(63))
        self._actions = ActionEffects(settings, env.action_space, other)
        self._observations = ObservationEffects(settings, env.observation_space, other)
        self._rewards = RewardEffects(settings)
        self._meter = find_meter(env)
        self._return, self._steps = 0.0, 0
        self.reward = 0.0
        self.performance: float | None = None
        self.ended: Ending | None = None
        self.detail: dict[str, float] | None = None
        seen, _ = env.reset(seed=seed)
        self.observation = self._observations.apply(seen)

    def move(self, action: Any) -> None:
        """Take a step. The performance is known at the end only."""
        env = self._env
        taken = self._actions.apply(to_action(env.action_space, self._declared, action))
        seen, reward, terminated, truncated, _ = env.step(taken)
        self._steps += 1
        self._return = self._return + float(reward) if self._meter is None else self._meter.total
        if terminated:
            self.ended = "terminated"
        elif truncated or self._steps >= self._limit:
            self.ended = "truncated"
        self.reward = self._rewards.apply(float(reward), self.ended is not None)
        self.observation = self._observations.apply(seen)
        if self.ended is not None:
            self.detail = {"return": self._return}
            self.performance = score(self._return, self._settings.scale)


def score(total: float, scale: tuple[float, float] | None) -> float | None:
    """Return the performance that a return is on a scale; None without a scale."""
    if scale is None:
        return None
    low, high = scale
    return min(1.0, max(0.0, (total - low) / (high - low)))


class GymWorld(EpisodicWorld[GymSettings]):
    """Plays the episodes of a trial, and closes the environment of each."""

    def __init__(self, domain: GymDomain, trial: Trial) -> None:
        self._family, self._env = domain, None
        super().__init__(domain, trial, self._begin)

    _env: Env | None

    def close(self) -> None:
        """Close the environment of the episode under way."""
        env, self._env = self._env, None
        if env is not None:
            with suppress(Exception):  # the record is whole; an environment that fails now has nothing to say
                env.close()

    def _begin(self, settings: GymSettings, rng: random.Random) -> GymEpisode:
        self.close()
        probe = self._family.probe(settings)
        self._env = self._family.make_env(settings)
        return GymEpisode(settings, rng, self._env, settings.max_steps or probe.limit, probe.actions)
