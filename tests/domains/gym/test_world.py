from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces as gs
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

import openfield as of
from openfield.core import Reply
from openfield.domains.gym.settings import GymSettings
from openfield.domains.gym.transforms import can_break_more, can_mirror, can_permute, is_picture_space, permute, rest
from openfield.domains.gym.world import ActionEffects, ObservationEffects, RewardEffects
from openfield.record import ENCODER
from openfield.registry import find_domain


def play(trial: of.Trial, max_turns: int = 400) -> tuple[list[bytes], int]:
    """Return what random play shows, and how many environments it made."""
    domain: Any = find_domain(trial_source(trial))
    make, made = domain.make_env, 0

    def count(settings: Any, drawing: bool = False) -> Any:
        nonlocal made
        made += 1
        return make(settings, drawing)

    domain.make_env = count
    try:
        world, rng = domain.world(trial), random.Random(1)
        actions, turn = domain.spec(trial).actions, world.reset()
        shown = [ENCODER.encode((turn, world.truth))]
        while len(shown) < max_turns and not (turn.last and world.over):
            turn = world.step(Reply(None if turn.last else actions.sample(rng)))
            shown.append(ENCODER.encode((turn, world.truth)))
        world.close()
    finally:
        del domain.make_env
    return shown, made


def trial_source(trial: of.Trial) -> str:
    return SOURCES[trial.domain]


SOURCES = {
    f"gym-{each.rpartition(':')[2].replace('/', '-')}": f"gym:{each}"
    for each in (
        "CartPole-v1",
        "Acrobot-v1",
        "MountainCar-v0",
        "MountainCarContinuous-v0",
        "Pendulum-v1",
        "ALE/Breakout-v5",
        "FrozenLake-v1",
        "Taxi-v4",
        "Blackjack-v1",
        "CliffWalking-v1",
        "MiniGrid-DoorKey-5x5-v0",
        "MiniGrid-Dynamic-Obstacles-6x6-v0",
    )
}


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES.values())
def test_an_environment_that_is_used_again_shows_what_fresh_ones_show(source: str) -> None:
    settings = {"novelty": "none", "unchanged": 0, "before": 4, "after": 0, "max_steps": 30, "return": (0, 1)}
    (reusing,) = of.trials(source, 1, **settings)
    (fresh,) = of.trials(source, 1, reuse=False, **settings)
    assert (reusing.settings["reuse"], fresh.settings["reuse"]) == (True, False)
    (one, few), (other, many) = play(reusing), play(fresh)
    assert one == other
    assert len(one) > 8
    assert (few, many) == (1, 4)


@pytest.mark.parametrize(
    ("source", "novelty"),
    [
        ("gym:CartPole-v1", "length=2 over 3"),  # another attribute follows from it
        ("gym:CartPole-v1", "length=2+masspole=1 over 9 turns"),
        ("gym:CartPole-v1", "gravity=20 every 2 for 1+actions-permuted"),
        ("gym:CartPole-v1", "length*=3 with probability 0.5"),
        ("gym:CartPole-v1", "kinematics_integrator=semi-implicit every 2"),  # no number
        ("gym:Acrobot-v1", "LINK_MASS_1=3 as sine(period=4)"),
        ("gym:Pendulum-v1", "g=3 as walk(sigma=1, low=1, high=20) in turns"),
    ],
)
def test_an_environment_that_follows_a_change_shows_what_fresh_ones_show(source: str, novelty: str) -> None:
    settings = {"novelty": novelty, "unchanged": 0, "before": 2, "after": 7, "onset": 2, "max_steps": 20}
    (reusing,) = of.trials(source, 1, **settings, **{"return": (0, 1)})
    (fresh,) = of.trials(source, 1, reuse=False, **settings, **{"return": (0, 1)})
    (one, few), (other, many) = play(reusing), play(fresh)
    assert one == other
    assert few < many


def test_a_changed_world_gets_an_environment_of_its_own() -> None:
    (trial,) = of.trials("gym:CartPole-v1", 1, novelty="gravity=20", unchanged=0, before=3, after=3, onset=3)
    assert play(trial)[1] == 2


