"""Every novelty changes what is seen, and only from its onset on."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

pytest.importorskip("vizdoom", reason="pip install 'openfield[doom]'")

import itertools

from openfield.core import Reply, Turn
from openfield.domains.doom import ARENA, DUEL
from openfield.domains.doom.agents.experts import ReferenceAgent
from openfield.domains.doom.domain import DoomDomain
from openfield.domains.doom.rules import ArenaRules
from openfield.domains.doom.scene import Scene
from openfield.domains.doom.world import DoomWorld
from openfield.novelty import Novelty
from openfield.record import ENCODER
from openfield.trial import Trial

HARDEST = {(domain.name, novelty.name): (domain, novelty) for domain in (DUEL, ARENA) for novelty in domain.novelties}


def play(domain: DoomDomain, trial: Trial, agent: Any = None) -> tuple[list[bytes], list[Turn], int]:
    """All turns of a trial, and the number of the first novel one."""
    world, agent = DoomWorld(domain, trial), agent or ReferenceAgent(domain.spec(trial), 0)
    turns, onset, turn = [world.reset()], None, None
    while turn is None or not (turn.last and world.over):
        turn = turns[-1]
        if world.truth.novel and onset is None:
            onset = len(turns) - 1
        if not (turn.last and world.over):
            turns.append(world.step(agent(turn)))
            turn = turns[-1]
    world.close()
    return [ENCODER.encode(turn) for turn in turns], turns, len(turns) if onset is None else onset


def without(trial: Trial) -> Trial:
    return msgspec.structs.replace(trial, phases=tuple(msgspec.structs.replace(p, novelty=()) for p in trial.phases))


@pytest.mark.parametrize(("domain", "novelty"), HARDEST.values(), ids=[f"{d}-{n}" for d, n in HARDEST])
def test_every_novelty_takes_effect(domain: DoomDomain, novelty: Novelty[Any]) -> None:
    for seed in range(4):
        settings = {"training": 0, "episodes": 3, "before": 1, "limit": 120}
        trial = domain.trials(1, seed, novelty.id, **settings)[0]
        changed, _, onset = play(domain, trial)
        normal, _, _ = play(domain, without(trial))
        assert changed[:onset] == normal[:onset]
        if changed[onset:] != normal[onset:]:
            return
    raise AssertionError(f"{novelty.id} changes nothing that is seen")


def arena(novelty: str, agent: Any, seed: int = 1, **settings: Any) -> list[Turn]:
    """What is seen of a novelty's episode, by an agent that stands still unless told otherwise."""
    values = {"training": 0, "episodes": 2, "before": 1, "limit": 60, "player_health": 200, **settings}
    _, turns, onset = play(ARENA, ARENA.trials(1, seed, novelty, **values)[0], agent)
    return turns[onset:]


def still(turn: Turn) -> Reply:
    return Reply("nothing")


def test_wind_blows_everything_but_pillars() -> None:
    turns = arena("106:hard", still, enemy_damage=(0, 0), limit=20)
    first, later = turns[0].observation, turns[10].observation
    assert first["items"]["obstacle"] == later["items"]["obstacle"]
    assert first["items"]["trap"] != later["items"]["trap"]
    assert first["player"]["x_position"] != later["player"]["x_position"]


def test_the_toll() -> None:
    healths = [
        turn.observation["player"]["health"] for turn in arena("206:hard", still, enemy_damage=(0, 0), limit=120)
    ]
    assert (healths[0], healths[60], healths[110]) == (200, 195, 190)


@pytest.mark.parametrize("seed", [0, 1, 3, 4])
def test_sentries_face_the_player(seed: int) -> None:
    """Each hears its own orders, also where the engine lists them in another order than the map."""
    turns = arena("205:hard", still, seed, enemy_damage=(0, 0), limit=30)
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
    for before, after in itertools.pairwise(arena("203:easy", None, seed, limit=200)):
        known = {enemy["id"]: enemy for enemy in before.observation["enemies"]}
        for enemy in after.observation["enemies"]:
            old = known[enemy["id"]]
            away = math.dist(*((each["x_position"], each["y_position"]) for each in (old, enemy)))
            hit = enemy["health"] < old["health"]
            assert 299 <= away <= 417 if hit else away <= 17, enemy  # it may take a step as well
            hits += hit
    assert hits >= 3


def test_enemies_reach_their_goal_and_win() -> None:
    turns = arena("207:hard", still, limit=400)
    assert turns[-1].last == "terminated"
    assert turns[-1].feedback == {"performance": 0.0}


def test_the_dead_return() -> None:
    turns = arena("208:hard", None, limit=600)
    counts = [len(turn.observation["enemies"]) for turn in turns]
    assert any(later > earlier for earlier, later in itertools.pairwise(counts))


@pytest.mark.parametrize("grade", ["easy", "hard"])
def test_whoever_is_dead_does_not_count_though_it_would_return(grade: str) -> None:
    """No enemy left is a win in any difficulty, and nothing else is."""
    for seed in (5, 6):
        turns = arena(f"208:{grade}", None, seed, limit=400)
        assert [bool(turn.observation["enemies"]) for turn in turns] == [turn.last is None for turn in turns]
        assert turns[-1].reward > 0


def test_whoever_finds_no_room_to_return_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    find = ArenaRules._far_spot

    def crowded(rules: ArenaRules, scene: Scene) -> tuple[int, int] | None:
        pillar = scene.items["obstacle"][0]
        told.append(len(scene.enemies))
        return find(rules, scene) if len(told) > 3 else (round(pillar.x), round(pillar.y))

    monkeypatch.setattr(ArenaRules, "_far_spot", crowded)
    turns = arena("208:hard", None, 6, limit=400)
    returned = {enemy["id"] for turn in turns for enemy in turn.observation["enemies"]}
    returned -= {enemy["id"] for enemy in turns[0].observation["enemies"]}
    assert len(returned) == len(told) - 3


def test_items_are_taken_up() -> None:
    """Traps hurt by 25, packs of bullets and health help; none is seen again."""
    seen: dict[str, set[int]] = {"health": set(), "ammo": set(), "trap": set()}
    values = {"training": 0, "episodes": 12, "limit": 400, "enemy_damage": (0, 0)}
    _, turns, _ = play(ARENA, ARENA.trials(1, 0, "none", **values)[0])
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
