"""Learn what an environment says of itself before it is played."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium
import msgspec

from openfield.domains.gym.adapter import GymSpace, to_space
from openfield.domains.gym.environment import Env, one_line, read_attribute, read_fps
from openfield.errors import InvalidInput, describe_error
from openfield.spaces import Space


class Probe(NamedTuple):
    """What an environment says of itself."""

    id: str
    gym_actions: GymSpace
    gym_observations: GymSpace
    actions: Space
    observations: Space
    threshold: float | None
    """The mean return from which Gymnasium calls it solved."""
    steps: int | None
    """Steps after which it cuts off an episode."""
    fps: float | None
    """How many steps a second a film shows; None if it draws no pictures."""
    pays_otherwise: bool
    """Whether a wrapper changes its rewards, so that published returns say nothing about it."""


def probe_env(env: Env, attributes: Sequence[str], text: str) -> Probe:
    """Start an episode, and return what the environment says of itself.

    Args:
        env: The environment.
        attributes: Changes of its attributes. Those that the start of an episode undoes are refused.
        text: What the user called it.
    """
    before = [_freeze(read_attribute(env, each, text)) for each in attributes]
    try:
        env.reset(seed=0)
    except Exception as error:
        raise InvalidInput(f"{text} cannot start an episode: {one_line(describe_error(error))}") from error
    for change, value in zip(attributes, before, strict=True):
        if _freeze(read_attribute(env, change, text)) != value:
            raise InvalidInput(f"'{change}' has no effect: {text} sets it anew when an episode starts.")
    spec = env.spec
    return Probe(
        id=text.rpartition(":")[2] if spec is None else spec.id,
        gym_actions=env.action_space,
        gym_observations=env.observation_space,
        actions=to_space(env.action_space),
        observations=to_space(env.observation_space),
        threshold=None if spec is None else spec.reward_threshold,
        steps=_find_steps(env),
        fps=read_fps(env),
        pays_otherwise=_pays_otherwise(env),
    )


def _find_steps(env: Env) -> int | None:
    """Return the limit that Gymnasium sets, or the one that MiniGrid and others keep in `max_steps`."""
    own = getattr(env.unwrapped, "max_steps", None)
    given = None if env.spec is None else env.spec.max_episode_steps
    return given or (own if type(own) is int and own > 0 else None)


def _pays_otherwise(env: Env) -> bool:
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, gymnasium.RewardWrapper):
            return True
        env = env.env
    return False


def _freeze(value: Any) -> bytes:
    """Return an attribute in a form that can be compared later, when the environment has changed it in its place."""
    return msgspec.json.encode(value.tolist() if hasattr(value, "tolist") else value)
