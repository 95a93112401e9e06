"""A trial as turns: what is asked when, what is booked, and what a record can do."""

import csv
import shutil
from importlib.resources import files

import pytest

import openfield as of
from openfield.core import Ask, Belief, Reply
from openfield.domains.birds import DOMAIN
from openfield.domains.birds.exports import write_logs
from openfield.domains.birds.game.level import Level, LevelObject
from openfield.domains.birds.harness import HarnessState
from openfield.domains.birds.level_in_play import LevelInPlay
from openfield.domains.birds.play_page import SlingPage
from openfield.domains.birds.settings import BirdsSettings
from openfield.domains.birds.wire.conversation import Conversation, WireCommand
from openfield.domains.birds.wire.messages import Request
from openfield.errors import InvalidInput
from openfield.journal.reader import Run
from openfield.journal.replay import resume_rollout
from openfield.rollout import Rollout
from support.birds.worlds import SMALL, begin, trial, world

MISS = {"x": 400, "y": 200}


def test_a_trial_announces_itself_its_set_and_each_level():
    opened = world()
    turn = opened.reset()
    begins = []
    while turn.ask is Ask.READY:
        begins.append(turn.observation["begins"])
        turn = opened.step(Reply())
    assert begins == ["trial", "test set", "level"]
    assert (turn.ask, turn.first, turn.phase) == (Ask.ACT, True, "test")
    turn = opened.step(Reply(MISS))
    assert (turn.ask, turn.last) == (Ask.NONE, "terminated")
    assert opened.truth.detail["status"] == "Fail"
    assert opened.truth.performance == 0.0
    assert opened.step(Reply()).observation == {
        "begins": "level",
        "level": 1,
        "available": [2, 3, 4],
        "scores": [0, 0, 0, 0],
        "selection": False,
    }


def test_novelty_is_in_the_truth_and_in_the_turn_only_where_it_is_granted():
    for red_light in (False, True):
        (made,) = DOMAIN.trials(1, novelty="storm", red_light=red_light, **SMALL, unchanged=0)
        opened = DOMAIN.world(made)
        rollout = Rollout(opened)
        lights, novel = [], []
        while not rollout.over:
            if rollout.turn.last:
                lights.append(rollout.turn.red_light)
                novel.append(opened.truth.novel)
            rollout.reply(Reply(MISS if rollout.turn.ask is Ask.ACT else None))
        assert novel == [False, False, True, True]
        assert lights == (novel if red_light else [None] * 4)


def test_a_level_left_for_another_is_booked_as_playing():
    opened = world(attempts=2)
    begin(opened)
    turn = opened.step(Reply({"do": "load", "level": 3}))
    assert (turn.ask, opened.result) == (Ask.ACT, 0), "a sequence gives no choice, and the level goes on"
    turn = opened.step(Reply({"do": "restart"}))
    assert (turn.last, opened.truth.detail["status"]) == ("truncated", "Playing")
    turn = opened.step(Reply())
    assert (turn.ask, turn.first, opened.result) == (Ask.ACT, True, 1)


def test_beliefs_are_asked_for_and_a_level_that_ended_meanwhile_is_booked_after():
    opened = world(report_step=2)
    begin(opened)
    turn = opened.step(Reply(MISS))
    assert turn.ask is Ask.BELIEF
    turn = opened.step(Reply(None, Belief(0.5)))
    assert (turn.ask, turn.last) == (Ask.NONE, "terminated")


def test_a_refused_shot_lets_time_pass_while_things_move():
    opened = world(novelty="none")
    begin(opened)
    opened.step(Reply({**MISS, "fast": True}))
    before = opened.in_play.game.seconds
    turn = opened.step(Reply(MISS))
    assert (opened.result, opened.in_play is None or opened.in_play.game.seconds > before) == (0, True), turn.ask


def test_a_shot_whose_level_ends_while_the_sling_is_pulled_is_refused_and_does_not_count():
    opened = world(novelty="none")
    begin(opened)
    game, before = opened.in_play.game, opened.harness.current.interactions
    for body in [body for body in game.bodies if body.kind == "pig"]:
        game.destroy(body)
    game.run(0.1)
    assert game.bird_ready, "the level ends a second after its last pig"
    turn = opened.step(Reply(MISS))
    assert (opened.result, game.state, turn.last) == (0, "won", "terminated")
    assert (opened.harness.current.interactions, len(game.queue)) == (before, len(game.level.birds))
    assert turn.feedback["score"] == 5000 * game.pigs_at_start + 10_000 * len(game.level.birds)


