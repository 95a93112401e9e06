"""A trial as turns: what is asked when, what is booked, and what a record can do."""

import csv
import shutil
from importlib.resources import files

import msgspec
import pytest

import openfield as of
from openfield.core import Ask, Belief, Reply
from openfield.domains.birds import DOMAIN
from openfield.domains.birds.actions import Load, Shot, SlingshotLaunch, read_action
from openfield.domains.birds.agents import planner
from openfield.domains.birds.agents.observed_level import observe_level
from openfield.domains.birds.evaluation.exports import write_logs, write_measures
from openfield.domains.birds.evaluation.harness import HarnessState
from openfield.domains.birds.files.pool import LevelPool
from openfield.domains.birds.game.game import Game
from openfield.domains.birds.game.ground_truth import ground_truth
from openfield.domains.birds.game.scene import see
from openfield.domains.birds.game.solver import replay
from openfield.domains.birds.game.viewport import zoomed_out
from openfield.domains.birds.wire.conversation import Command, Conversation
from openfield.domains.birds.wire.messages import Request
from openfield.errors import AgentProtocol, InvalidInput
from openfield.journal.reader import Run
from openfield.registry import find_agent
from openfield.rollout import Rollout, drive

MISS = {"x": 400, "y": 200}
SMALL = {"before": 2, "after": 2}


def trial(**settings):
    return DOMAIN.trials(1, **{**SMALL, **settings})[0]


def world(**settings):
    return DOMAIN.world(trial(**settings))


def begin(opened):
    """The first level's first turn."""
    turn = opened.reset()
    while turn.ask is Ask.READY:
        turn = opened.step(Reply())
    return turn


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
        (made,) = DOMAIN.trials(1, novelty="storm", red_light=red_light, **SMALL)
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
    (made,) = DOMAIN.trials(config=str(config))
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
    opened = DOMAIN.world(DOMAIN.trials(config=str(config))[0])
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
    return DOMAIN.world(DOMAIN.trials(config=str(tmp_path / "config.xml"), **settings)[0])


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
    """The state that an agent is told which has done nothing for so many seconds."""
    talk, answer = conversation.answer(Request(12), 0.0, silent), None
    while True:
        try:
            step = talk.send(answer)
        except StopIteration as end:
            return HarnessState(end.value[0])
        if isinstance(step, Command):
            opened.step(Reply(step.action, None, took=silent))
        else:
            answer = opened.look(step.query)


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


@pytest.mark.parametrize(
    "action", ["north", {"do": "fly"}, {"x": 1}, [1, 2], [1, 2, 3], [0, 0, "x"], {"x": 1, "y": 1e99}]
)
def test_what_is_no_action_is_refused(action):
    opened = world()
    begin(opened)
    with pytest.raises(AgentProtocol, match="is no action"):
        opened.step(Reply(action))


def test_actions_come_as_values_plain_data_or_numbers():
    assert read_action({"x": 3, "y": 4}) == Shot(3, 4)
    assert read_action({"do": "load", "level": 2}) == Load(2)
    assert read_action([0.5, 0.5, -1]) == SlingshotLaunch(0.5, 0.5, 0.0)
    assert read_action([0.5, 0.5, 0.5]) == SlingshotLaunch(0.5, 0.5, 2500.0)
    for action in (Shot(1, 2, 3), Load(4)):
        assert read_action(msgspec.json.decode(msgspec.json.encode(action))) == action


@pytest.mark.parametrize("observe", ["features", "image"])
def test_learners_get_arrays_within_their_space(observe):
    made = trial(observe=observe)
    turn = begin(DOMAIN.world(made))
    assert DOMAIN.spec(made).observations.contains(turn.observation)


