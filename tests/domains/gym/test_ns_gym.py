"""Wrappers of NS-Gym as novelties, unchanged.

NS-Gym brings torch and another pygame, so it is no part of the environment of these tests: what needs it is skipped
where it is missing, and a stand-in with the form of its observations shows that they are understood.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openfield as of
from openfield.core import Reply

gymnasium = pytest.importorskip("gymnasium")

STAND_IN = """
import gymnasium
import numpy as np


class NSWrapper(gymnasium.Wrapper):
    def __init__(self, env):
        super().__init__(env)
        plain = env.observation_space
        told = gymnasium.spaces.Dict({"gravity": gymnasium.spaces.Discrete(2)})
        self.observation_space = gymnasium.spaces.Dict({"state": plain, "env_change": told})

    def reset(self, **options):
        state, info = self.env.reset(**options)
        self.unwrapped.gravity = 9.8
        return {"state": state, "env_change": {"gravity": 0}}, info

    def step(self, action):
        self.unwrapped.gravity += 0.5
        state, *rest = self.env.step(action)
        return {"state": state, "env_change": {"gravity": 1}}, *rest
"""
DRIFT = """
from {module} import NSWrapper as Base


class Drift(Base):
    pass
"""
REAL = """
from ns_gym.schedulers import ContinuousScheduler, PeriodicScheduler
from ns_gym.update_functions import IncrementUpdate, OrnsteinUhlenbeck, RandomWalk
from ns_gym.wrappers import NSClassicControlWrapper


class Drift(NSClassicControlWrapper):
    def __init__(self, env):
        changes = {
            "gravity": IncrementUpdate(ContinuousScheduler(), 0.5),
            "masspole": RandomWalk(PeriodicScheduler(3), 0, 0.002, seed=1),
            "force_mag": OrnsteinUhlenbeck(ContinuousScheduler(), 0.2, 12.0, 0.1, seed=2),
        }
        super().__init__(env, changes, change_notification=True, delta_change_notification=True)
"""
PARAMETERS = ("gravity", "masspole", "force_mag")


def play(novelty: str) -> list[tuple[bool, int, list[tuple[float, ...]]]]:
    """Return for each episode whether it is novel, its seed, and parameters and observation after each action."""
    domain = of.registry.find_domain("gym:CartPole-v1")
    (trial,) = domain.trials(1, novelty=novelty, unchanged=0, before=2, after=3, onset=2)
    world: Any = domain.world(trial)
    turn, episodes, number = world.reset(), list[Any](), 0
    while True:
        inner = find_env(world).unwrapped
        if turn.first:
            episodes.append((world.truth.novel, inner.np_random_seed, []))
        episodes[-1][2].append((*(getattr(inner, name) for name in PARAMETERS), *map(float, turn.observation)))
        if turn.last and world.over:
            world.close()
            return episodes
        turn = world.step(Reply(number % 2) if turn.last is None else Reply(None))
        number += turn.last is None


def find_env(world: Any) -> Any:
    return next(value for value in vars(world).values() if isinstance(value, gymnasium.Env))


def play_alone(make: Any, seed: int, first: int, count: int) -> list[tuple[float, ...]]:
    """Return the same of one episode of the wrapper alone, in an environment of Gymnasium."""
    env = make(gymnasium.make("CartPole-v1"))
    observation, _ = env.reset(seed=seed)
    found = []
    for number in range(first, first + count):
        values = (getattr(env.unwrapped, name) for name in PARAMETERS)
        found.append((*values, *map(float, observation["state"])))
        if len(found) < count:
            observation = env.step(number % 2)[0]
    return found


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    package = tmp_path / "ns_gym"
    package.mkdir()
    (package / "__init__.py").write_text(STAND_IN)
    (tmp_path / "drift.py").write_text(DRIFT.format(module="ns_gym"))
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "ns_gym"]:
        monkeypatch.delitem(sys.modules, name)
    yield str(tmp_path / "drift.py")
    sys.modules.pop("ns_gym", None)


def test_agents_see_the_state_and_not_what_changed(stand_in: str) -> None:
    episodes = play(f"{stand_in}:Drift")
    assert [novel for novel, *_ in episodes] == [False, False, True, True, True]
    assert all(len(row) == 3 + 4 for _, _, rows in episodes for row in rows)
    assert {row[0] for _, _, rows in episodes[:2] for row in rows} == {9.8}
    for _, _, rows in episodes[2:]:
        assert [row[0] for row in rows] == pytest.approx([9.8 + 0.5 * step for step in range(len(rows))])


def test_parameters_follow_the_same_traces_as_in_ns_gym_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ns_gym.wrappers", reason="NS-Gym is not installed")
    (tmp_path / "real_drift.py").write_text(REAL)
    monkeypatch.syspath_prepend(str(tmp_path))
    import real_drift  # type: ignore[import-not-found]

    first = 0
    for novel, seed, rows in play(f"{tmp_path / 'real_drift.py'}:Drift"):
        if novel:
            alone = play_alone(real_drift.Drift, seed, first, len(rows))
            assert np.abs(np.array(rows) - np.array(alone)).max() <= 1e-12
        first += len(rows) - 1
