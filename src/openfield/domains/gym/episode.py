"""One episode of an environment, and the world that plays a trial of them.

Every episode has an environment of its own, as one that is used again is not always like a fresh one. Where it is known
to be like a fresh one (`reuse`), one environment plays all episodes with the same settings.
"""

from __future__ import annotations

import random
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from openfield.core import Ending
from openfield.domains.gym.adapter import reader_of, to_action
from openfield.domains.gym.effects import ActionEffects, ObservationEffects, RewardEffects
from openfield.domains.gym.environment import PICTURES, Env, draw, find_meter
from openfield.domains.gym.settings import GymSettings, environment_key
from openfield.episodic import EpisodicWorld
from openfield.errors import OpenfieldError
from openfield.spaces import Space
from openfield.trial import Trial

if TYPE_CHECKING:
    from openfield.domains.gym.domain import GymDomain


class GymEpisode:
    """One episode. It is a `Play` of `EpisodicWorld`."""

    def __init__(self, settings: GymSettings, rng: random.Random, env: Env, limit: int, declared: Space) -> None:
        """Start an episode.

        Args:
            settings: The settings in force.
            rng: The source of its seeds.
            env: The environment.
            limit: Steps until the episode is cut off.
            declared: The action space, as agents know it.
        """
        self._env, self._limit, self._scale = env, limit, settings.scale
        self._space, self._declared = env.action_space, declared
        self._read = reader_of(env.observation_space)
        seed = rng.getrandbits(31)
        self._effects = Effects(settings, env, random.Random(rng.getrandbits(63))) if settings.has_effects else None
        self._meter = find_meter(env)
        self._return, self._steps = 0.0, 0
        self.reward = 0.0
        self.performance: float | None = None
        self.ended: Ending | None = None
        self.detail: dict[str, float] | None = None
        seen, _ = env.reset(seed=seed)
        self.observation = self._read(seen) if self._effects is None else self._effects.observations.apply(seen)

    def move(self, action: Any) -> None:
        """Take a step. The performance is known at the end only."""
        taken, effects = to_action(self._space, self._declared, action), self._effects
        if effects is not None:
            taken = effects.actions.apply(taken)
        seen, reward, terminated, truncated, _ = self._env.step(taken)
        reward = float(reward) + 0.0  # not -0.0: only a changed world would show 0.0 instead
        self._steps += 1
        self._return += reward
        if terminated:
            self.ended = "terminated"
        elif truncated or self._steps >= self._limit:
            self.ended = "truncated"
        if effects is None:
            self.reward, self.observation = reward, self._read(seen)
        else:
            self.reward = effects.rewards.apply(reward, self.ended is not None)
            self.observation = effects.observations.apply(seen)
        if self.ended is not None:
            self._score()

    def look(self, query: str) -> Any:
        """Return a picture of now."""
        if query != "picture" or self._env.render_mode != PICTURES:
            raise OpenfieldError(f"There is no '{query}' to look at here; a film of the trial has a 'picture'.")
        return draw(self._env)

    def _score(self) -> None:
        """Score the episode. What lies beyond the scale is kept in the detail."""
        total = self._return if self._meter is None else self._meter.total
        self.detail = {"return": total}
        if self._scale is not None:
            low, high = self._scale
            unclipped = (total - low) / (high - low)
            self.detail["unclipped"] = unclipped
            self.performance = min(1.0, max(0.0, unclipped))


class Effects:
    """What lies between the environment and the agent in an episode."""

    def __init__(self, settings: GymSettings, env: Env, rng: random.Random) -> None:
        self.actions = ActionEffects(settings, env.action_space, rng)
        self.observations = ObservationEffects(settings, env.observation_space, rng)
        self.rewards = RewardEffects(settings)


class GymWorld(EpisodicWorld[GymSettings]):
    """Plays the episodes of a trial, and closes the environment of each."""

    def __init__(self, domain: GymDomain, trial: Trial, drawing: bool = False) -> None:
        """Prepare the world of a trial, or one whose environments draw for people."""
        self._family, self._drawing = domain, drawing
        self._env, self._made_with = None, None
        super().__init__(domain, trial, self._begin)

    _env: Env | None
    _made_with: GymSettings | None
    """The settings of the environment, if another episode may be played in it."""

    def close(self) -> None:
        """Close the environment."""
        env, self._env, self._made_with = self._env, None, None
        if env is not None:
            with suppress(Exception):  # the record is whole; an environment that fails now has nothing to say
                env.close()

    def _begin(self, settings: GymSettings, rng: random.Random) -> GymEpisode:
        probe = self._family.probe(settings)
        if self._env is None or not self._is_made_for(settings):
            self.close()
            self._env = self._family.make_env(settings, self._drawing)
        self._made_with = settings if can_reuse(settings) else None
        return GymEpisode(settings, rng, self._env, self._family.limit(settings), probe.actions)

    def _is_made_for(self, settings: GymSettings) -> bool:
        """Return whether the environment can play another episode. A domain returns the same settings for a phase."""
        made = self._made_with
        if made is None or made is settings:
            return made is not None
        return can_reuse(settings) and environment_key(made) == environment_key(settings)


def can_reuse(settings: GymSettings) -> bool:
    """Return whether another episode may be played in an environment: wrappers and other ones may keep anything."""
    return bool(settings.reuse) and not (settings.wrappers or settings.novel_wrappers or settings.instead)