@pytest.mark.parametrize(
    "novelty",
    [
        "gravity=20",
        "gravity=20 over 3",
        "gravity=20 over 9 turns",
        "make.sutton_barto_reward=true for 2",
        "gymnasium.wrappers:NormalizeReward for 2",
        "actions-permuted then none then gravity=20",
        "gravity=20 over 3+length*=2",
        "gravity=20 with probability 0.5+length=2 over 4+length*=2 over 9 turns",
        "make.sutton_barto_reward=true for 2+actions-permuted every 3+gravity=20 over 3",
    ],
)
def test_what_is_made_when_does_not_reveal_whether_the_world_changes(novelty: str) -> None:
    """In a fresh worker, too, which knows nothing of the changed environment yet: making one takes time."""
    onset = "1-2,4-5,6-7" if " then " in novelty else "1-5"
    settings = {"training": 1, "before": 3, "after": 6, "max_steps": 5, "onset": onset}
    trials = of.trials("gym:CartPole-v1", 3, novelty=novelty, unchanged=2, **settings)
    assert len({trial.is_changed for trial in trials}) == 2
    assert len({tuple(list_makings(trial)) for trial in trials}) == 1


def list_makings(trial: of.Trial) -> list[int]:
    """Return how many episodes were over whenever an environment was made, in a process that has made none before."""
    domain: Any = find_domain("gym:CartPole-v1")
    make, made, over = domain.make_env, list[int](), 0
    known = {name: getattr(domain, name).copy() for name in ("_probes", "_values", "_defaults")}

    def note(settings: Any, drawing: bool = False) -> Any:
        made.append(over)
        return make(settings, drawing)

    domain.make_env = note
    for name in known:
        getattr(domain, name).clear()
    try:
        world = domain.world(trial)
        turn = world.reset()
        while not (turn.last and world.over):
            over += turn.last is not None
            turn = world.step(Reply(None if turn.last else 0))
        world.close()
    finally:
        del domain.make_env
        for name, values in known.items():
            getattr(domain, name).update(values)
    return made


def test_a_gradual_change_of_an_argument_comes_after_changes_of_attributes() -> None:
    suggested = "gravity=20\\+make.masscart=2 over 3"
    with pytest.raises(of.errors.InvalidInput, match=f"Write it first: '{suggested}'"):
        of.trials(f"gym:{__file__}:Heavy", 1, novelty="make.masscart=2 over 3+gravity=20", allow_drift=True)


class Heavy(CartPoleEnv):
    """A cart of any mass."""

    def __init__(self, masscart: float = 1.0, render_mode: str | None = None) -> None:
        super().__init__(render_mode=render_mode)
        self.masscart = masscart


def test_wrappers_may_keep_anything_so_their_environment_is_not_used_again() -> None:
    wrapper = "gymnasium.wrappers:NormalizeReward"
    (trial,) = of.trials(
        "gym:CartPole-v1", 1, novelty="none", unchanged=0, before=3, after=0, wrappers=(wrapper,), reuse=True
    )
    assert play(trial)[1] == 3


def actions(space: gs.Space[Any], given: list[Any], **settings: Any) -> list[Any]:
    effects = ActionEffects(GymSettings(**settings), space, random.Random(1))
    return [effects.apply(action) for action in given]


def observations(space: gs.Space[Any], given: list[Any], **settings: Any) -> list[Any]:
    effects = ObservationEffects(GymSettings(**settings), space, random.Random(1))
    return [effects.apply(seen) for seen in given]


def rewards(given: list[float], **settings: Any) -> list[float]:
    effects = RewardEffects(GymSettings(**settings))
    return [effects.apply(reward, number == len(given) - 1) for number, reward in enumerate(given)]


def test_actions_are_permuted_delayed_sticky_and_dropped() -> None:
    four = gs.Discrete(4)
    assert actions(four, [0, 1, 2, 3], permute_actions=True) == [1, 2, 3, 0]
    assert actions(four, [3, 1, 2, 0], delay_actions=2) == [3, 3, 3, 1]
    assert actions(four, [3, 1, 2, 0], sticky_actions=1.0) == [3, 3, 3, 3]
    assert actions(gs.Discrete(4, start=5), [6, 7], drop_actions=1.0) == [5, 5]
    assert actions(four, [3, 1]) == [3, 1]


def test_observations_are_delayed_frozen_and_permuted() -> None:
    four = gs.Discrete(4)
    assert observations(four, [0, 1, 2, 3], delay_observations=1) == [0, 0, 1, 2]
    assert observations(four, [0, 1, 2, 3], freeze=1.0) == [0, 0, 0, 0]
    assert observations(four, [0, 3], permute_observations=True) == [1, 0]
    pair = gs.Tuple([four, gs.Box(-1, 1, (2,), np.float64)])
    (seen,) = observations(pair, [(3, np.array([0.5, -0.5]))], permute_observations=True)
    assert seen[0] == 0
    assert seen[1].tolist() == [-0.5, 0.5]


