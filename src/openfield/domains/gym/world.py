"""One episode of an environment, and the world that plays a trial of them.

Every episode has an environment of its own, as one that is used again is not always like a fresh one. Where it is known
to be like a fresh one (`reuse`), one environment plays several episodes with the same settings. To make one takes time
that an agent can measure. So a new one is made wherever the world may change, whether it does or not.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from openfield.core import Ending
from openfield.domains.gym.adapter import GymSpace, reader_of, to_env_action, to_plain
from openfield.domains.gym.blend import RunningAttributes
from openfield.domains.gym.environment import PICTURES, Env, find_meter, render_picture
from openfield.domains.gym.probe import Probe, find_steps
from openfield.domains.gym.settings import GymSettings, environment_key
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
from openfield.episodic import EpisodicWorld
from openfield.errors import OpenfieldError
from openfield.spaces import Space
from openfield.trial import Phase, Trial, stages_of

if TYPE_CHECKING:
    from openfield.domains.gym.domain import GymDomain

Stage = Callable[[GymSpace, Any], Any]
"""Changes a part of a value, given its space."""


class GymEpisode:
    """One episode. It is a `Play` of `EpisodicWorld`."""

    def __init__(
        self,
        settings: GymSettings,
        rng: random.Random,
        env: Env,
        attributes: RunningAttributes,
        limit: int,
        declared: Space,
        has_effects: bool,
    ) -> None:
        """Start an episode.

        Args:
            settings: The settings in force.
            rng: The source of its seeds.
            env: The environment.
            attributes: Its attributes.
            limit: Steps until the episode is cut off.
            declared: The action space, as agents know it.
            has_effects: Whether anything lies between the environment and the agent at any time of the episode.
        """
        self._env, self._limit, self._scale = env, limit, settings.scale
        self._attributes = attributes
        self._space, self._declared = env.action_space, declared
        self._read = reader_of(env.observation_space)
        seed = rng.getrandbits(31)
        self._effects = Effects(settings, env, random.Random(rng.getrandbits(63))) if has_effects else None
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
        taken, effects = to_env_action(self._space, self._declared, action), self._effects
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

    def change(self, settings: GymSettings) -> None:
        """Put other settings in force from the next move on: other attributes, and what lies before the agent."""
        self._attributes.follow(settings)
        if self._effects is not None:
            self._effects.change(settings)

    def look(self, query: str) -> Any:
        """Return a picture of now."""
        if query != "picture" or self._env.render_mode != PICTURES:
            raise OpenfieldError(f"There is no '{query}' to look at here; a film of the trial has a 'picture'.")
        return render_picture(self._env)

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
    """What lies between the environment and the agent in an episode.

    Effects draw from a generator of their own, so that the environment below is the same with and without them.
    """

    def __init__(self, settings: GymSettings, env: Env, rng: random.Random) -> None:
        self.actions = ActionEffects(settings, env.action_space, rng)
        self.observations = ObservationEffects(settings, env.observation_space, rng)
        self.rewards = RewardEffects(settings)

    def change(self, settings: GymSettings) -> None:
        """Go on with other settings. What waits to be carried out, shown or paid still is."""
        self.actions.change(settings)
        self.observations.change(settings)
        self.rewards.change(settings)


class GymWorld(EpisodicWorld[GymSettings]):
    """Plays the episodes of a trial, and closes the environment of each."""

    def __init__(self, domain: GymDomain, trial: Trial, drawing: bool = False) -> None:
        """Prepare the world of a trial, or one whose environments draw for people."""
        self._family, self._drawing = domain, drawing
        self._env, self._made_with, self._attributes = None, None, None
        super().__init__(domain, trial, self._begin)

    _env: Env | None
    _made_with: GymSettings | None
    """The settings of the environment, if another episode may be played in it."""
    _attributes: RunningAttributes | None

    def close(self) -> None:
        """Close the environment."""
        env, self._env, self._made_with, self._attributes = self._env, None, None, None
        if env is not None:
            with suppress(Exception):  # the record is whole; an environment that fails now has nothing to say
                env.close()

    def _begin(self, settings: GymSettings, rng: random.Random) -> GymEpisode:
        probe, attributes = self._probe, self._attributes
        if self._env is None or attributes is None or self._may_change or not self._is_made_for(settings, attributes):
            self.close()
            self._env = self._family.make_env(settings, self._drawing)
            attributes = self._attributes = RunningAttributes(self._env, settings)
        self._made_with = settings if self._reuses else None
        limit = self._family.limit(settings, probe.id, find_steps(self._env))
        has_effects = settings.has_effects or (self._turnwise and self._may_have_effects)
        return GymEpisode(settings, rng, self._env, attributes, limit, probe.actions, has_effects)

    @cached_property
    def _probe(self) -> Probe:
        """What the environment says of itself in the normal world.

        That of changed worlds is asked for now, too, and not where they begin: it takes time that an agent can measure.
        """
        for phase in self._phases:
            self._family.probe(self._settings_in(phase))
        return self._family.probe(self._usual)

    @cached_property
    def _phases(self) -> tuple[Phase, ...]:
        """The phases of the trial, and one for each stage of its scenario."""
        novel = [Phase("test", 1, stage) for stage in stages_of(self._trial.scenario or ())]
        return *self._trial.phases, *novel

    @property
    def _may_change(self) -> bool:
        """Whether the world may change with this episode, as far as all trials of its set show."""
        if self._trial.window is None:
            return self._number > 0 and self._script[self._number] is not self._script[self._number - 1]
        low, high = self._trial.window
        at = self._number - sum(phase.episodes for phase in self._trial.phases if phase.name == "training")
        return at == 0 or low <= at <= high or (low <= at and self._course is not None and not self._follows)

    @cached_property
    def _usual(self) -> GymSettings:
        """The settings of the normal world."""
        return self._family.settings_of(self._trial)

    @cached_property
    def _reuses(self) -> bool:
        """Whether environments may be used again, in the normal world and in that of the set's novelties."""
        return all(can_reuse(self._settings_in(phase)) for phase in self._phases)

    @cached_property
    def _follows(self) -> bool:
        """Whether an environment that plays on need only be given other values of attributes, at any time."""
        made = [self._settings_in(phase).make for phase in self._phases]
        return self._reuses and len(stages_of(self._trial.scenario or ())) < 2 and all(made[0] == each for each in made)

    @cached_property
    def _may_have_effects(self) -> bool:
        """Whether anything may come between the environment and the agent."""
        return any(self._settings_in(phase).has_effects for phase in self._phases)

    def _is_made_for(self, settings: GymSettings, attributes: RunningAttributes) -> bool:
        """Return whether the environment can play another episode. A domain returns the same settings for a phase."""
        made = self._made_with
        if made is None:
            return False
        if self._course is not None and self._follows and attributes.can_follow(settings):
            attributes.follow(settings)
            return True
        return made is settings or environment_key(made) == environment_key(settings)


