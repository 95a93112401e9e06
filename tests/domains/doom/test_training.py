"""What people who train on Doom need: endless episodes, many environments at once, frame skip, buffers, buttons."""

from __future__ import annotations

import itertools
from typing import Any

import gymnasium
import numpy as np
import pytest

import openfield as of
import openfield.gym
from openfield.core import Reply
from openfield.domains.doom import ARENA, DUEL, trials
from openfield.domains.doom.domain import DoomDomain
from openfield.domains.doom.engine import engine as engines
from openfield.domains.doom.engine.engine import Engine
from openfield.domains.doom.trials import FIRST_PART, TrialScript
from openfield.errors import AgentProtocol, InvalidInput
from openfield.registry import find_agent
from support.doom.worlds import TASKS, chance, open_world, play, still, trace

pytestmark = pytest.mark.engine

NAMES = pytest.mark.parametrize("name", ["DoomDuel", "DoomArena"])


def make(name: str, **options: Any) -> Any:
    return gymnasium.make(f"openfield/{name}-v0", disable_env_checker=True, **options)


def first_places(env: Any, count: int, seed: int | None) -> list[bytes]:
    """Return the first observations of some episodes, each of which is left after a step."""
    shown = [env.reset(seed=seed)[0].tobytes()]
    for _ in range(count - 1):
        env.step(0)
        shown.append(env.reset()[0].tobytes())
    return shown


@NAMES
def test_an_environment_draws_new_episodes_for_ever(name: str) -> None:
    env = make(name)
    shown = first_places(env, 4, 5)
    assert len(set(shown)) == 4
    assert first_places(env, 4, 5) == shown
    assert first_places(env, 4, None)[1:] != shown[1:]
    trial = env.unwrapped._trial
    env.close()
    assert not any(phase.novelty for phase in trial.phases)
    assert sum(phase.episodes for phase in trial.phases) >= 10_000


@NAMES
def test_every_reset_draws_another_episode_as_many_environments_at_once_do(name: str) -> None:
    env, envs = make(name), gymnasium.make_vec(f"openfield/{name}-v0", 1, vectorization_mode="vector_entry_point")
    seeds = (5, None, None, 5, None)
    shown = [env.reset(seed=seed)[0].tobytes() for seed in seeds]
    assert shown == [envs.reset(seed=seed)[0].tobytes() for seed in seeds]
    env.close()
    envs.close()
    assert (len(set(shown)), shown[:2]) == (3, shown[3:])