def test_time_is_the_agents_own_and_the_simulated(tmp_path):
    config = tmp_path / "config.xml"
    config.write_text(
        "<evaluation><trials><trial><game_level_set mode='training' time_limit='10'>"
        "<game_levels novelty_level='0' type='010101' start='0' end='3'/></game_level_set>"
        "</trial></trials></evaluation>"
    )
    (made,) = DOMAIN.trials(config=str(config), unchanged=0)
    opened = DOMAIN.world(made)
    begin(opened)
    spent = opened.harness.current.seconds
    assert 0.3 < spent < 2
    turn = opened.step(Reply({"do": "zoom", "way": "in"}, None, took=20.0))
    assert (turn.last, opened.over) == ("truncated", True), "no test follows, so the level is cut short"


def test_time_that_runs_out_between_levels_ends_the_trial_and_books_no_level(tmp_path):
    config = tmp_path / "config.xml"
    config.write_text(
        "<evaluation><trials><trial><game_level_set mode='training' time_limit='60' attempt_limit_per_level='1'>"
        "<game_levels novelty_level='0' type='010101' start='0' end='3'/></game_level_set>"
        "</trial></trials></evaluation>"
    )
    opened = DOMAIN.world(DOMAIN.trials(config=str(config), unchanged=0)[0])
    begin(opened)
    opened.step(Reply(MISS))
    assert opened.step(Reply("ignored")).ask is Ask.READY
    turn = opened.step(Reply({"do": "stay"}, None, took=100.0))
    assert (turn.ask, turn.last, opened.over) == (Ask.NONE, "truncated", True)
    assert (opened.truth.performance, opened.truth.detail) == (None, None)


TIMED = """<evaluation><trials><trial>
  <game_level_set mode='training' time_limit='5' attempt_limit_per_level='1'>
    <game_levels novelty_level='0' type='010101' start='0' end='3'/>
  </game_level_set>
  <game_level_set mode='{mode}'><game_levels novelty_level='0' type='010101' start='0' end='1'/></game_level_set>
</trial></trials></evaluation>"""


def timed(tmp_path, mode, **settings):
    (tmp_path / "config.xml").write_text(TIMED.format(mode=mode))
    return DOMAIN.world(DOMAIN.trials(config=str(tmp_path / "config.xml"), **settings, unchanged=0)[0])


def test_what_is_done_after_the_time_is_over_does_not_count(tmp_path):
    alone = timed(tmp_path, "training")
    begin(alone)
    turn = alone.step(Reply(MISS, None, took=9.0))
    assert (turn.last, alone.result, alone.over, alone.in_play.game.flying) == ("truncated", 0, True, None)
    tested = timed(tmp_path, "test")
    begin(tested)
    tested.step(Reply({"do": "load"}, None, took=9.0))
    turn = tested.step(Reply())
    assert (turn.observation["begins"], tested.result) == ("test set", 0), "no further level"
    between = timed(tmp_path, "test")
    between.reset()
    between.step(Reply())
    between.step(Reply())
    turn = between.step(Reply({"do": "load"}, None, took=9.0))
    assert (turn.observation["begins"], between.result) == ("test set", 0)


def test_a_level_in_play_may_be_finished_where_a_test_follows(tmp_path):
    opened = timed(tmp_path, "test")
    begin(opened)
    turn = opened.step(Reply(MISS, None, took=9.0))
    assert (turn.last, opened.result) == ("terminated", 1)
    assert opened.step(Reply()).observation["begins"] == "test set"


@pytest.mark.parametrize(
    ("mode", "state"), [("training", HarnessState.TERMINATED), ("test", HarnessState.NEW_TEST_SET)]
)
def test_an_agent_that_only_looks_is_told_when_the_time_is_over(tmp_path, mode, state):
    opened = timed(tmp_path, mode)
    opened.reset()
    opened.step(Reply())
    conversation = Conversation(opened.step(Reply()))
    for silent, told in ((4.0, HarnessState.MAIN_MENU), (6.0, state)):
        assert ask_state(conversation, opened, silent) is told