def can_reuse(settings: GymSettings) -> bool:
    """Return whether another episode may be played in an environment: wrappers and other ones may keep anything."""
    return bool(settings.reuse) and not (settings.wrappers or settings.novel_wrappers or settings.instead)


class ActionEffects:
    """Changes the actions of an episode."""

    def __init__(self, settings: GymSettings, space: GymSpace, rng: random.Random) -> None:
        self._space, self._rng = space, rng
        self._waiting: deque[Any] = deque()
        self._last: Any = None
        self.change(settings)

    def change(self, settings: GymSettings) -> None:
        """Go on with these settings."""
        self._settings = settings
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
            while len(self._waiting) > settings.delay_actions:  # the delay has become shorter
                action = self._waiting.popleft()
        if settings.drop_actions and self._rng.random() < settings.drop_actions:
            action = rest(self._space)
        if settings.sticky_actions and self._last is not None and self._rng.random() < settings.sticky_actions:
            action = self._last
        self._last = action
        return action


class ObservationEffects:
    """Changes the observations of an episode. It takes those of the environment and returns plain ones."""

    def __init__(self, settings: GymSettings, space: GymSpace, rng: random.Random) -> None:
        self._space, self._rng = space, rng
        self._read = reader_of(space)
        self._numbers = np.random.default_rng(rng.getrandbits(63))
        self._seen: deque[Any] = deque()
        self._shown: Any = None
        self.change(settings)

    def change(self, settings: GymSettings) -> None:
        """Go on with these settings."""
        self._settings = settings
        self._seen = deque(self._seen, maxlen=settings.delay_observations + 1)
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
        self._waiting: deque[float] = deque()
        self.change(settings)

    def change(self, settings: GymSettings) -> None:
        """Go on with these settings."""
        self._factor, self._delay, self._sparse = (
            settings.reward_factor,
            settings.delay_rewards,
            settings.sparse_rewards,
        )

    def apply(self, reward: float, ended: bool) -> float:
        """Return the agent's reward of this step; delayed rewards come with the end of the episode."""
        if not self._delay and not self._sparse and not self._waiting:
            return reward * self._factor + 0.0  # not -0.0, which would reveal a changed sign
        self._waiting.append(reward * self._factor)
        due = len(self._waiting) if ended else 0 if self._sparse else max(0, len(self._waiting) - self._delay)
        return sum(self._waiting.popleft() for _ in range(due)) + 0.0
