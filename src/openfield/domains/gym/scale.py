"""Find the returns that are a performance of 0 and 1, and whether an environment replays, by random play."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from openfield.domains.gym.adapter import to_action, to_plain
from openfield.domains.gym.environment import Env
from openfield.record import action_key
from openfield.spaces import Space
from openfield.trial import derive

FLOOR_EPISODES = 20
"""Episodes of random play whose mean return is a performance of 0."""
FLOOR_STEPS = 20_000
"""Steps after which no further of these episodes starts."""
REPLAY_STEPS = 60
"""Steps that two environments with the same seed must show alike."""


def measure_floor(make: Callable[[], Env], actions: Space, limit: int) -> float:
    """Return the mean return of random play. It depends on nothing but the environment."""
    rng, returns, steps = random.Random(derive(0, "floor")), list[float](), 0
    while len(returns) < FLOOR_EPISODES and steps < FLOOR_STEPS:
        env = make()
        env.reset(seed=rng.getrandbits(31))
        total, ended, number = 0.0, False, 0
        while not ended and number < limit:
            action = to_action(env.action_space, actions, actions.sample(rng))
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


def _play(env: Env, actions: Space, shift: int = 0) -> list[bytes]:
    """Return what some random actions show; a shift gives the environment other seeds."""
    rng = random.Random(derive(0, "replay"))
    shown: list[Any] = [env.reset(seed=rng.getrandbits(31) + shift)[0]]
    keys = [action_key(to_plain(shown[0]))]
    for _ in range(REPLAY_STEPS):
        seen, reward, terminated, truncated, _ = env.step(to_action(env.action_space, actions, actions.sample(rng)))
        keys.append(action_key([to_plain(seen), float(reward), bool(terminated), bool(truncated)]))
        if terminated or truncated:
            env.reset(seed=rng.getrandbits(31) + shift)
    env.close()
    return keys
