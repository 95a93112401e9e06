"""Experiments against the published structure, written a second time: order, counts, composition, seeds, indicator."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfield.core import Reply
from openfield.domains.doom import ARENA, DUEL
from openfield.domains.doom.domain import DoomDomain
from openfield.domains.doom.trials import episode_seeds
from openfield.domains.doom.wire.experiments import make_experiment_trials
from openfield.domains.doom.wire.ini import ServerConfig
from openfield.domains.doom.world import DoomWorld
from openfield.errors import InvalidInput
from openfield.trial import Trial

NOVELTIES = [101, 106, 108, 200, 201, 203, 208]
UNGRADED = (101, 102, 103, 104, 105)


def some(values: list[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(st.sampled_from(values), min_size=1, unique=True).map(tuple)


configs = st.builds(
    ServerConfig,
    trials=st.integers(1, 3),
    novelty=some(NOVELTIES),
    difficulty=some(["easy", "medium", "hard"]),
    novelty_visibility=some([0, 1]),
    hint_level=some([-1, 0, 1, 2, 3]),
    testing_novelty_p2=st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.8, 1.0]),
    training_episodes=st.integers(0, 4),
    testing_episodes=st.integers(1, 12),
    pre_novel_episodes=st.integers(0, 14),
)


def count_of(config: ServerConfig) -> int:
    """The number of trials by the published formula."""
    hidden = len(config.novelty) if 0 in config.novelty_visibility else 0
    named = sum(novelty != 200 for novelty in config.novelty)
    shown = len(config.hint_level) * named + (200 in config.novelty) if 1 in config.novelty_visibility else 0
    return config.trials * len(config.difficulty) * (hidden + shown)


def order_of(config: ServerConfig) -> list[tuple[int, int, str, int]]:
    """Visibility, novelty, difficulty and hint of every trial, one after the other."""
    return [
        (visibility, novelty, difficulty, hint)
        for visibility in config.novelty_visibility
        for novelty in config.novelty
        for difficulty in config.difficulty
        for hint in ((-1,) if visibility == 0 or novelty == 200 else config.hint_level)
        for _ in range(config.trials)
    ]


def script_of(trial: Trial) -> list[tuple[str, ...]]:
    return [phase.novelty for phase in trial.phases for _ in range(phase.episodes)]


@settings(max_examples=60, deadline=None)
@given(configs, st.integers(0, 10**9))
def test_any_experiment_is_as_published(config: ServerConfig, seed: int) -> None:
    trials = make_experiment_trials(config, seed)
    training = [trial for trial in trials if trial.phases[0].name == "training"]
    tests = trials[len(training) :]
    assert [len(script_of(trial)) for trial in training] == [config.training_episodes] * bool(config.training_episodes)
    assert len(tests) == len(order_of(config)) == count_of(config)
    for trial, (visibility, novelty, difficulty, hint) in zip(tests, order_of(config), strict=True):
        name = () if novelty == 200 else (f"{novelty}" if novelty in UNGRADED else f"{novelty}:{difficulty}",)
        assert trial.red_light is (visibility == 1)
        assert trial.settings.get("hint_level", -1) == hint
        assert trial.after == (training[0].id if training else None)
        check_composition(config, script_of(trial), name)
    check_seeds(config, training, tests)
    assert make_experiment_trials(config, seed) == trials


def check_composition(config: ServerConfig, script: list[tuple[str, ...]], name: tuple[str, ...]) -> None:
    """Normal ones, then a novel one, then the rest in any order."""
    episodes, share = config.testing_episodes, config.testing_novelty_p2
    before = config.pre_novel_episodes or math.floor(0.3 * episodes)
    before = episodes // 2 if before >= episodes else before
    novel = math.floor((episodes - before) * share)
    if share > 0:
        novel = max(novel, 1)  # the first one after the onset is novel however small its share
    assert len(script) == episodes
    assert script[:before] == [()] * before
    if name:
        assert script.count(name) == novel
        assert not share or script[before] == name
    else:
        assert set(script) == {()}


def check_seeds(config: ServerConfig, training: list[Trial], tests: list[Trial]) -> None:
    """In their ranges; no two alike in a group; groups differ."""
    for trial in training:
        seeds = episode_seeds(trial, None)
        assert len(set(seeds)) == len(seeds)
        assert all(0 <= seed <= 42_949_672 for seed in seeds)
    groups = [tests[start : start + config.trials] for start in range(0, len(tests), config.trials)]
    drawn = [[seed for trial in group for seed in episode_seeds(trial, None)] for group in groups]
    for seeds in drawn:
        assert len(set(seeds)) == len(seeds)
        assert all(42_949_672 <= seed <= 4_294_967_295 for seed in seeds)
    assert all(one[0] != other[0] for one, other in itertools.combinations(drawn, 2))


def test_a_published_duel_keeps_the_published_formula() -> None:
    duel, arena = (
        make_experiment_trials(ServerConfig(trials=1, novelty=(51,), phase=phase), 0) for phase in ("1", "3")
    )
    assert {trial.settings.get("death_counts") for trial in duel} == {False}
    assert {ARENA.settings_of(trial).death_counts for trial in arena} == {True}  # there the formula is 0


@given(st.integers(0, 20), st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.integers(0, 1000))
def test_a_share_of_training_is_novel_by_any_of_the_configured_novelties(count: int, share: float, seed: int) -> None:
    config = ServerConfig(
        trials=1,
        training_episodes=count,
        training_novelty_p1=share,
        novelty=(200, 204, 101),
        difficulty=("easy", "hard"),
    )
    trials = make_experiment_trials(config, seed)
    if not count:
        assert all(phase.name == "test" for trial in trials for phase in trial.phases)
        return
    drawn = [phase.novelty for phase in trials[0].phases for _ in range(phase.episodes)]
    assert {phase.name for phase in trials[0].phases} == {"training"}
    assert len(drawn) == count
    assert sum(map(bool, drawn)) == math.floor(count * share)
    assert set(drawn) <= {(), ("204:easy",), ("204:hard",), ("101",)}


def test_without_a_novelty_none_can_be_drawn_for_training() -> None:
    with pytest.raises(InvalidInput, match=r"training_novelty_p1 is 0\.2, but the file names no novelty"):
        make_experiment_trials(ServerConfig(training_novelty_p1=0.2, novelty=(200,)), 0)


@pytest.mark.engine
def test_novel_training_has_no_labels() -> None:
    config = ServerConfig(
        trials=1, training_episodes=4, training_novelty_p1=0.5, novelty=(204,), testing_episodes=1, shortdemo=True
    )
    trial = make_experiment_trials(config, 0)[0]
    world, labelled = DoomWorld(ARENA, trial), []
    turn = world.reset()
    while True:
        labelled.append((world.truth.novel, "label" in (turn.feedback or {})))
        if world.over:
            break
        turn = world.step(Reply("give_up"))
        turn = world.step(Reply(None))
    world.close()
    assert sorted(labelled) == [(False, True), (False, True), (True, False), (True, False)]


def test_one_seed_for_every_episode_if_it_is_asked_for() -> None:
    for trial in make_experiment_trials(ServerConfig(trials=2, training_episodes=3, testing_episodes=4), 1, 77):
        assert set(episode_seeds(trial, trial.settings["episode_seed"])) == {77}


def indicators(domain: DoomDomain, trial: Trial) -> list[bool | None]:
    """What the light says in each episode, which are not played."""
    world, told = DoomWorld(domain, trial), []
    for number, phase in enumerate(world._script.phases):
        world._number, world._novel = number, bool(phase.novelty)
        world._onset_passed |= world._novel
        told.append(world._indicator())
    return told


def test_the_indicator_stays_from_the_onset_on_in_both_tasks() -> None:
    for domain, novelty, phase in ((DUEL, 51, "1"), (ARENA, 203, "3")):
        config = ServerConfig(trials=1, novelty=(novelty,), difficulty=("easy",), hint_level=(-1,), phase=phase)
        config = ServerConfig(**{**_fields(config), "testing_novelty_p2": 0.4, "testing_episodes": 10})
        hidden, shown = make_experiment_trials(config, 5)[1:]
        assert () in script_of(shown)[4:], "some are normal again"
        assert indicators(domain, hidden) == [None] * 10
        assert indicators(domain, shown) == [False] * 3 + [True] * 7


def _fields(config: ServerConfig) -> dict[str, Any]:
    return {name: getattr(config, name) for name in config.__struct_fields__}


def test_a_duel_of_ones_own_tells_it_of_each_episode() -> None:
    trial = DUEL.trials(1, 0, "slim:easy", red_light=True, training=0, episodes=10, share=0.4, unchanged=0)[0]
    assert indicators(DUEL, trial) == [bool(novelty) for novelty in script_of(trial)]
