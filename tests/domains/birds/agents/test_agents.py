"""The agents that come with birds: what they read, try and learn."""

import msgspec
import pytest

import openfield as of
from openfield.domains.birds import DOMAIN
from openfield.domains.birds.agents import planner
from openfield.domains.birds.agents.observed_level import observe_level
from openfield.domains.birds.files.pool import LevelPool
from openfield.domains.birds.game.game import Game, replay
from openfield.domains.birds.game.ground_truth import ground_truth
from openfield.domains.birds.game.scene import see, zoomed_out
from openfield.registry import find_agent
from openfield.rollout import Rollout, drive
from support.birds.worlds import trial


@pytest.mark.parametrize("observe", ["features", "image"])
def test_agents_that_read_ground_truth_say_so_and_a_random_one_needs_none(tmp_path, observe):
    trials = DOMAIN.trials(1, before=1, after=0, observe=observe, unchanged=0)
    result = of.run({"random": "random", "naive": "naive"}, trials, tmp_path / "run.sqlite", workers=0)
    notes = {cell.agent: (cell.outcome, cell.note) for cell in result.cells}
    assert notes["random"] == ("done", "")
    assert "--set observe=objects" in notes["naive"][1]


@pytest.mark.parametrize("name", ["random", "naive", "planner", "detector", "fall-detector"])
def test_every_agent_plays_a_trial_and_says_what_it_believes(name):
    made = trial(novelty="sling", report_step=1)
    agent = find_agent(name, DOMAIN)(DOMAIN.spec(made), 3)
    assert drive(Rollout(DOMAIN.world(made)), agent) == "done"


@pytest.mark.parametrize(("bird", "tapped"), [("BirdRed", False), ("BirdYellow", True)])
def test_the_planner_tries_taps_in_its_head_where_the_bird_has_a_power(monkeypatch, bird, tapped):
    tried = []

    def imagined(level, shots, profile, tap):
        tried.append(tap)
        return replay(level, shots, profile, tap)

    monkeypatch.setattr(planner, "replay", imagined)
    pool = LevelPool()
    level = msgspec.structs.replace(pool.level(pool.names(0, "010101")[0]), birds=(bird,))
    sight = observe_level(ground_truth(see(Game(level), zoomed_out(level.camera))))
    planner.Planner(DOMAIN.spec(trial()), 1).choose(sight)
    assert 0.0 in tried
    moments = {tap for tap in tried if tap > 0}
    assert (len(moments) >= 3) is tapped
    assert bool(moments) is tapped


def test_the_planner_learns_which_way_birds_fall():
    (made,) = DOMAIN.trials(1, novelty="gravity", before=1, after=6, scenario="single", seed=4, unchanged=0)
    opened = DOMAIN.world(made)
    rollout, agent, passed = Rollout(opened), find_agent("planner", DOMAIN)(DOMAIN.spec(made), 1), []
    while not rollout.over:
        if rollout.turn.last:
            passed.append(opened.truth.performance)
        rollout.reply(agent(rollout.turn))
    assert passed[1] == 0.0, "the first flight is a surprise"
    assert sum(passed[2:]) >= 3
    heir = find_agent("planner", DOMAIN)(DOMAIN.spec(made), 2)
    heir.load(agent.save())
    assert heir.save() == agent.save()


def test_the_planner_is_better_than_the_naive_agent_and_that_one_than_chance():
    (made,) = DOMAIN.trials(1, novelty="none", before=12, after=0, unchanged=0)
    passed = {}
    for name in ("random", "naive", "planner"):
        opened = DOMAIN.world(made)
        rollout, agent = Rollout(opened), find_agent(name, DOMAIN)(DOMAIN.spec(made), 1)
        passed[name] = 0.0
        while not rollout.over:
            passed[name] += opened.truth.performance or 0.0 if rollout.turn.last else 0.0
            rollout.reply(agent(rollout.turn))
    assert passed["planner"] > passed["naive"] > passed["random"]
