"""Worlds on the real engine: formats, endings, determinism, agents."""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PIL import Image

import openfield as of
from openfield.cli import run_command
from openfield.core import Reply, Turn
from openfield.domains.doom import ARENA, DUEL
from openfield.domains.doom.agents.reference import ReferenceAgent
from openfield.domains.doom.agents.watchful import WatchfulAgent
from openfield.domains.doom.domain import DoomDomain
from openfield.domains.doom.engine import engine as engines
from openfield.domains.doom.maps import duel
from openfield.domains.doom.settings import DuelSettings
from openfield.domains.doom.world import DoomWorld
from openfield.errors import AgentProtocol
from openfield.journal.reader import Run
from openfield.record import ENCODER
from openfield.report.film import EpisodeReplay
from support.doom import specification
from support.doom.worlds import SHORT, TASKS, chance, open_world, play, trace


@pytest.mark.engine
@TASKS
@pytest.mark.parametrize("agent", [chance, None], ids=["random", "reference"])
def test_every_vector_fits_the_specification(domain: DoomDomain, agent: Any) -> None:
    spec, world = specification.read(domain.task.name), open_world(domain, limit=120)
    player = agent(domain) if agent else ReferenceAgent(domain.spec(world.trial), 1)
    for turn in play(world, player):
        assert specification.faults(spec, turn.observation, turn.first) == []
        if not turn.first:
            assert 0 <= turn.feedback["performance"] <= 1


@pytest.mark.engine
def test_projectiles_are_seen() -> None:
    spec, world = specification.read("duel"), open_world(DUEL, "bolts:hard", before=1, limit=80)
    turns = list(play(world, lambda turn: Reply("nothing")))
    thrown = [turn for turn in turns if turn.observation["projectiles"]]
    assert thrown
    assert all(specification.faults(spec, turn.observation, turn.first) == [] for turn in turns)


@pytest.mark.engine
def test_there_are_never_more_ids_than_projectiles_may_have() -> None:
    """One who is thrown at for a whole episode meets two hundred; no two that are seen at once have the same id."""
    spec, world = specification.read("duel"), open_world(DUEL, "bolts:hard", limit=2000, bolt_damage=0)
    turns = [turn for turn in play(world, lambda turn: Reply("nothing")) if turn.observation["projectiles"]]
    ids = [[bolt["id"] for bolt in turn.observation["projectiles"]] for turn in turns]
    assert len(turns) > 1000
    assert all(len(set(seen)) == len(seen) for seen in ids)
    assert all(specification.faults(spec, turn.observation, turn.first) == [] for turn in turns)


@pytest.mark.engine
def test_time_stamps_are_ticks_from_the_epoch() -> None:
    turns = list(play(open_world(DUEL, limit=10), lambda turn: Reply("nothing")))
    stamps = [turn.observation["time_stamp"] for turn in turns[:11]]
    assert stamps == [pytest.approx(1_600_000_000 + number / 30) for number in range(11)]


@pytest.mark.engine
@TASKS
def test_the_same_trial_shows_the_same_turns(domain: DoomDomain) -> None:
    first = trace(domain, open_world(domain, limit=40))
    engines.close_idle_engines()
    assert trace(domain, open_world(domain, limit=40)) == first
    assert trace(domain, open_world(domain, limit=40)) == first  # on the engine that rested


@pytest.mark.parametrize(
    "words",
    [
        *(
            "enemies=11,11",
            "enemies=0,0",
            "enemies=4,2",
            "traps=-3,-1",
            "traps=300,300",
            "enemy_damage=10,5",
            "blink=5,1",
        ),
        *("enemy_damage=-5,-5", "goal=1,2,-5", "goal=900,0,5", "epoch=nan", "epoch=inf", "tick=inf", "tick=nan"),
        *(
            f"{name}=3000000000"
            for name in (
                *("toll", "toll_period", "wall_harm", "drain", "drain_period", "hide_distance", "sentry_after"),
                *("respawn_distance", "training", "episodes", "before", "buckets"),
            )
        ),
        *(f"{name}={value}" for name in ("fog", "respawn", "share") for value in ("inf", "nan", "1e300")),
        "goal=0,0,512",
        *("stride=32", "enemy_stride=40", "wind=32"),  # through walls
    ],
)
def test_settings_nobody_can_play_are_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    path = tmp_path / "run.sqlite"
    assert run_command(["run", "doom-arena", "--agent", "random", "--set", words, "-o", str(path)]) == 2
    assert words.partition("=")[0] in capsys.readouterr().err
    assert not path.exists()


