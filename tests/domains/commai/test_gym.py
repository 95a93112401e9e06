"""CommAI as a Gymnasium environment, alone and in numbers."""

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed")
NAME = "openfield.gym:openfield/CommAI-v0"


def test_a_byte_goes_in_and_a_byte_comes_out():
    env = gymnasium.make(NAME)
    assert env.action_space == env.observation_space == gymnasium.spaces.Discrete(256)
    observation, _ = env.reset(seed=1)
    for _ in range(200):
        observation, reward, terminated, truncated, info = env.step(observation)
        assert env.observation_space.contains(observation)
        assert reward in (-1.0, 0.0, 1.0)
        assert not terminated
        assert not truncated
        assert not {"task", "novel"} & info.keys()
    env.close()


def test_many_at_once():
    envs = gymnasium.make_vec(NAME, num_envs=3)
    observations, _ = envs.reset(seed=0)
    for _ in range(50):
        observations, rewards, *_ = envs.step(observations)
    assert observations.shape == rewards.shape == (3,)
    assert len(np.unique(observations)) > 1
    envs.close()
