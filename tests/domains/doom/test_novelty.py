"""Every novelty changes what is seen, and only from its onset on."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from openfield.core import Reply, Turn
from openfield.domains.doom import ARENA, DUEL
from openfield.domains.doom.agents.reference import ReferenceAgent
from openfield.domains.doom.domain import DoomDomain
from openfield.domains.doom.engine.game_state import Entity, GameState
from openfield.domains.doom.maps import scenario
from openfield.domains.doom.maps.arena import MAPS
from openfield.domains.doom.rules import ArenaRules
from openfield.novelty import Novelty
from openfield.trial import Trial
from support.doom.worlds import play_novelty, play_trial, still

pytestmark = pytest.mark.engine

HARDEST = {(domain.name, novelty.name): (domain, novelty) for domain in (DUEL, ARENA) for novelty in domain.novelties}


def without(trial: Trial) -> Trial:
    return msgspec.structs.replace(trial, phases=tuple(msgspec.structs.replace(p, novelty=()) for p in trial.phases))


@pytest.mark.parametrize(("domain", "novelty"), HARDEST.values(), ids=[f"{d}-{n}" for d, n in HARDEST])
def test_every_novelty_takes_effect(domain: DoomDomain, novelty: Novelty[Any]) -> None:
    for seed in range(4):
        settings = {"training": 0, "episodes": 3, "before": 1, "limit": 120}
        trial = domain.trials(1, seed, novelty.id, **settings, unchanged=0)[0]
        changed, _, onset = play_trial(domain, trial)
        normal, _, _ = play_trial(domain, without(trial))
        assert changed[:onset] == normal[:onset]
        if changed[onset:] != normal[onset:]:
            return
    raise AssertionError(f"{novelty.id} changes nothing that is seen")


def test_wind_blows_players_and_enemies_from_the_first_action_on() -> None:
    turns = play_novelty("106:hard", still, enemy_damage=(0, 0), limit=20)
    first, second, later = (turns[number].observation for number in (0, 1, 10))
    assert first["items"] == later["items"]
    assert first["player"]["x_position"] != second["player"]["x_position"]
    assert second["player"]["x_position"] == turns[2].observation["player"]["x_position"]


def onto(kind: str) -> Any:
    """Always walks straight at the nearest of a kind."""

    def choose(turn: Turn) -> Reply:
        player = turn.observation["player"]
        here = player["x_position"], player["y_position"]
        things = turn.observation["enemies"] if kind == "enemies" else turn.observation["items"][kind]
        near = min(things, key=lambda thing: distance(here, thing))
        way = math.degrees(math.atan2(near["y_position"] - here[1], near["x_position"] - here[0]))
        off = (way - player["angle"] + 180) % 360 - 180
        return Reply("forward" if abs(off) <= 22.6 else "turn_left" if off > 0 else "turn_right")

    return choose


@pytest.mark.parametrize("kind", ["obstacle", "enemies"])
@pytest.mark.parametrize("novelty", ["106:hard", "102"])
def test_nobody_walks_through_pillars_or_enemies(kind: str, novelty: str) -> None:
    """Neither by itself nor with the wind; what is touched is really walked at."""
    nearest = 1e9
    for turn in play_novelty(novelty, onto(kind), episodes=6, limit=200, enemy_damage=(0, 0)):
        player, seen = turn.observation["player"], turn.observation
        solid = [(body, 36) for body in seen["enemies"]] + [(body, 32) for body in seen["items"]["obstacle"]]
        for body, reach in solid:
            apart = max(abs(player[axis] - body[axis]) for axis in ("x_position", "y_position"))
            assert apart > reach - 0.001
            nearest = min(nearest, apart - reach)
    assert nearest < 16


def test_the_enemy_of_a_duel_stands_in_the_way() -> None:
    def charge(turn: Turn) -> Reply:
        off = turn.observation["enemy"]["y_position"] - turn.observation["player"]["y_position"]
        return Reply("forward" if abs(off) < 10 else "left" if off > 0 else "right")

    trial = DUEL.trials(1, 2, "none", training=0, episodes=3, limit=150, unchanged=0)[0]
    _, turns, _ = play_trial(DUEL, trial, charge)
    assert -44 < max(turn.observation["player"]["x_position"] for turn in turns) <= -36


def test_the_enemy_of_a_duel_turns_back_at_walls() -> None:
    trial = DUEL.trials(1, 0, "moving:hard", training=0, episodes=1, before=0, limit=150, enemy_damage=0, unchanged=0)[
        0
    ]
    _, turns, _ = play_trial(DUEL, trial, still)
    places = [turn.observation["enemy"]["y_position"] for turn in turns if turn.last is None]
    stays = sum(before == after for before, after in itertools.pairwise(places))
    assert stays < 0.1 * len(places), "it stands only where it fires, and for a tick at a wall"
    assert max(places) > 220, "there is one"


def test_the_toll() -> None:
    healths = [
        turn.observation["player"]["health"] for turn in play_novelty("206:hard", still, enemy_damage=(0, 0), limit=120)
    ]
    assert (healths[0], healths[60], healths[110]) == (200, 195, 190)


def test_touching_walls_or_pillars_hurts_at_every_side_and_corner() -> None:
    """A square that reaches 40 units from the player must be clear of them, as the engine measures what stands."""
    rules = ArenaRules.__new__(ArenaRules)
    rules._settings = msgspec.structs.replace(ARENA.settings(), wall_harm=5)
    rules._arena = MAPS["own"]
    rules._quiet, rules._calls, rules._killed_at, rules._count = False, {0: 20}, None, 0
    for x, y, hurt in [
        *((32, 32, True), (-32, 32, True), (55, 55, True), (0, 55, True), (57, 0, False), (57, 57, False)),
        *((473, 473, True), (471, 0, False), (471, 471, False), (249, 231, True), (231, 249, True), (247, 231, False)),
    ]:
        pillar = Entity(1, 0.0, 0.0, 0.0, 0.0)
        state = GameState(Entity(0, x, y, 0.0, 0.0, 100.0), 1.0, [], {"obstacle": [pillar]}, [])
        assert bool(rules.commands(state, 1)) is hurt, (x, y)


def test_the_corner_of_a_pillar_costs_health() -> None:
    """Whoever touches a pillar loses health in the next tick."""
    touched = 0
    for before, after in itertools.pairwise(
        play_novelty("204:easy", onto("obstacle"), episodes=4, enemy_damage=(0, 0))
    ):
        player, pillars = before.observation["player"], before.observation["items"]["obstacle"]
        apart = min(max(abs(player[axis] - body[axis]) for axis in ("x_position", "y_position")) for body in pillars)
        if apart < 56 and not after.first:
            touched += 1
            assert after.observation["player"]["health"] < player["health"]
    assert touched > 10


@pytest.mark.parametrize("seed", [0, 1, 3, 4])
def test_sentries_face_the_player(seed: int) -> None:
    """Each hears its own orders, also where the engine lists them in another order than the map."""
    turns = play_novelty("205:hard", still, seed, enemy_damage=(0, 0), limit=30)
    seen = turns[25].observation
    for enemy in seen["enemies"]:
        dx = seen["player"]["x_position"] - enemy["x_position"]
        dy = seen["player"]["y_position"] - enemy["y_position"]
        off = (math.degrees(math.atan2(dy, dx)) - enemy["angle"] + 180) % 360 - 180
        assert abs(off) <= 22.5
        assert enemy["x_position"] == turns[20].observation["enemies"][seen["enemies"].index(enemy)]["x_position"]


@pytest.mark.parametrize("seed", [5, 6, 8])
def test_an_enemy_that_is_hit_is_elsewhere_at_once(seed: int) -> None:
    """Every hit moves the enemy in the same tick by what the table says; nothing else does."""
    hits = 0
    for before, after in itertools.pairwise(play_novelty("203:easy", None, seed, limit=200)):
        known = {enemy["id"]: enemy for enemy in before.observation["enemies"]}
        for enemy in after.observation["enemies"]:
            old = known[enemy["id"]]
            away = math.dist(*((each["x_position"], each["y_position"]) for each in (old, enemy)))
            hit = enemy["health"] < old["health"]
            assert 299 <= away <= 417 if hit else away <= 17, enemy  # it may take a step as well
            hits += hit
    assert hits >= 3


def episodes(novelty: str, count: int, **settings: Any) -> list[list[Turn]]:
    """What is seen of several episodes of a novelty by somebody who stands still."""
    turns = play_novelty(novelty, still, episodes=count + 1, **settings)
    starts = [number for number, turn in enumerate(turns) if turn.first]
    return [turns[start:end] for start, end in zip(starts, [*starts[1:], len(turns)], strict=True)]


@pytest.mark.parametrize(
    ("grade", "goal", "reach"), [("easy", (0, 0), 16), ("medium", (64, 64), 64), ("hard", (-128, -128), 128)]
)
def test_enemies_reach_their_goal_and_win(grade: str, goal: tuple[int, int], reach: int) -> None:
    """Around walls, pillars and each other, and not before they have gone anywhere."""
    for turns in episodes(f"207:{grade}", 10, limit=400, enemy_damage=(0, 0)):
        apart = [min(distance(goal, enemy) for enemy in turn.observation["enemies"]) for turn in turns]
        if distance(goal, turns[0].observation["player"]) < reach + 36:
            continue  # the player may stand in their way
        assert turns[-1].last == "terminated"
        assert turns[-1].feedback == {"performance": 0.0}
        assert apart[0] > reach + 36
        assert apart[-1] <= reach < min(apart[:-1])


def steps_of(turns: list[Turn], kind: str) -> list[tuple[float, float]]:
    """How far enemies, or items of a kind, went along each axis in every tick."""
    made = []
    for before, after in itertools.pairwise(turns):
        seen = [
            turn.observation["enemies"] if kind == "enemies" else turn.observation["items"][kind]
            for turn in (before, after)
        ]
        known = {body["id"]: body for body in seen[0]}
        made += [
            (abs(body["x_position"] - old["x_position"]), abs(body["y_position"] - old["y_position"]))
            for body in seen[1]
            if (old := known.get(body["id"]))
        ]
    return made


def test_blocked_enemies_go_along_the_wall() -> None:
    """Their steps go all the way or, from a diagonal one, along an axis, or nowhere."""
    steps = [step for turns in episodes("102", 8, limit=150) for step in steps_of(turns, "enemies")]
    part = 32 * math.sqrt(0.5)
    whole = [(0.0, 0.0), (32.0, 0.0), (0.0, 32.0), (part, part), (part, 0.0), (0.0, part)]
    found = [min(range(6), key=lambda number: math.dist(whole[number], step)) for step in steps]
    assert max(math.dist(whole[number], step) for number, step in zip(found, steps, strict=True)) < 0.05
    assert set(found) == set(range(6))


def test_the_wind_does_not_slide_the_player_along_a_wall() -> None:
    held = 0
    for turns in episodes("106:hard", 8, limit=120, enemy_damage=(0, 0)):
        places = [
            (turn.observation["player"]["x_position"], turn.observation["player"]["y_position"]) for turn in turns
        ]
        steps = [(round(b[0] - a[0], 2), round(b[1] - a[1], 2)) for a, b in itertools.pairwise(places)]
        assert len({step for step in steps if step != (0, 0)}) <= 1, "all the way, or not at all"
        held += steps[-2:] == [(0, 0), (0, 0)]
    assert held > 4


@pytest.fixture
def heedless(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Enemies that do not mind who is in their line of fire."""
    content = scenario._content
    monkeypatch.setattr(scenario, "_content", lambda name: content(name).replace("push 1  set_result", ""))
    scenario._scripts.cache_clear()
    yield
    scenario._scripts.cache_clear()