@pytest.mark.parametrize(("finish", "state"), [(True, HarnessState.PLAYING), (False, HarnessState.NEW_TEST_SET)])
def test_so_is_one_in_a_level_that_is_not_to_be_finished(tmp_path, finish, state):
    opened = timed(tmp_path, "test", finish_levels=finish)
    conversation = Conversation(begin(opened))
    assert ask_state(conversation, opened, 6.0) is state
    assert opened.truth.episode_over is not finish


def ask_state(conversation, opened, silent):
    """The state that an agent is told which has done nothing for this many seconds."""
    talk, answer = conversation.answer(Request(12), 0.0, silent), None
    while True:
        try:
            step = talk.send(answer)
        except StopIteration as end:
            return HarnessState(end.value[0])
        if isinstance(step, WireCommand):
            opened.step(Reply(step.action, None, took=silent))
        else:
            answer = opened.look(step)


def test_where_something_begins_any_reply_will_do():
    opened = world()
    opened.reset()
    for reply in ("go", ["x"], {"do": "dance"}):
        turn = opened.step(Reply(reply))
    assert turn.ask is Ask.ACT


def test_trials_refuse_files_that_changed(tmp_path):
    source = files("openfield.domains.birds").joinpath("data", "levels", "novelty_level_0")
    shutil.copytree(str(source), tmp_path / "novelty_level_0")
    made = trial(levels=str(tmp_path), novelty="none", scenario="single")
    assert DOMAIN.world(made).reset().ask is Ask.READY
    for path in tmp_path.rglob("*.xml"):
        path.write_text(path.read_text().replace("BirdRed", "BirdBlue"))
    with pytest.raises(InvalidInput, match="have changed"):
        DOMAIN.world(made)


@pytest.mark.parametrize("observe", ["features", "image"])
def test_learners_get_arrays_within_their_space(observe):
    made = trial(observe=observe)
    turn = begin(DOMAIN.world(made))
    assert DOMAIN.spec(made).observations.contains(turn.observation)


def test_a_report_due_at_the_end_of_a_set_is_one_of_that_set(tmp_path):
    level = "<game_levels novelty_level='0' type='010101' start='0' end='0'/>"
    (tmp_path / "config.xml").write_text(
        "<evaluation><novelty_detection_measurement step='2' measure_in_training='true' measure_in_testing='true'/>"
        "<trials><trial checkpoint_interaction_limit='2'>"
        f"<game_level_set mode='training' attempt_limit_per_level='2'>{level}</game_level_set>"
        f"<game_level_set mode='test' attempt_limit_per_level='1'>{level}</game_level_set>"
        "</trial></trials></evaluation>"
    )
    trials = DOMAIN.trials(config=str(tmp_path / "config.xml"), unchanged=0)
    of.run({"random": "random"}, trials, tmp_path / "run.sqlite", workers=0)
    write_logs(tmp_path / "run.sqlite", tmp_path / "logs")
    with (tmp_path / "logs" / "NoveltyLikelihoodData.csv").open() as file:
        seen = [(row["playStatus"], row["InteractionIndex"]) for row in csv.DictReader(file)]
    assert seen == [("training", "2"), ("test", "2"), ("training", "4"), ("test", "2")]


def test_a_rollout_replays_to_the_same_turns(tmp_path):
    trials = DOMAIN.trials(1, novelty="gravity", report_step=2, **SMALL, unchanged=0)
    of.run({"naive": "naive"}, trials, tmp_path / "run.sqlite", workers=0)
    with Run(tmp_path / "run.sqlite") as run:
        (cell,) = run.cells()
        steps = list(run.raw_steps(cell.id, cell.attempt))
    replayed = resume_rollout(DOMAIN.world(trials[0]), steps)
    assert replayed.turns == len(steps) - 1


@pytest.mark.parametrize(("bird", "power"), [("BirdRed", False), ("BirdBlue", True)])
def test_a_person_is_offered_a_power_only_where_the_bird_has_one(bird, power):
    opened = world()
    turn = begin(opened)
    pig = LevelObject(kind="Pig", type="BasicSmall", x=9.0, y=-3.29)
    opened.in_play = LevelInPlay(Level(birds=(bird,), objects=(pig,)), BirdsSettings(), 1)
    assert SlingPage().show(turn, opened)["sling"]["power"] is power