@pytest.mark.parametrize(
    "space",
    [
        gs.Box(np.array([-4.8, -np.inf], np.float32), np.array([4.8, np.inf], np.float32)),
        gs.Box(0, 255, (4, 4, 3), np.uint8),
        gs.Box(1, 3, (8,), np.int64),
    ],
    ids=str,
)
@pytest.mark.parametrize("change", [{"noise": 0.2}, {"mask": 0.5}, {"dead_sensors": 0.5}, {"noise": 0.2, "mask": 0.5}])
def test_noise_and_blanks_stay_in_bounds_and_change_something(space: gs.Box, change: dict[str, float]) -> None:
    space.seed(2)
    given = [space.sample() for _ in range(20)]
    shown = observations(space, given, **change)
    assert all(space.contains(each) for each in shown)
    assert any(not np.array_equal(one, other) for one, other in zip(given, shown, strict=True))


def test_noise_on_numbers_without_a_real_range_is_small() -> None:
    ends = np.finfo(np.float64)
    (seen,) = observations(gs.Box(ends.min, ends.max, (2,), np.float64), [np.ones(2)], noise=0.2)
    assert 0 < np.abs(seen - 1).max() < 2


def test_changed_parts_come_in_the_order_they_had() -> None:
    """Even an isolated agent sees the order of keys."""
    space = gs.Dict({"b": gs.Box(0, 1, (4,)), "a": gs.Discrete(3)})
    effects = ObservationEffects(GymSettings(noise=0.5), space, random.Random(1))
    for shown in ({"b": np.zeros(4), "a": 1, "more": 2}, {"a": 1, "more": 2, "b": np.zeros(4)}):
        assert list(effects.apply(shown)) == list(shown)


def test_the_same_sensors_are_blank_in_every_episode() -> None:
    space = gs.Box(-9, 9, (8,), np.float64)
    one, other = (observations(space, [np.full(8, value)], dead_sensors=0.25)[0] for value in (1.0, 2.0))
    assert (one == 0).sum() == 2
    assert np.array_equal(one == 0, other == 0)
    masked = observations(space, [np.ones(8)] * 9, mask=0.25)
    assert len({each.tobytes() for each in masked}) > 1


def test_rewards_are_scaled_and_delayed_and_all_of_them_are_paid() -> None:
    assert rewards([1.0, 0.0, 2.0], reward_factor=-1.0) == [-1.0, 0.0, -2.0]
    assert not np.signbit(rewards([0.0], reward_factor=-1.0)[0])
    assert rewards([1.0, 2.0, 3.0, 4.0], delay_rewards=2) == [0.0, 0.0, 1.0, 9.0]
    assert rewards([1.0, 2.0, 3.0], sparse_rewards=True, reward_factor=-1.0) == [0.0, 0.0, -6.0]
    assert not np.signbit(rewards([0.0, 0.0], sparse_rewards=True, reward_factor=-1.0)).any()


def test_a_permutation_moves_something_or_does_not_fit() -> None:
    assert not can_permute(gs.Discrete(1))
    assert not can_permute(gs.Box(0, 1, (1,)))
    assert permute(gs.MultiDiscrete([2, 5]), np.array([1, 4])).tolist() == [1, 1]
    assert actions(gs.Dict({"a": gs.Discrete(2)}), [{"a": 1}], permute_actions=True) == [{"a": 0}]
    assert can_permute(gs.Box(0, 255, (20, 20, 3), np.uint8))
    assert not can_permute(gs.Box(0, 255, (20, 20), np.uint8))


def test_actions_are_mirrored_where_they_have_opposites() -> None:
    assert actions(gs.Discrete(4, start=1), [1, 2, 4], mirror_actions=True) == [4, 3, 1]
    assert not can_mirror(gs.Discrete(2))  # that would be the permutation
    (turned,) = actions(
        gs.Box(np.array([-1, 0, -np.inf]), np.array([3, 1, np.inf]), dtype=np.float64),
        [np.zeros(3)],
        mirror_actions=True,
    )
    assert turned.tolist() == [2.0, 1.0, 0.0]
    assert not np.signbit(turned).any()
    assert actions(gs.MultiDiscrete([2, 5]), [np.array([0, 1])], mirror_actions=True)[0].tolist() == [1, 3]
    assert actions(gs.MultiBinary(2), [np.array([0, 1], np.int8)], mirror_actions=True)[0].tolist() == [1, 0]


