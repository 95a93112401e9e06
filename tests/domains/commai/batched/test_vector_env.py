"""A batch of CommAI in Gymnasium: spaces, seeds, ends, and what only training may use."""

import numpy as np
import pytest

from openfield.errors import InvalidInput

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed")
NAME = "openfield.gym:openfield/CommAI-v0"


def make(n: int, **options):
    return gymnasium.make_vec(NAME, num_envs=n, vectorization_mode="vector_entry_point", compiled=False, **options)


def test_bytes_go_in_and_bytes_come_out():
    envs = make(4, tasks=["micro1", "micro4"])
    assert envs.single_action_space == envs.single_observation_space == gymnasium.spaces.Discrete(256)
    assert envs.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.NEXT_STEP
    with pytest.raises(gymnasium.error.ResetNeeded):
        envs.step(np.zeros(4, np.int64))
    observations, _ = envs.reset(seed=1)
    assert envs.observation_space.contains(observations)
    observations, rewards, terminated, truncated, info = envs.step(envs.action_space.sample())
    assert envs.observation_space.contains(observations)
    assert (rewards.dtype, terminated.dtype, truncated.dtype) == (np.float64, np.bool_, np.bool_)
    assert set(info) == {"training_only"}
    assert set(info["training_only"]) == {"task", "instance", "ended", "solved"}
    envs.close()


def test_a_seed_gives_the_same_environments():
    envs, others = make(3, tasks="micro2"), make(2, tasks="micro2")
    first, _ = envs.reset(seed=4)
    for seed in ([4, 5, 6], np.int64(4)):
        assert envs.reset(seed=seed)[0].tolist() == first.tolist()
    assert others.reset(seed=5)[0].tolist() == first[1:].tolist()
    assert envs.reset()[0].shape == (3,)  # goes on with further draws
    with pytest.raises(InvalidInput, match="needs a seed"):
        envs.reset(seed=[1, None, 2])


def test_a_finished_curriculum_terminates_and_the_next_step_starts_it_anew():
    envs = make(2, tasks=[["micro4"], ["micro7.1"]], settings={"success_threshold": 1})
    observations, _ = envs.reset(seed=0)
    for _ in range(10):
        observations, rewards, terminated, truncated, info = envs.step(observations)
    assert terminated.tolist() == [True, False]
    assert info["training_only"]["solved"].tolist() == [True, False]
    assert rewards[0] == 1.0
    observations, rewards, terminated, truncated, info = envs.step(np.array([99, 32]))
    assert not (terminated | truncated).any()
    assert rewards[0] == 0.0
    assert info["training_only"]["instance"].tolist() == [0, 0]
    observations, rewards, *_ = envs.step(observations)
    assert rewards[0] == 1.0  # an echo knows micro4 from its first symbol on


def test_steps_are_limited():
    envs = make(2, tasks="micro1", settings={"max_steps": 3})
    observations, _ = envs.reset(seed=0)
    ends = [envs.step(observations)[3].tolist() for _ in range(8)]
    assert ends == [[step in (2, 6)] * 2 for step in range(8)]


def test_trials_are_not_played():
    with pytest.raises(InvalidInput, match=r"no argument 'journal'.*vectorization_mode=\"sync\""):
        make(2, journal="run.sqlite")
