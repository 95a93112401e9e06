from __future__ import annotations

import random
from typing import Any

import pytest

import openfield as of
from openfield.core import Reply
from openfield.record import ENCODER
from openfield.registry import find_domain


def play(trial: of.Trial, max_turns: int = 400) -> tuple[list[bytes], int]:
    """Return what random play shows, and how many environments it made."""
    domain: Any = find_domain(trial_source(trial))
    make, made = domain.make_env, 0

    def count(settings: Any, drawing: bool) -> Any:
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


def test_a_changed_world_gets_an_environment_of_its_own() -> None:
    (trial,) = of.trials("gym:CartPole-v1", 1, novelty="gravity=20", unchanged=0, before=3, after=3, onset=3)
    assert play(trial)[1] == 2


def test_wrappers_may_keep_anything_so_their_environment_is_not_used_again() -> None:
    wrapper = "gymnasium.wrappers:NormalizeReward"
    (trial,) = of.trials(
        "gym:CartPole-v1", 1, novelty="none", unchanged=0, before=3, after=0, wrappers=(wrapper,), reuse=True
    )
    assert play(trial)[1] == 3