def test_broken_actuators_rest_and_some_are_left() -> None:
    four = gs.Discrete(4)
    assert actions(four, [0, 1, 2, 3], broken_actuators=0.5).count(0) == 3
    assert actions(four, [0, 1, 2, 3], broken_actuators=0.25).count(0) == 2
    (moved,) = actions(gs.Box(-1, 1, (4,)), [np.ones(4, np.float32)], broken_actuators=1.0)
    assert sorted(moved.tolist()) == [0.0, 0.0, 0.0, 1.0]
    assert not can_break_more(gs.Discrete(2))


@pytest.mark.parametrize(
    ("shape", "axis"), [((20, 30), 1), ((20, 30, 3), 1), ((4, 20, 30), 2), ((4, 20, 30, 3), 2), ((20, 30, 1), 1)]
)
def test_pictures_are_mirrored_and_inverted(shape: tuple[int, ...], axis: int) -> None:
    space = gs.Box(0, 255, shape, np.uint8)
    space.seed(1)
    assert is_picture_space(space)
    picture = space.sample()
    (mirrored,) = observations(space, [picture], mirror_observations=True)
    assert np.array_equal(mirrored, np.flip(picture, axis))
    (inverted,) = observations(space, [picture], invert_observations=True)
    assert np.array_equal(inverted, 255 - picture)
    (dead,) = observations(space, [picture], dead_sensors=0.25)
    assert space.contains(dead)


def test_codes_are_no_pictures() -> None:
    codes = gs.Box(0, 255, (7, 7, 3), np.uint8)
    assert not is_picture_space(codes)
    assert not is_picture_space(gs.Box(0, 1, (64, 64)))
    (same,) = observations(codes, [np.ones((7, 7, 3), np.uint8)], mirror_observations=True, invert_observations=True)
    assert (same == 1).all()


@pytest.mark.parametrize(
    "space",
    [
        gs.Discrete(3, start=1),
        gs.Box(1, 2, (2,)),
        gs.MultiBinary(2),
        gs.MultiDiscrete([2], start=[4]),
        gs.Text(3, min_length=1),
    ],
    ids=str,
)
def test_the_action_that_stands_for_none_is_an_action(space: gs.Space[Any]) -> None:
    assert space.contains(rest(space))
    both = gs.Dict({"a": space, "b": gs.Tuple([space])})
    assert both.contains(rest(both))


def list_made(trial: of.Trial) -> list[int]:
    """Return the episodes for which an environment was made."""
    domain: Any = find_domain(trial_source(trial))
    make, made = domain.make_env, []
    world = domain.world(trial)

    def note(settings: Any, drawing: bool) -> Any:
        made.append(episode)
        return make(settings, drawing)

    domain.make_env, episode = note, 0
    try:
        rng, actions, turn = random.Random(1), domain.spec(trial).actions, world.reset()
        while not (turn.last and world.over):
            episode += turn.last is not None
            turn = world.step(Reply(None if turn.last else actions.sample(rng)))
        world.close()
    finally:
        del domain.make_env
    return made


@pytest.mark.parametrize("novelty", ["gravity=20", "gymnasium.wrappers:NormalizeReward"])
@pytest.mark.parametrize("onset", ["2-5", "2", "3"])
def test_environments_are_made_at_the_same_episodes_whether_the_world_changes_or_not(novelty: str, onset: str) -> None:
    """Otherwise the time that a first turn takes would tell an agent when its world changed."""
    trials = of.trials(
        "gym:CartPole-v1", 4, novelty=novelty, onset=onset, training=2, before=3, after=4, unchanged="all", max_steps=5
    )
    assert len({trial.is_changed for trial in trials}) == 2
    assert len({tuple(list_made(trial)) for trial in trials}) == 1


@pytest.mark.parametrize(
    ("novelty", "name"),
    [
        ("gravity=19.6 over 2 turns+length=2 over 400 turns", "length"),
        ("gravity=9.9 as walk(sigma=1, low=1, high=99) in turns", "gravity"),
    ],
)
def test_a_change_goes_on_within_an_episode_where_the_strength_stays_full(novelty: str, name: str) -> None:
    domain = of.registry.find_domain("gym:CartPole-v1")
    (trial,) = domain.trials(1, novelty=novelty, unchanged=0, before=1, after=2, onset=1)
    world: Any = domain.world(trial)
    turn, values, strengths = world.reset(), list[float](), list[float | None]()
    for number in range(60):
        if world.truth.novel and turn.last is None:
            values.append(getattr(world._env.unwrapped, name))
            strengths.append(world.truth.strength)
        turn = world.step(of.Reply(number % 2) if turn.last is None else of.Reply(None))
    world.close()
    full = [value for value, strength in zip(values, strengths, strict=True) if strength == 1.0]
    assert len(full) > 5
    assert len(set(full)) > len(full) / 2