@NAMES
def test_a_reset_amid_an_episode_goes_on_to_the_next_on_the_same_engine(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As wrappers that limit the length of episodes call it. An engine takes a quarter of a second to start."""
    taken: list[Any] = []
    take = engines.take_engine
    monkeypatch.setattr(engines, "take_engine", lambda *given: taken.append(given) or take(*given))
    settings = {"limit": 9, "enemy_damage": (0, 0) if name == "DoomArena" else 0}
    idle = 0 if name == "DoomArena" else 5
    whole = make(name, settings=settings)
    shown = [whole.reset(seed=5)[0]]
    for _ in range(2):
        while not any(whole.step(idle)[2:4]):
            pass
        shown.append(whole.reset()[0])
    after = whole.step(idle)[0]
    whole.close()
    left = make(name, settings=settings)
    places = [left.reset(seed=5)[0]]
    for _ in range(2):
        left.step(idle)
        places.append(left.reset()[0])
    assert all(np.array_equal(*each) for each in zip(shown, places, strict=True))
    assert np.array_equal(left.step(idle)[0], after)
    assert [bool(left.step(idle)[3]) for _ in range(8)] == [False] * 7 + [True]
    left.close()
    assert len(taken) == 2  # one of each environment
    envs = gymnasium.make_vec(f"openfield/{name}-v0", 1, vectorization_mode="vector_entry_point", settings=settings)
    assert np.array_equal(envs.reset(seed=5)[0][0], shown[0])
    envs.step(np.array([idle]))
    assert np.array_equal(envs.reset()[0][0], shown[1])
    envs.close()
    assert len(taken) == 3


@pytest.mark.parametrize("mode", [None, "sync", "vector_entry_point"])
def test_settings_of_ones_own_are_an_argument_of_every_kind_of_environment(mode: Any) -> None:
    given: Any = {"settings": {"limit": 12, "frame_skip": 4, "enemy_pause": 2000}}
    name = "openfield/DoomDuel-v0"
    env: Any = gymnasium.make_vec(name, 2, vectorization_mode=mode, **given) if mode else make("DoomDuel", **given)
    env.reset(seed=4)
    nothing = np.array([5, 5]) if mode else 5
    assert [bool(np.all(env.step(nothing)[3])) for _ in range(3)] == [False, False, True]
    env.close()


def test_a_trial_has_its_own_settings() -> None:
    trial = DUEL.trials(1, novelty="none", training=0, observation="array", unchanged=0)[0]
    with pytest.raises(InvalidInput, match="give 'trial' or 'settings', not both"):
        make("DoomDuel", trial=trial, settings={"limit": 12})


def test_a_long_trial_is_made_as_it_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    env = make("DoomArena")
    env.reset(seed=1)
    script = env.unwrapped._rollout.world._script
    env.close()
    assert len(script) >= 10_000
    assert len(script._layouts) == FIRST_PART
    settings = {"episodes": 9, "limit": 15, "before": 4}
    whole = trace(ARENA, open_world(ARENA, "201:easy", **settings))
    monkeypatch.setattr(trials, "FIRST_PART", 2)
    monkeypatch.setattr(trials, "MAX_PART", 3)
    script = TrialScript(ARENA, open_world(ARENA, **settings).trial)
    assert [script.part(number) for number in (0, 1, 2, 4, 5, 8)] == [
        *(range(2), range(2), range(2, 5), range(2, 5), range(5, 8), range(8, 9))
    ]
    assert trace(ARENA, open_world(ARENA, "201:easy", **settings)) == whole


@NAMES
@pytest.mark.parametrize("threads", [1, 2])
def test_many_environments_at_once_show_what_single_ones_show(name: str, threads: int) -> None:
    options = {"vectorization_mode": "vector_entry_point", "threads": threads}
    envs = gymnasium.make_vec(f"openfield/{name}-v0", num_envs=3, settings={"limit": 12, "episodes": 2}, **options)
    domain: DoomDomain = DUEL if name == "DoomDuel" else ARENA
    values = {**domain.gym_settings, "limit": 12, "episodes": 2}
    trial = domain.trials(1, novelty="none", unchanged=0, **values)[0]
    singles = [make(name, trial=trial) for _ in range(3)]
    seen, _ = envs.reset(seed=7)
    alone = [env.reset(seed=7 + number) for number, env in enumerate(singles)]
    assert np.array_equal(seen, [observation for observation, _ in alone])
    ended = [False] * 3
    for number in range(26):
        actions = np.array([number % 5, (number + 1) % 5, 5])
        seen, rewards, terminated, truncated, _ = envs.step(actions)
        for each, env in enumerate(singles):
            if ended[each]:
                shown = env.reset()[0], 0.0, False, False
                if number == 25:  # the trial is over, and the environments at once draw another one
                    continue
            else:
                shown = env.step(actions[each])[:4]
            assert np.array_equal(seen[each], shown[0]), (number, each)
            assert (rewards[each], terminated[each], truncated[each]) == shown[1:]
            ended[each] = shown[2] or shown[3]
    envs.close()
    for env in singles:
        env.close()


def test_many_environments_at_once_refuse_what_they_cannot_do() -> None:
    options: dict[str, Any] = {"num_envs": 2, "vectorization_mode": "vector_entry_point"}
    with pytest.raises(InvalidInput, match=r"journal.*sync"):
        gymnasium.make_vec("openfield/DoomDuel-v0", journal="run.sqlite", **options)
    with pytest.raises(InvalidInput, match="observation=array"):
        gymnasium.make_vec("openfield/DoomDuel-v0", settings={"observation": "features"}, **options)
    envs = gymnasium.make_vec("openfield/DoomDuel-v0", **options)
    with pytest.raises(gymnasium.error.ResetNeeded):
        envs.step(np.array([0, 0]))
    envs.close()


@TASKS
def test_an_action_lasts_as_many_ticks_as_the_settings_say(domain: DoomDomain) -> None:
    usual = list(play(open_world(domain, limit=40, episodes=1), still))
    skipped = list(play(open_world(domain, limit=40, episodes=1, frame_skip=4), still))
    shown = [turn.observation["player"] for turn in usual[::4]]
    assert [turn.observation["player"] for turn in skipped] == shown
    assert [turn.observation["time_stamp"] for turn in skipped] == [
        turn.observation["time_stamp"] for turn in usual[::4]
    ]


def test_skipped_frames_are_skipped_within_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless a novelty needs a command in every tick. A turn is made once."""
    calls: list[int] = []
    act = Engine.act

    def noting(engine: Engine, action: Any, commands: Any = (), ticks: int = 1) -> Any:
        calls.append(ticks)
        return act(engine, action, commands, ticks)

    monkeypatch.setattr(Engine, "act", noting)
    settings = {"limit": 16, "episodes": 1, "frame_skip": 4, "enemy_damage": (0, 0)}
    for action, ticks in (("left", [4]), ("turn_left", [1, 3])):
        world = open_world(ARENA, **settings)
        before = world.reset().observation["player"]["angle"]
        calls.clear()
        after = world.step(Reply(action)).observation["player"]["angle"]
        assert calls == ticks
        assert (after - before) % 360 == (45 if action == "turn_left" else 0)
        world.close()
    calls.clear()
    list(play(open_world(ARENA, toll=1, toll_period=2, **settings), still))
    assert set(calls) == {1}


@pytest.mark.parametrize("observation", ["pixels", "array"])
def test_depth_labels_and_automap_are_seen(observation: str) -> None:
    settings = {"observation": observation, "use_image": True, "image_size": "160x120", "limit": 4, "give_up": False}
    world = open_world(ARENA, buffers=("depth", "labels", "automap"), episodes=1, **settings)
    space, turns = ARENA.spec(world.trial).observations, list(play(world, still))
    assert space is not None
    assert all(space.contains(turn.observation) for turn in turns)
    seen = turns[1].observation
    assert {name: seen[name].shape for name in ("image", "depth", "labels", "automap")} == {
        "image": (120, 160, 3),
        "depth": (120, 160),
        "labels": (120, 160),
        "automap": (120, 160, 3),
    }
    assert len(np.unique(seen["depth"])) > 5


def test_several_buttons_at_once() -> None:
    world = open_world(ARENA, buttons=True, episodes=1, limit=20, enemy_damage=(0, 0))
    first = world.reset().observation["player"]
    space = ARENA.spec(world.trial).actions
    assert space is not None
    assert isinstance(of.gym.environment.to_gym(space), gymnasium.spaces.MultiBinary)
    assert space.contains([1, 0, 0, 0, 1, 0, 0])
    second = world.step(Reply([1, 0, 0, 0, 1, 0, 0])).observation["player"]
    assert (
        second["ammo"] == first["ammo"] - 1 or world.step(Reply([0] * 7)).observation["player"]["ammo"] < first["ammo"]
    )
    for wrong in ([1], [2] * 7, "left", None):
        with pytest.raises(AgentProtocol, match="turn_right"):
            world.step(Reply(wrong))
    world.close()


@TASKS
def test_arrays_can_be_normalised(domain: DoomDomain) -> None:
    plain = [turn.observation for turn in play(open_world(domain, observation="array", limit=30), chance(domain))]
    world = open_world(domain, observation="array", limit=30, normalised=True)
    space = domain.spec(world.trial).observations
    assert space is not None
    for usual, turn in zip(plain, play(world, chance(domain)), strict=True):
        assert space.contains(turn.observation)
        assert np.abs(turn.observation).max() <= 1.0
        assert turn.observation[1] == pytest.approx(usual[1] / 512)


def test_the_random_agent_does_not_give_up() -> None:
    trial = ARENA.trials(1, novelty="none", training=0, unchanged=0)[0]
    agent = find_agent("random", ARENA)(ARENA.spec(trial), 0)
    drawn = {agent(turn).action for turn in itertools.repeat(of.Turn(first=True), 300)}
    assert drawn == set(ARENA.task.actions) - {"give_up"}
