"""Birds for learners: a table of numbers or a picture in, a continuous shot out."""

import os

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from openfield.domains.birds import DOMAIN
from openfield.errors import InvalidInput


@pytest.mark.parametrize("observe", [None, "features", "image"])
def test_the_environment_keeps_gymnasiums_rules(observe):
    trial = DOMAIN.trials(1, observe=observe, unchanged=0)[0] if observe else None
    check_env(gymnasium.make("openfield.gym:openfield/Birds-v0", trial=trial).unwrapped, skip_render_check=True)


@pytest.mark.parametrize(("observe", "shape"), [("features", (40, 5)), ("image", (480, 640, 3))])
def test_an_episode_is_a_level_and_its_shots(observe, shape):
    (trial,) = DOMAIN.trials(1, novelty="none", before=2, after=0, observe=observe, scenario="single", unchanged=0)
    env = gymnasium.make("openfield.gym:openfield/Birds-v0", trial=trial)
    seen, _ = env.reset(seed=1)
    assert seen.shape == shape
    env.action_space.seed(1)
    ended = truncated = False
    while not (ended or truncated):
        seen, reward, ended, truncated, info = env.step(env.action_space.sample())
        assert seen in env.observation_space
    assert info["feedback"]["state"] in ("won", "lost")
    assert reward >= 0
    env.close()


def test_a_shot_is_rendered_as_a_film(monkeypatch):
    monkeypatch.setattr("openfield.domains.birds.picture.film.FPS", 5)  # thirty pictures a second take their time
    (trial,) = DOMAIN.trials(1, novelty="none", before=1, after=0, observe="features", scenario="single", unchanged=0)
    env = gymnasium.make("openfield.gym:openfield/Birds-v0", trial=trial, render_mode="rgb_array_list")
    env.reset(seed=1)
    intro = env.render()
    env.step([0.9, 0.3, 0.0])
    shot = env.render()
    assert len(shot) > len(intro) > 0
    assert {picture.shape for picture in (*intro, *shot)} == {(480, 640, 3)}
    assert env.metadata["render_fps"] == pytest.approx(30)
    env.close()
    now = gymnasium.make("openfield.gym:openfield/Birds-v0", trial=trial, render_mode="rgb_array")
    now.reset(seed=1)
    before = now.render()
    now.step([0.9, 0.3, 0.0])
    assert (now.render() != before).any()
    now.close()


def test_many_environments_play_in_processes_of_their_own():
    settings = {"before": 2, "after": 0, "observe": "thumbnail"}
    envs = gymnasium.make_vec("openfield.gym:openfield/Birds-v0", num_envs=2, settings=settings)
    try:
        assert len({process.pid for process in envs.processes} - {os.getpid()}) == 2
        seen, _ = envs.reset()
        assert seen.shape == (2, 84, 84, 3)
        assert (seen[0] != seen[1]).any(), "each has levels of its own"
        envs.action_space.seed(1)
        seen, rewards, *_ = envs.step(envs.action_space.sample())
        assert (seen.shape, rewards.shape) == ((2, 84, 84, 3), (2,))
        first, again = (envs.reset(seed=5)[0] for _ in range(2))
        assert (first == again).all()
    finally:
        envs.close()
    with pytest.raises(InvalidInput, match="record nothing"):
        gymnasium.make_vec("openfield.gym:openfield/Birds-v0", num_envs=2, journal="run.sqlite")
