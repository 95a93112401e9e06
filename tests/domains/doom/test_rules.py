"""The arena's novelties by the numbers of their descriptions, as an agent sees them."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from openfield.domains.doom import ARENA
from openfield.domains.doom.engine.game_state import Entity, GameState
from openfield.domains.doom.engine.state_reader import StateReader
from openfield.domains.doom.maps.arena import lay_out
from openfield.domains.doom.rules import ArenaRules
from openfield.settings import make_settings
from support.doom.worlds import play_novelty, play_trial, still

pytestmark = pytest.mark.engine

Vector = dict[str, Any]
PEACE = {"enemy_damage": (0, 0)}


@pytest.mark.parametrize(
    ("novelty", "kind", "least", "most"),
    [
        ("101", "health", 10, 20),
        ("201:easy", "trap", 10, 15),
        ("201:medium", "trap", 20, 25),
        ("201:hard", "trap", 30, 35),
    ],
)
def test_there_are_as_many_things_as_described(novelty: str, kind: str, least: int, most: int) -> None:
    trial = ARENA.trials(1, 0, novelty, training=0, episodes=9, before=1, limit=1, unchanged=0)[0]
    _, turns, onset = play_trial(ARENA, trial, still)
    counts = [len(turn.observation["items"][kind]) for turn in turns[onset:] if turn.first]
    assert len(counts) == 8
    assert all(least <= count <= most for count in counts)
    assert len(set(counts)) > 1


@pytest.mark.parametrize(("novelty", "stride"), [("102", 32.0), ("206:easy", 16.0)])
def test_enemies_go_as_far_as_described(novelty: str, stride: float) -> None:
    steps = {round(math.dist(at(old), at(new)), 1) for old, new in enemies(vectors(novelty))}
    assert max(steps) == stride


@pytest.mark.parametrize(
    ("novelty", "taken"),
    [
        ("202:easy", {14, 15, 16, 17}),
        ("202:medium", {19, 20, 21}),
        ("202:hard", {24, 25, 26}),
    ],
)
def test_bullets_take_as_much_as_described(novelty: str, taken: set[int]) -> None:
    """Of one enemy: two may hit in the same tick."""
    losses: set[int] = set()
    for seed in range(4):
        seen = vectors(novelty, seed, limit=300, traps=(0, 0), health_packs=(0, 0), enemies=(1, 1))
        health = [vector["player"]["health"] for vector in seen]
        losses |= {before - after for before, after in itertools.pairwise(health) if before > after > 0}
    assert losses
    assert losses <= taken


def to_player(vector: Vector) -> float:
    return statistics.mean(math.dist(at(enemy), at(vector["player"])) for enemy in vector["enemies"])


def apart(vector: Vector) -> float:
    places = [at(enemy) for enemy in vector["enemies"]]
    centre = [statistics.mean(axis) for axis in zip(*places, strict=True)]
    return statistics.mean(math.dist(place, centre) for place in places)


def from_cover(distance: float) -> Callable[[Vector], float]:
    """How far enemies are from where they would hide: so far behind their nearest pillar."""

    def gap(enemy: Vector, vector: Vector) -> float:
        pillar = min(map(at, vector["items"]["obstacle"]), key=lambda each: math.dist(each, at(enemy)))
        x, y = at(vector["player"])
        behind = distance / math.dist(pillar, (x, y))
        return math.dist(at(enemy), (pillar[0] + behind * (pillar[0] - x), pillar[1] + behind * (pillar[1] - y)))

    return lambda vector: statistics.mean(gap(enemy, vector) for enemy in vector["enemies"])


@pytest.mark.parametrize(
    ("novelty", "measure", "way"),
    [
        ("103", to_player, -1),
        ("105", apart, 1),
        ("107:easy", from_cover(256), -1),
        ("107:medium", from_cover(128), -1),
        ("107:hard", from_cover(64), -1),
    ],
)
def test_enemies_go_where_it_is_described(novelty: str, measure: Callable[[Vector], float], way: int) -> None:
    runs = [vectors(novelty, seed, limit=150, enemies=(3, 3), **PEACE) for seed in range(3)]
    changes = [way * (measure(seen[-1]) - measure(seen[0])) for seen in runs]
    assert min(changes) > 0
    assert statistics.mean(changes) > 100


@pytest.mark.parametrize(("novelty", "settings"), [("105", {"enemies": (1, 1)}), ("107:easy", {"obstacles": (0, 0)})])
def test_whoever_has_nowhere_to_go_goes_anywhere(novelty: str, settings: dict[str, Any]) -> None:
    """The last enemy has nobody to keep away from, and without pillars there is nothing to hide behind."""
    seen = vectors(novelty, limit=60, **PEACE, **settings)
    looks = [{vector["enemies"][number]["angle"] for vector in seen} for number in range(len(seen[0]["enemies"]))]
    assert all(len(angles) > 4 for angles in looks)


def test_whoever_appears_has_yet_to_walk_to_the_goal() -> None:
    """Else an enemy would win because it was shot, or by its return."""
    settings = make_settings(ARENA.settings, {"goal": (0, 0, 128), "blink": (300, 400), "respawn": 1.2})
    layout = lay_out(settings, random.Random(0))
    rules = ArenaRules(settings, layout, StateReader(), random.Random(0))
    enemy, far = Entity(1, 350.0, 0.0, 0.0, 0.0), Entity(0, -470.0, -470.0, 0.0, 0.0)
    state = GameState(far, 1.0, [enemy], {"obstacle": []}, [])
    spots = [spot for _ in range(100) for spot in (rules._spot(enemy, state), rules._far_spot(state)) if spot]
    assert len(spots) > 150
    assert min(math.dist(spot, (0, 0)) for spot in spots) > 128 + 100


@pytest.mark.parametrize(("grade", "growth", "distance"), [("easy", 3.5, 64), ("medium", 2.5, 128), ("hard", 1.2, 256)])
def test_the_dead_return_later_each_time_and_bring_bullets(grade: str, growth: float, distance: float) -> None:
    seen = vectors(f"208:{grade}", None, limit=600, enemies=(4, 4), player_ammo=100, ammo_packs=(0, 0), **PEACE)
    counts = [len(vector["enemies"]) for vector in seen]
    died = [tick for tick in range(1, len(counts)) if counts[tick] < counts[tick - 1]]
    back = [tick for tick in range(1, len(counts)) if counts[tick] > counts[tick - 1]]
    assert [back[number] - died[number] - 1 for number in range(2)] == [5, int(5 * growth)]
    for tick in back[:2]:
        known = {enemy["id"] for enemy in seen[tick - 1]["enemies"]}
        (new,) = [enemy for enemy in seen[tick]["enemies"] if enemy["id"] not in known]
        assert math.dist(at(new), at(seen[tick]["player"])) > distance - 32  # both may have taken a step since
        assert seen[tick + 1]["player"]["ammo"] - seen[tick]["player"]["ammo"] in (2, 3)  # one may be fired


def vectors(novelty: str, seed: int | None = 0, **settings: Any) -> list[Vector]:
    """What is seen of a novelty's episode by who stands still, or, without a seed, by the reference agent."""
    turns = (
        play_novelty(novelty, None, 0, **settings) if seed is None else play_novelty(novelty, still, seed, **settings)
    )
    return [turn.observation for turn in turns]


def enemies(seen: list[Vector]) -> Iterator[tuple[Vector, Vector]]:
    """Every enemy at every tick, before and after it."""
    for before, after in itertools.pairwise(seen):
        known = {enemy["id"]: enemy for enemy in before["enemies"]}
        yield from ((known[enemy["id"]], enemy) for enemy in after["enemies"] if enemy["id"] in known)


def at(body: Vector) -> tuple[float, float]:
    return body["x_position"], body["y_position"]
