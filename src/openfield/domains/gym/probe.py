"""Learn an environment's own description, and by random play its usual return and whether it replays."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import gymnasium
import msgspec
import numpy as np
from gymnasium.envs.registration import EnvSpec

from openfield.domains.gym.adapter import GymSpace, to_env_action, to_plain, to_space
from openfield.domains.gym.environment import Env, one_line, read_attribute, read_fps
from openfield.errors import InvalidInput, describe_error
from openfield.record import action_key
from openfield.spaces import Space
from openfield.trial import derive

FLOOR_EPISODES = 20
"""Episodes of random play whose mean return is a performance of 0."""
FLOOR_STEPS = 20_000
"""Steps after which no further of these episodes starts."""
REPLAY_STEPS = 60
"""Steps that two environments with the same seed must show alike."""
EFFECT_STEPS = 300
"""Steps of random play in which a novelty should show."""


class Probe(NamedTuple):
    """An environment's own description."""

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
        seen = env.reset(seed=0)[0]
    except Exception as error:
        with suppress(TypeError, ValueError):  # EnvPool's take no seed
            _refuse_batch(env.observation_space, env.reset()[0], text)
        raise InvalidInput(f"{text} cannot start an episode: {one_line(describe_error(error))}") from error
    _refuse_batch(env.observation_space, seen, text)
    for change, value in zip(attributes, before, strict=True):
        if _freeze(read_attribute(env, change, text)) != value:
            raise InvalidInput(f"'{change}' has no effect: {text} sets it anew when an episode starts.")
    spec = env.spec if isinstance(env.spec, EnvSpec) else None  # other packages have specs of their own
    return Probe(
        id=text.rpartition(":")[2] if spec is None else spec.id,
        gym_actions=env.action_space,
        gym_observations=env.observation_space,
        actions=to_space(env.action_space),
        observations=to_space(env.observation_space),
        threshold=None if spec is None else spec.reward_threshold,
        steps=find_steps(env),
        fps=read_fps(env),
        pays_otherwise=_pays_otherwise(env),
    )


def _refuse_batch(space: GymSpace, seen: Any, text: str) -> None:
    """Refuse what steps several environments at once, as EnvPool makes them: a trial has one.

    Raises:
        InvalidInput: Its observations, or parts of them, have one axis more than their space.
    """
    if isinstance(space, gymnasium.spaces.Dict) and isinstance(seen, Mapping):
        for name, part in space.items():
            _refuse_batch(part, seen.get(name), text)
    elif isinstance(space, gymnasium.spaces.Box) and np.shape(seen)[1:] == space.shape != np.shape(seen):
        raise InvalidInput(
            f"{text} makes a batch of environments: it shows arrays of shape {np.shape(seen)}, and its space has "
            f"{space.shape}. Give a function that makes one, or that wraps it and takes the first axis off what it "
            "returns."
        )


def find_steps(env: Env) -> int | None:
    """Return the limit that Gymnasium sets, or the one that MiniGrid and others keep in `max_steps`."""
    own = getattr(env.unwrapped, "max_steps", None)
    given = getattr(env.spec, "max_episode_steps", None)
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


def measure_floor(make: Callable[[], Env], actions: Space, limit: int) -> float:
    """Return the mean return of random play. It depends on nothing but the environment."""
    rng, returns, steps = random.Random(derive(0, "floor")), list[float](), 0
    while len(returns) < FLOOR_EPISODES and steps < FLOOR_STEPS:
        env = make()
        env.reset(seed=rng.getrandbits(31))
        total, ended, number = 0.0, False, 0
        while not ended and number < limit:
            action = to_env_action(env.action_space, actions, actions.sample(rng))
            _, reward, terminated, truncated, _ = env.step(action)
            total, ended, number = total + float(reward), terminated or truncated, number + 1
        env.close()
        returns.append(total)
        steps += number
    return sum(returns) / len(returns)


def find_drift(make: Callable[[], Env], actions: Space) -> int | None:
    """Return the first step at which two environments with the same seed and actions differ; None if none does."""
    one, other = (_show(make, actions, global_seed) for global_seed in (1, 2))
    return _find_difference(one, other)


def find_chance(make: Callable[[], Env], actions: Space) -> int | None:
    """Return the first step at which two seeds show something else under the same actions; None if none does."""
    return _find_difference(_play(make(), actions), _play(make(), actions, 1))


def shows_difference(make: Callable[[], Env], other: Callable[[], Env], actions: Space) -> bool:
    """Return whether random play with the same seeds shows something else in another environment."""
    return (
        _find_difference(_play(make(), actions, steps=EFFECT_STEPS), _play(other(), actions, steps=EFFECT_STEPS))
        is not None
    )


def _find_difference(one: list[bytes], other: list[bytes]) -> int | None:
    return next((number for number, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]), None)


def _show(make: Callable[[], Env], actions: Space, global_seed: int) -> list[bytes]:
    """Return what random play shows, with global random sources that an environment must not read."""
    kept = random.getstate(), np.random.get_state()
    random.seed(global_seed)
    np.random.seed(global_seed)
    try:
        return _play(make(), actions)
    finally:
        random.setstate(kept[0])
        np.random.set_state(kept[1])


def _play(env: Env, actions: Space, shift: int = 0, steps: int = REPLAY_STEPS) -> list[bytes]:
    """Return what some random actions show; a shift gives the environment other seeds."""
    rng = random.Random(derive(0, "replay"))
    shown: list[Any] = [env.reset(seed=rng.getrandbits(31) + shift)[0]]
    keys = [action_key(to_plain(shown[0]))]
    for _ in range(steps):
        seen, reward, terminated, truncated, _ = env.step(to_env_action(env.action_space, actions, actions.sample(rng)))
        keys.append(action_key([to_plain(seen), float(reward), bool(terminated), bool(truncated)]))
        if terminated or truncated:
            env.reset(seed=rng.getrandbits(31) + shift)
    env.close()
    return keys