@pytest.mark.parametrize(
    ("words", "novelty"),
    [
        ("enemy_radius=64", "crowd:hard"),
        ("enemy_radius=60", "crowd:hard"),
        ("enemy_radius=64 enemies=4", "none"),
        *((f"{name}=3000000000", "none") for name in ("enemy_pause", "enemy_damage", "bolt_damage")),
        *(("stride=32", "none"), ("enemy_stride=10", "slim:hard"), ("player_health=101", "none")),
    ],
)
def test_a_duel_nobody_can_play_is_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, novelty: str
) -> None:
    path = tmp_path / "run.sqlite"
    settings = [part for word in words.split() for part in ("--set", word)]
    assert run_command(["run", "doom", "--agent", "random", "--novelty", novelty, *settings, "-o", str(path)]) == 2
    assert words.partition("=")[0] in capsys.readouterr().err
    assert not path.exists()


@pytest.mark.parametrize(("enemies", "radius"), [(4, 52), (3, 64), (1, 64), (4, 20)])
def test_enemies_of_a_duel_stand_clear_of_each_other_and_of_walls(enemies: int, radius: int) -> None:
    settings = DuelSettings(enemies=enemies, enemy_radius=radius)
    duel.check_room(settings)
    for seed in range(50):
        places = [at for at, _ in duel.lay_out(settings, random.Random(seed)).enemies]
        heights = sorted(y for _, y in places)
        assert all(later - earlier > 2 * radius for earlier, later in itertools.pairwise(heights))
        assert duel.ROOM.bottom + radius < heights[0] <= heights[-1] < duel.ROOM.top - radius
        assert all(x + radius < duel.ROOM.right for x, _ in places)


@pytest.mark.engine
def test_order_does_not_matter() -> None:
    """An episode shows the same whatever was played before it."""
    seed = {"episode_seed": 7, "limit": 30}
    one = trace(DUEL, open_world(DUEL, **seed))
    half = len(one) // 2
    stamps = [ENCODER.encode(turn.observation["enemy"]) for turn in play(open_world(DUEL, **seed), _still)]
    assert stamps[:half] == stamps[half:]


def _still(turn: Turn) -> Reply:
    return Reply("nothing")


@pytest.mark.engine
def test_unknown_actions_are_named() -> None:
    world = open_world(DUEL)
    world.reset()
    for wrong in ("turn_left", "fly", None, 3, {"act": "left"}):
        with pytest.raises(AgentProtocol, match="unknown action"):
            world.step(Reply(wrong))
    assert world.step(Reply({"action": "left"})).observation["player"]["y_position"]
    world.close()


@pytest.mark.engine
@pytest.mark.parametrize("counts", [True, False])
def test_giving_up_scores_nothing(counts: bool) -> None:
    world = open_world(ARENA, death_counts=counts)
    world.reset()
    turn = world.step(Reply("give_up"))
    assert (turn.last, turn.feedback, world.truth.detail) == (
        "terminated",
        {"performance": 0.0},
        {"won": False, "ticks": 0} | ({} if counts else {"score": 0.0}),
    )
    world.close()


@pytest.mark.engine
@pytest.mark.parametrize(("counts", "told"), [({"death_counts": False}, 0.9), ({}, 0.0)])
def test_dying_never_pays_whatever_agents_are_told(counts: dict[str, Any], told: float) -> None:
    world = open_world(DUEL, "poison:hard", before=1, player_health=1, limit=100, **counts)
    ends = []
    for turn in play(world, _still):
        if turn.last:
            ends.append((world.truth, turn.last, turn.feedback["performance"]))
    truth, last, said = ends[1]
    assert (truth.novel, last, truth.performance, truth.detail["won"]) == (True, "terminated", 0.0, False)
    assert said == pytest.approx(told, abs=0.06)
    assert truth.detail.get("score") == (said if counts else None)