@pytest.mark.parametrize("sample", ["unordered", "sequence"])
def test_the_sample_configurations_run_from_end_to_end_and_leave_logs_and_measures(tmp_path, sample):
    source = files("openfield.domains.birds").joinpath("data", "samples", sample, "configMeta.xml")
    (tmp_path / "configMeta.xml").write_bytes(source.read_bytes())
    trials = DOMAIN.trials(config=str(tmp_path))
    result = of.run({"random": "random"}, trials, tmp_path / "run.sqlite", workers=0)
    (cell,) = result.cells
    assert cell.outcome == "done"
    assert [len([e for e in cell.episodes if e.phase == phase]) for phase in ("training", "test")] == [
        100,
        10 if sample == "unordered" else 20,
    ]
    write_logs(tmp_path / "run.sqlite", tmp_path / "logs")
    with (tmp_path / "logs" / "EvaluationData.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(cell.episodes)
    assert {row["LevelStatus"] for row in rows} <= {"Pass", "Fail"}
    assert {row["playStatus"] for row in rows} == {"training", "test"}
    with (tmp_path / "logs" / "NoveltyLikelihoodData.csv").open() as file:
        reports = list(csv.DictReader(file))
    assert {row["playStatus"] for row in reports} == {"test"}
    assert all(int(row["InteractionIndex"]) % 5 == 0 for row in reports)
    assert "1 rows" in write_measures(tmp_path / "run.sqlite", tmp_path / "measures.csv")


@pytest.mark.parametrize("observe", ["features", "image"])
def test_agents_that_read_ground_truth_say_so_and_a_random_one_needs_none(tmp_path, observe):
    trials = DOMAIN.trials(1, before=1, after=0, observe=observe)
    result = of.run({"random": "random", "naive": "naive"}, trials, tmp_path / "run.sqlite", workers=0)
    notes = {cell.agent: (cell.outcome, cell.note) for cell in result.cells}
    assert notes["random"] == ("done", "")
    assert "--set observe=objects" in notes["naive"][1]


def test_executions_of_a_configured_trial_have_its_number_in_the_logs(tmp_path):
    trial = (
        "<trial number_of_executions='2'><game_level_set mode='training' attempt_limit_per_level='1'>"
        "<game_levels novelty_level='0' type='010101' start='0' end='0'/></game_level_set></trial>"
    )
    (tmp_path / "config.xml").write_text(f"<evaluation><trials>{trial * 3}</trials></evaluation>")
    trials = DOMAIN.trials(config=str(tmp_path / "config.xml"), trial="1-2")
    of.run({"random": "random"}, trials, tmp_path / "run.sqlite", workers=0)
    write_logs(tmp_path / "run.sqlite", tmp_path / "logs")
    with (tmp_path / "logs" / "EvaluationData.csv").open() as file:
        assert sorted(row["trial"] for row in csv.DictReader(file)) == ["1", "1", "2", "2"]


def test_a_report_due_at_the_end_of_a_set_is_one_of_that_set(tmp_path):
    level = "<game_levels novelty_level='0' type='010101' start='0' end='0'/>"
    (tmp_path / "config.xml").write_text(
        "<evaluation><novelty_detection_measurement step='2' measure_in_training='true' measure_in_testing='true'/>"
        "<trials><trial checkpoint_interaction_limit='2'>"
        f"<game_level_set mode='training' attempt_limit_per_level='2'>{level}</game_level_set>"
        f"<game_level_set mode='test' attempt_limit_per_level='1'>{level}</game_level_set>"
        "</trial></trials></evaluation>"
    )
    trials = DOMAIN.trials(config=str(tmp_path / "config.xml"))
    of.run({"random": "random"}, trials, tmp_path / "run.sqlite", workers=0)
    write_logs(tmp_path / "run.sqlite", tmp_path / "logs")
    with (tmp_path / "logs" / "NoveltyLikelihoodData.csv").open() as file:
        seen = [(row["playStatus"], row["InteractionIndex"]) for row in csv.DictReader(file)]
    assert seen == [("training", "2"), ("test", "2"), ("training", "4")]


def test_logs_of_several_agents_are_kept_apart_and_number_the_trials(tmp_path):
    trials = DOMAIN.trials(2, before=1, after=1, scenario="single", family=1)
    result = of.run({"one": "random", "a/b": "random"}, trials, tmp_path / "run.sqlite", workers=0)
    write_logs(tmp_path / "run.sqlite", tmp_path / "logs")
    for folder in ("one", "a%2Fb"):
        with (tmp_path / "logs" / folder / "EvaluationData.csv").open() as file:
            assert [row["trial"] for row in csv.DictReader(file)] == ["0", "0", "1", "1"]
    write_logs(tmp_path / "run.sqlite", tmp_path / "last", result.cells[-1].id)
    with (tmp_path / "last" / "EvaluationData.csv").open() as file:
        assert [row["trial"] for row in csv.DictReader(file)] == ["1", "1"]


@pytest.mark.parametrize(
    ("novelty", "left", "all_"), [("fan", 1, 1), ("colour", 0, 1), ("wind", 1, 1), ("gravity", 0, 0)]
)
def test_reports_are_logged_with_the_ids_of_what_is_novel(tmp_path, novelty, left, all_):
    trials = DOMAIN.trials(1, novelty=novelty, before=1, after=1, scenario="single", family=1, report_step=2)
    of.run({"planner": "planner"}, trials, tmp_path / "run.sqlite", workers=0)
    write_logs(tmp_path / "run.sqlite", tmp_path / "logs")
    with (tmp_path / "logs" / "NoveltyLikelihoodData.csv").open() as file:
        basic, novel = csv.DictReader(file)
    assert (basic["true novel IDs"], basic["complete true novel IDs"], basic["novelty"]) == ("", "", "basic")
    assert novel["novelty"] == "novel"
    assert len(novel["complete true novel IDs"].split()) == all_
    assert len(novel["true novel IDs"].split()) == left, "after the shot"
    assert set(novel["true novel IDs"].split()) <= set(novel["complete true novel IDs"].split())


def test_a_rollout_replays_to_the_same_turns(tmp_path):
    trials = DOMAIN.trials(1, novelty="gravity", report_step=2, **SMALL)
    of.run({"naive": "naive"}, trials, tmp_path / "run.sqlite", workers=0)
    with Run(tmp_path / "run.sqlite") as run:
        (cell,) = run.cells()
        steps = list(run.raw_steps(cell.id, cell.attempt))
    replayed = Rollout.resume(DOMAIN.world(trials[0]), steps)
    assert replayed.turns == len(steps) - 1


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
    (made,) = DOMAIN.trials(1, novelty="gravity", before=1, after=6, scenario="single", seed=4)
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
    (made,) = DOMAIN.trials(1, novelty="none", before=12, after=0)
    passed = {}
    for name in ("random", "naive", "planner"):
        opened = DOMAIN.world(made)
        rollout, agent = Rollout(opened), find_agent(name, DOMAIN)(DOMAIN.spec(made), 1)
        passed[name] = 0.0
        while not rollout.over:
            passed[name] += opened.truth.performance or 0.0 if rollout.turn.last else 0.0
            rollout.reply(agent(rollout.turn))
    assert passed["planner"] > passed["naive"] > passed["random"]