def lost_health(novelty: str) -> tuple[float, float]:
    """What enemies and the player lose where nobody but enemies fires."""
    enemies = player = 0.0
    for turns in episodes(novelty, 6, limit=120, enemies=(4, 4)):
        for before, after in itertools.pairwise(turns):
            healths = [sum(enemy["health"] for enemy in turn.observation["enemies"]) for turn in (before, after)]
            enemies += healths[0] - healths[1]
            player += before.observation["player"]["health"] - after.observation["player"]["health"]
    return enemies, player


@pytest.mark.parametrize("novelty", ["102", "103", "205:hard"])
def test_enemies_do_not_fire_at_each_other(novelty: str) -> None:
    enemies, player = lost_health(novelty)
    assert enemies == 0
    assert player > 0


@pytest.mark.usefixtures("heedless")
@pytest.mark.parametrize("novelty", ["102", "103"])
def test_enemies_bullets_would_hurt_enemies(novelty: str) -> None:
    enemies, _ = lost_health(novelty)
    assert enemies > 0
    assert enemies % 2 == 0, "10 health behind armour: 4, 4 and 2"


def distance(here: tuple[float, float], there: dict[str, Any]) -> float:
    return math.dist(here, (there["x_position"], there["y_position"]))


def test_bullets_hurt_by_closeness() -> None:
    """Every hit takes 2500 by the distance of who fired, rounded down."""
    hits = 0
    for turns in episodes("104", 16, limit=200):
        for before, after in itertools.pairwise(turns):
            player = before.observation["player"]
            here = player["x_position"], player["y_position"]
            lost = player["health"] - after.observation["player"]["health"]
            if lost > 0 and after.last is None:
                each = [2500 // distance(here, enemy) for enemy in before.observation["enemies"]]
                assert lost in {sum(some) for size in range(1, 5) for some in itertools.combinations(each, size)}
                hits += 1
    assert hits > 20


@pytest.mark.parametrize(("grade", "start"), [("easy", 10), ("medium", 5), ("hard", 0)])
def test_sentries_do_not_move_once_they_are_on_guard(grade: str, start: int) -> None:
    moved = set()
    for turns in episodes(f"205:{grade}", 6, limit=30, enemy_damage=(0, 0)):
        for tick, (before, after) in enumerate(itertools.pairwise(turns)):
            places = [[distance((0, 0), enemy) for enemy in turn.observation["enemies"]] for turn in (before, after)]
            moved |= {tick} if places[0] != places[1] else set()
    assert moved == set(range(start))


@pytest.mark.parametrize(("period", "taken"), [(30, 1), (20, 2), (10, 3)])
def test_bullets_drain_after_the_first_kill(period: int, taken: int) -> None:
    """One period after it for the first time, and so on."""

    def shoot_one(turn: Turn) -> Reply:
        return expert(turn) if len(turn.observation["enemies"]) == 2 else Reply("nothing")

    values = {"training": 0, "episodes": 1, "limit": 400, "player_health": 200, "enemy_damage": (0, 0)}
    values |= {"enemies": (2, 2), "drain": taken, "drain_period": period, "ammo_packs": (0, 0), "player_ammo": 100}
    trial = ARENA.trials(1, 3, "none", **values, unchanged=0)[0]
    expert = ReferenceAgent(ARENA.spec(trial), 0)
    _, turns, _ = play_trial(ARENA, trial, shoot_one)
    kill = next(number for number, turn in enumerate(turns) if len(turn.observation["enemies"]) < 2)
    ammo = [turn.observation["player"]["ammo"] for turn in turns]
    drops = [number - kill - 1 for number in range(kill + 1, len(ammo)) if ammo[number] != ammo[number - 1]]
    assert drops[:3] == [period, 2 * period, 3 * period]
    assert ammo[kill] - ammo[kill + period + 1] == taken


def test_the_dead_return() -> None:
    turns = play_novelty("208:hard", None, limit=600)
    counts = [len(turn.observation["enemies"]) for turn in turns]
    assert any(later > earlier for earlier, later in itertools.pairwise(counts))


@pytest.mark.parametrize("grade", ["easy", "hard"])
def test_whoever_is_dead_does_not_count_though_it_would_return(grade: str) -> None:
    """No enemy left is a win in any difficulty, and nothing else is."""
    for seed in (5, 6):
        turns = play_novelty(f"208:{grade}", None, seed, limit=400)
        assert [bool(turn.observation["enemies"]) for turn in turns] == [turn.last is None for turn in turns]
        assert turns[-1].reward > 0


def test_whoever_finds_no_room_to_return_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    find = ArenaRules._far_spot

    def crowded(rules: ArenaRules, state: GameState) -> tuple[int, int] | None:
        pillar = state.items["obstacle"][0]
        told.append(len(state.enemies))
        return find(rules, state) if len(told) > 3 else (round(pillar.x), round(pillar.y))

    monkeypatch.setattr(ArenaRules, "_far_spot", crowded)
    turns = play_novelty("208:hard", None, 6, limit=400)
    returned = {enemy["id"] for turn in turns for enemy in turn.observation["enemies"]}
    returned -= {enemy["id"] for enemy in turns[0].observation["enemies"]}
    assert len(returned) == len(told) - 3


def test_items_are_taken_up() -> None:
    """Traps hurt by 25, packs of bullets and health help; none is seen again."""
    seen: dict[str, set[int]] = {"health": set(), "ammo": set(), "trap": set()}
    values = {"training": 0, "episodes": 12, "limit": 400, "enemy_damage": (0, 0), "player_ammo": 8}
    _, turns, _ = play_trial(ARENA, ARENA.trials(1, 0, "none", **values, unchanged=0)[0])
    for before, after in itertools.pairwise(turns):
        if after.first:
            continue
        for kind, changes in seen.items():
            gone = len(before.observation["items"][kind]) - len(after.observation["items"][kind])
            key = "ammo" if kind == "ammo" else "health"
            if gone == 1 and key in before.observation["player"]:
                changes.add(round(after.observation["player"][key] - before.observation["player"][key]))
    assert -25 in seen["trap"]
    assert 10 in seen["health"]
    assert 10 in seen["ammo"]