@pytest.mark.engine
@TASKS
def test_agents_may_change_what_they_are_shown(domain: DoomDomain) -> None:
    def spoil(thing: Any) -> None:
        for inner in thing.values() if isinstance(thing, dict) else thing:
            if isinstance(inner, dict | list):
                spoil(inner)
        thing.clear()

    expected, turns = trace(domain, open_world(domain, limit=10)), []
    for turn in play(open_world(domain, limit=10), chance(domain)):
        turns.append(ENCODER.encode(turn))
        spoil(turn.observation)
    assert turns == expected


@pytest.mark.parametrize("novelty", ["buckets:hard", "fog:hard"])
def test_a_fallen_enemy_is_seen_as_a_standing_one(novelty: str) -> None:
    world = open_world(DUEL, novelty, limit=200)
    turns = [
        (turn, world.truth.novel)
        for turn in play(
            world, lambda _: Reply(world._reference.choose(world._episode.state))
        )  # whom nothing is hidden from
    ]
    (before, _), (end, novel) = turns[-2:]
    assert (novel, end.last, end.observation["enemy"]["health"]) == (True, "terminated", 0)
    if novelty == "buckets:hard":
        assert end.observation["enemy"]["x_position"] == before.observation["enemy"]["x_position"]
    seen = [end.observation[one][f"{axis}_position"] for axis in "xy" for one in ("player", "enemy")]
    assert math.hypot(seen[0] - seen[1], seen[2] - seen[3]) <= 100 or novelty == "buckets:hard"


@pytest.mark.engine
def test_labels_only_in_training() -> None:
    training, test = DUEL.trials(1, novelty="none", **{**SHORT, "training": 1}, unchanged=0)
    labelled = [turn for turn in play(DoomWorld(DUEL, training), _still) if turn.last is None]
    assert all(turn.feedback["label"]["action"] in DUEL.task.actions for turn in labelled)
    assert all("label" not in (turn.feedback or {}) for turn in play(DoomWorld(DUEL, test), _still))


@pytest.mark.engine
def test_the_indicator() -> None:
    """The duel tells it of the episode, the arena from the onset on; without leave neither tells anything."""
    for domain, after in ((DUEL, False), (ARENA, True)):
        world = open_world(domain, domain.novelties[0].id, True, episodes=20, share=0.5, limit=1)
        lights = [(world.truth.novel, turn.red_light) for turn in play(world, _still)]
        assert lights[0] == (False, False)
        assert {light for novel, light in lights if novel} == {True}
        assert lights[-1][0] or lights[-1][1] is after
    assert {turn.red_light for turn in play(open_world(DUEL, "mirrored", limit=1), _still)} == {None}


@pytest.mark.engine
def test_hints() -> None:
    world = open_world(ARENA, "106:easy", hint_level=3, limit=1)
    firsts = [turn.observation["hint"] for turn in play(world, _still) if turn.first]
    assert firsts[0] == [dict.fromkeys(("level", "entity", "attribute", "change"))]
    assert [hint["entity"] for hint in firsts[1]] == ["enemy", "player", "ammo", "health", "trap"]


def test_without_hints_every_episode_starts_alike() -> None:
    for novelty in ("106:easy", "203:hard"):
        firsts = [turn.observation["hint"] for turn in play(open_world(ARENA, novelty, limit=1), _still) if turn.first]
        assert firsts == [[dict.fromkeys(("level", "entity", "attribute", "change"))]] * 2


@pytest.mark.engine
@pytest.mark.parametrize(("domain", "least"), [(DUEL, 0.9), (ARENA, 0.8)], ids=["duel", "arena"])
def test_the_reference_agent_is_good(domain: DoomDomain, least: float) -> None:
    world = open_world(domain, episodes=12, limit=2000)
    agent = ReferenceAgent(domain.spec(world.trial), 3)
    scores = [world.truth.performance for turn in play(world, agent) if turn.last]
    assert sum(filter(None, scores)) / len(scores) >= least


