"""The arena of the original: its map, its enemies, its numbers, and what protocol 0.8 says of them."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest

from openfield.core import Reply
from openfield.domains.doom import ARENA
from openfield.domains.doom.agents.reference import ReferenceAgent
from openfield.domains.doom.maps.arena import MAPS, lay_out
from openfield.domains.doom.options import DoomServeOptions
from openfield.domains.doom.settings import ArenaSettings
from openfield.domains.doom.wire.experiments import list_groups, make_experiment_trials, number_trials
from openfield.domains.doom.wire.ini import ServerConfig
from openfield.domains.doom.world import DoomWorld
from openfield.runner.experiment import ServedTrials
from support.doom.worlds import open_world, play, play_trial, still

PUBLISHED = MAPS["published"]


def test_the_published_map_has_the_published_rooms() -> None:
    walls = PUBLISHED.walls()
    assert len(walls) == 36
    lengths = sorted(max(wall.x2 - wall.x1, wall.y2 - wall.y1) for wall in walls)
    assert lengths == [64] * 8 + [128] * 8 + [256] * 16 + [640] * 4
    inside = [(0, 0), (310, 310), (0, 350), (63, 350), (319, 511), (-319, 385), (450, 0), (0, -450), (-350, 0)]
    assert all(PUBLISHED.fits(x, y, 0) for x, y in inside)
    outside = [(65, 350), (-65, 330), (330, 330), (500, 500), (400, 330), (-321, 450), (200, 350), (350, -100)]
    assert not any(PUBLISHED.fits(x, y, 0) or PUBLISHED.fits_square(x, y, 1) for x, y in outside)


def test_nothing_stands_in_a_door_of_the_published_map() -> None:
    for seed in range(100):
        layout = lay_out(ArenaSettings(map="published"), random.Random(seed))
        assert all(PUBLISHED.fits(*at, 16) for at, _ in (layout.player, *layout.enemies))
        for (_, here), door in itertools.product(layout.items, PUBLISHED.doors):
            assert (here[0] - door[0]) ** 2 + (here[1] - door[1]) ** 2 >= 100**2
        assert layout.player[1] == 90
        assert {angle for _, angle in layout.enemies} == {0}


@pytest.mark.engine
def test_the_engine_has_the_walls_of_the_published_map() -> None:
    """Someone who walks at random is in all rooms, and never where a body does not fit."""
    world = open_world(ARENA, map="published", episodes=12, limit=600, enemy_damage=(0, 0), traps=(0, 0))
    rng, rooms = random.Random(3), set()
    way = itertools.chain.from_iterable(
        [rng.choice(("forward", "left", "right", "backward"))] * 9 for _ in range(10**5)
    )
    for turn in play(world, lambda turn: Reply(None if turn.last else next(way))):
        for body in (turn.observation["player"], *turn.observation["enemies"]):
            x, y = body["x_position"], body["y_position"]
            assert PUBLISHED.fits_square(x, y, 15.9), (x, y)
            rooms.add((x > 330) - (x < -330) + 3 * ((y > 330) - (y < -330)))
        if turn.first:
            assert len(turn.observation["walls"]) == 36
            assert turn.observation["player"]["angle"] == 90
    assert rooms == {-3, -1, 0, 1, 3}


@pytest.mark.engine
def test_an_enemy_has_ten_six_and_two_health_before_it_falls() -> None:
    seen: dict[int, list[float]] = {}
    world = open_world(ARENA, episodes=6, limit=600, enemy_damage=(0, 0))
    histories = []
    for turn in play(world, ReferenceAgent(ARENA.spec(world.trial), 0)):
        if turn.first:
            histories += seen.values()
            seen = {}
        for enemy in turn.observation["enemies"]:
            known = seen.setdefault(enemy["id"], [])
            if not known or known[-1] != enemy["health"]:
                known.append(enemy["health"])
    assert max(histories, key=len) == [10, 6, 2]
    assert all(history == [10, 6, 2][: len(history)] for history in histories)


def hits_per_thousand(novelty: str) -> float:
    """Return how often a player who does nothing is hit in a thousand ticks, with two draws of episodes."""
    hits = ticks = 0.0
    for seed in (1, 2):
        values = {"training": 0, "episodes": 31, "before": 1, "limit": 2000, "map": "published"}
        values |= {"traps": (0, 0), "health_packs": (0, 0)}
        world = DoomWorld(ARENA, ARENA.trials(1, seed, novelty, unchanged=0, **values)[0])
        health = 0.0
        for turn in play(world, still):
            if world.truth.novel or novelty == "none":
                now = turn.observation["player"]["health"]
                ticks += not turn.first
                hits += 0 if turn.first else (health - now) / 5
                health = now
    return 1000 * hits / ticks


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.parametrize(("novelty", "rate"), [("none", 9.6), ("103", 42.0)])
def test_enemies_hit_as_often_as_in_the_original(novelty: str, rate: float) -> None:
    assert hits_per_thousand(novelty) == pytest.approx(rate, rel=0.2)


@pytest.mark.engine
@pytest.mark.slow
def test_the_reference_agent_finds_its_way_through_the_doors() -> None:
    world = open_world(ARENA, map="published", episodes=12, limit=2000)
    agent = ReferenceAgent(ARENA.spec(world.trial), 3)
    scores = [world.truth.performance or 0.0 for turn in play(world, agent) if turn.last]
    assert sum(scores) / len(scores) >= 0.6


@pytest.mark.engine
def test_a_pack_holds_as_many_bullets_as_its_episode_says() -> None:
    """The episodes of one trial share their engine, and packs of 52 hold 15."""
    gains: dict[bool, set[float]] = {False: set(), True: set()}
    values = {"training": 0, "episodes": 8, "before": 4, "limit": 500, "player_ammo": 0, "enemy_damage": (0, 0)}
    trial = ARENA.trials(1, 3, "52:easy", unchanged=0, **values, ammo_packs=(4, 4))[0]
    world = DoomWorld(ARENA, trial)
    before: dict[str, Any] = {}
    for turn in play(world, ReferenceAgent(ARENA.spec(trial), 0)):
        if not turn.first and len(turn.observation["items"]["ammo"]) < len(before["items"]["ammo"]):
            gains[bool(world.truth.novel)].add(turn.observation["player"]["ammo"] - before["player"]["ammo"])
        before = turn.observation
    assert 10 in gains[False]
    assert 15 in gains[True]
    assert 10 not in gains[True]


@pytest.mark.engine
def test_a_short_demonstration_is_scored_as_a_long_one() -> None:
    config = ServerConfig(trials=1, novelty=(200,), testing_episodes=1, training_episodes=0, shortdemo=True)
    trial = make_experiment_trials(config, 1)[0]
    _, turns, _ = play_trial(ARENA, trial, still)
    assert len(turns) == 201
    assert turns[-1].feedback == {"performance": 0.9}


def test_experiments_of_the_wire_are_on_the_published_map_with_all_its_numbers() -> None:
    config = ServerConfig(
        trials=2, novelty=(51, 201), difficulty=("hard",), novelty_visibility=(0, 1), hint_level=(0, 3)
    )
    training, *tests = make_experiment_trials(config, 4)
    assert {trial.domain for trial in (training, *tests)} == {"doom-arena"}
    assert {trial.settings["map"] for trial in tests} == {"published"}
    named = ["+".join(trial.phases[-1].novelty) for trial in tests]
    assert [name[:3].rstrip(":") for name in named[::2]] == [str(group.novelty) for group in list_groups(config)]
    assert list(number_trials(tests).values()) == [0, 1] * (len(tests) // 2)


@pytest.mark.parametrize(("chosen", "where"), [({}, "published"), ({"map": "own"}, None)])
def test_a_server_without_a_file_is_on_the_published_map_unless_told(
    chosen: dict[str, str], where: str | None, tmp_path: Path
) -> None:
    told = ServedTrials(settings=chosen, novelty="203:easy")
    trials, _ = told.make(ARENA, DoomServeOptions().prepare(), tmp_path / "run.sqlite", 5)
    assert {trial.settings.get("map") for trial in trials} == {where}


def test_the_trials_of_a_command_are_one_group() -> None:
    """Otherwise their numbers would tell in which of them nothing changes."""
    tests = ARENA.trials(3, 1, "203:easy", training=0, unchanged=2)
    assert list(number_trials(tests).values()) == [0, 1, 2, 3, 4]


def test_time_stamps_begin_with_the_clock_or_with_a_fixed_moment() -> None:
    config = ServerConfig(trials=1, novelty=(200,), training_episodes=0)
    assert {trial.settings.get("epoch") for trial in make_experiment_trials(config, 1)} == {None}
    assert {trial.settings["epoch"] for trial in make_experiment_trials(config, 1, epoch=7e8)} == {7e8}