@pytest.mark.engine
def test_the_watchful_agent_notices() -> None:
    training, test = DUEL.trials(1, novelty="moving:hard", training=5, episodes=8, before=4, unchanged=0)
    agent = WatchfulAgent(DUEL.spec(training), 0)
    for _ in play(DoomWorld(DUEL, training), agent):
        pass
    world, beliefs = DoomWorld(DUEL, test), []

    def noting(turn: Turn) -> Reply:
        reply = agent(turn)
        if turn.last:
            beliefs.append((world.truth.novel, DUEL.detected(reply.belief)))
        return reply

    list(play(world, noting))
    assert beliefs.count((False, True)) <= 1
    assert (True, True) in beliefs


@pytest.mark.engine
@pytest.mark.parametrize("novelty", ["none", "205:hard", "201:easy"])
def test_the_watchful_agent_is_not_alarmed_by_chance(novelty: str) -> None:
    """Five episodes do not show everything that is normal in the arena."""
    training, test = ARENA.trials(1, 6, novelty, training=5, episodes=10, limit=400, unchanged=0)
    agent, levels = WatchfulAgent(ARENA.spec(training), 0), []
    for _ in play(DoomWorld(ARENA, training), agent):
        pass

    def noting(turn: Turn) -> Reply:
        reply = agent(turn)
        levels.extend([reply.belief.level] if reply.belief else [])
        return reply

    list(play(DoomWorld(ARENA, test), noting))
    assert levels[:3] == [0] * 3
    assert any(levels[3:]) is (novelty != "none")


@pytest.mark.engine
@TASKS
def test_a_recorded_episode_becomes_a_film(domain: DoomDomain, tmp_path: Path) -> None:
    run, film = tmp_path / "run.sqlite", tmp_path / "episode.gif"
    of.run({"still": _still}, domain.trials(1, novelty="none", **{**SHORT, "limit": 21}, unchanged=0), run, workers=0)
    with Run(run) as opened:
        cell = opened.cells()[0].id
    assert run_command(["show", str(run), "--cell", cell, "--episode", "1", "--gif", str(film)]) == 0
    with Image.open(film) as pictures:
        assert pictures.size == (320, 240)
        assert getattr(pictures, "n_frames", 1) > 1


@pytest.mark.engine
@TASKS
def test_a_late_episode_is_filmed_without_playing_the_earlier_ones(domain: DoomDomain, tmp_path: Path) -> None:
    settings = {**SHORT, "limit": 21, "light_stays": True}
    trials = domain.trials(1, novelty=domain.default_novelty, red_light=True, **settings, unchanged=0)
    of.run({"still": _still}, trials, tmp_path / "run.sqlite", workers=0)
    with Run(tmp_path / "run.sqlite") as run:
        cell = run.cells()[0]
        last, replayed = len(cell.episodes) - 1, list[int]()
        pictures = list(EpisodeReplay(run, cell, last).pictures(replayed.append))
        first = sum(each.turns for each in cell.episodes[:last])
        assert replayed[0] == first
        assert [picture.turn for picture in pictures] == list(range(first, first + cell.episodes[last].turns - 1, 2))
        unknown = [msgspec.structs.replace(each, detail=None) for each in cell.episodes]
        list(EpisodeReplay(run, msgspec.structs.replace(cell, episodes=tuple(unknown)), last).pictures(replayed.append))
    assert replayed.count(0) == 1  # what is not known of the earlier ones is played


@pytest.mark.engine
@TASKS
def test_workers_and_their_number_do_not_matter(domain: DoomDomain, tmp_path: Path) -> None:
    trials = domain.trials(3, novelty=domain.default_novelty, **{**SHORT, "limit": 40}, unchanged=0)

    def played(workers: int, order: int) -> dict[str, list[tuple[Any, bytes]]]:
        path = tmp_path / f"{workers}.sqlite"
        of.run({"chance": "random", "expert": "reference"}, trials[::order], path, workers=workers)
        with Run(path) as opened:
            cells = opened.cells()
            assert [cell.outcome for cell in cells] == ["done"] * 6
            return {
                cell.id: [(step.reply and step.reply.action, bytes(step.turn)) for step in opened.raw_steps(cell.id, 1)]
                for cell in cells
            }

    assert played(0, 1) == played(2, -1)
