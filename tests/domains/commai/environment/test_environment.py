"""The order of a step: rewards, separators, limits, time, borders, books."""

import hashlib
import subprocess
import sys

import pytest

from openfield.domains.commai import (
    CommaiSettings,
    EchoLearner,
    Instance,
    LearnerSession,
    Oracle,
    RandomLearner,
    Round,
    RoundScript,
    SequentialScheduler,
    SilentLearner,
    Task,
    make_environment,
    make_task,
)
from openfield.domains.commai.environment.serializers import BitReader, to_bits
from openfield.errors import AgentProtocol, InvalidInput
from support.places import ROOT


class Constant:
    """Says the same text over and over, whenever the teacher is silent."""

    def __init__(self, environment, text):
        self.environment, self.text, self.at = environment, text, 0

    def next(self, symbol):
        if self.environment.unsaid or not self.environment.running:
            self.at = 0
            return " "
        self.at += 1
        return self.text[(self.at - 1) % len(self.text)]

    def reward(self, reward):
        pass


def environment_with(*tasks, **settings):
    return make_environment(CommaiSettings(**settings), scheduler=SequentialScheduler(list(tasks)))


def run_instance(environment, learner):
    """Runs until the instance under way has been replaced; gives its number of questions."""
    session, asked, finished = LearnerSession(environment, learner), 0, environment.finished
    while environment.finished == finished:
        session.run(1)
        if environment.finished == finished and hasattr(environment.instance, "asked"):
            asked = environment.instance.asked
    return asked + 1


def test_a_learner_that_is_always_wrong_fails_at_question_105():
    environment = environment_with(make_task("micro4"))
    asked = run_instance(environment, Constant(environment, "#"))
    assert (asked, environment.result) == (105, False)


def test_silence_on_micro1_fails_at_question_243():
    script = RoundScript([[Round("a", "x")] * 243, [Round("a", "x")]])
    task = make_task("micro1")
    task.script = script
    environment = environment_with(task)
    assert run_instance(environment, SilentLearner()) == 243
    assert environment.result is False


@pytest.mark.parametrize(("wrong", "result"), [(41, True), (42, False)])
def test_success_counts_until_the_soft_limit(wrong, result):
    """Whoever should know from the start has 51 questions: ten right answers from question 42 on are in time."""
    task = make_task("micro4")
    task.script = RoundScript([[Round("a", "#")] * wrong + [Round("a", "a")] * 10, [Round("a", "a")]])
    environment = environment_with(task)
    assert run_instance(environment, EchoLearner()) == wrong + 10
    assert environment.result is result


def test_limits_follow_the_settings():
    environment = environment_with(
        make_task("micro4"), required_consecutive_rewards=2, success_tolerance=1.0, failed_task_tolerance=0.0
    )
    assert run_instance(environment, Constant(environment, "#")) == 7  # soft 1 + 4, hard 6


def test_interruptions_cost_a_point_and_the_streak():
    task = make_task("micro7.1")
    task.script = RoundScript([[Round("say: a.", "a.")] * 40, [Round("say: a.", "a.")]])
    environment = environment_with(task)
    oracle = Oracle(environment)
    heard, rewards = None, []
    for step in range(300):
        symbol, reward = environment.next(heard)
        heard = oracle.next(symbol)
        if step == 40:
            assert environment.unsaid
            heard = "x"
        rewards.append(reward)
        if environment.finished:
            break
    assert rewards.count(-1) == 1
    assert rewards.index(-1) == 41
    assert rewards.count(1) == rewards[:41].count(1) + 10


def test_a_micro_instance_times_out_after_ten_thousand_steps():
    environment = environment_with(make_task("micro7.1"))
    steps = 0
    heard = None
    while not environment.finished:
        environment.next(heard)
        heard, steps = " ", steps + 1
    assert (steps, environment.result) == (10_001, False)
    assert environment.tallies()["micro7.1"].steps == 10_001


def test_an_instance_can_be_skipped():
    environment = environment_with(make_task("micro7.1"))
    environment.next(None)
    environment.time_out()
    steps = 1
    while not environment.finished:
        environment.next(" ")
        steps += 1
    assert (steps, environment.result) == (len("say: x.") + 1, False)
    assert environment.tallies()["micro7.1"].steps == steps


def test_bits_are_the_only_symbols_in_bit_mode():
    environment = make_environment(CommaiSettings(tasks=("small",), bit_mode=True))
    spoken = "".join(environment.next(bit)[0] for bit in (None, 0, "0", 1, "0", 0, 0, "0"))
    assert spoken == "01110010"  # the r of repeat
    with pytest.raises(AgentProtocol, match="A symbol here is '0' or '1'"):
        environment.next("a")


def test_a_new_text_in_bit_mode_replaces_the_rest_of_the_old_one():
    environment = make_environment(CommaiSettings(tasks=("mini0",), bit_mode=True))
    bits = [environment.next(None)[0] for _ in range(3)]
    environment.say("ok")
    bits += [environment.next(None)[0] for _ in range(21)]
    assert heard_in(bits) == "dok"


def test_a_mini_timeout_tells_the_answer_first():
    task = make_task("mini1")
    text = "Wrong. The right answer is: false."
    task.script = RoundScript([[Round("description: A; verify: B.", "false.", "bravo.", text)]] * 2)
    environment = environment_with(task)
    spoken, heard = [], None
    while not environment.finished:
        spoken.append(environment.next(heard)[0])
        heard = " "
    assert len(spoken) == 3000 + 1 + len(text) + 1
    assert "".join(spoken).endswith(f"{text} d")


@pytest.mark.parametrize(("compat", "reward"), [("", 1), ("round1", 0)])
def test_a_second_dot_flips_the_verdict_only_in_the_original(compat, reward):
    task = make_task("mini1")
    task.script = RoundScript([[Round("verify.", "true.", "bravo.", "Wrong.")]] * 2)
    environment = environment_with(task, compat=compat)
    heard, spoken, rewards = None, [], []
    for said in "       true. .             ":
        symbol, paid = environment.next(heard)
        spoken.append(symbol)
        rewards.append(paid)
        heard = said
    assert sum(rewards) == reward
    assert ("bravo.Wrong." in "".join(spoken)) is bool(compat)


def test_a_dot_during_the_instructions_of_a_mini_task_decides():
    environment = environment_with(make_task("mini1"))
    environment.next(None)
    environment.next(".")
    assert not environment.running


def test_text_before_a_mini_answer_is_tolerated():
    task = make_task("mini1")
    task.script = RoundScript([[Round("v.", "true.", "bravo.", "Wrong.")]] * 2)
    environment = environment_with(task)
    heard = None
    for said in " xxtrue.            ":
        environment.next(heard)
        heard = said
    assert environment.result is True


def test_the_last_reward_of_a_curriculum_is_paid_and_booked_on_the_task_that_earned_it():
    environment = make_environment(CommaiSettings(tasks=("micro1", "micro4"), success_threshold=1))
    session = LearnerSession(environment, Oracle(environment))
    session.run()
    assert environment.over
    assert session.reward == 20
    assert {name: tally.reward for name, tally in session.tallies().items()} == {"micro1": 10, "micro4": 10}
    assert environment.next(" ") == (" ", 0)


def test_a_task_pays_until_the_cap():
    environment = make_environment(CommaiSettings(tasks=("micro4",), success_threshold=3, max_reward_per_task=12))
    session = LearnerSession(environment, Oracle(environment))
    session.run()
    assert session.reward == 12


def test_steps_of_all_tasks_add_up():
    environment = make_environment(CommaiSettings(tasks=("micro1", "mini1", "micro9.1"), scheduler="random"), seed=4)
    session = LearnerSession(environment, EchoLearner())
    session.run(5000)
    assert sum(tally.steps for tally in session.tallies().values()) == session.steps == 5000


@pytest.mark.parametrize("foreign", ["ab", "", "Ā", 65, 3.5, ["a"]])
def test_a_foreign_symbol_is_refused(foreign):
    environment = make_environment(CommaiSettings(tasks=("micro1",)))
    environment.next(None)
    with pytest.raises(AgentProtocol, match=r"The learner said .* code from 0 to 255"):
        environment.next(foreign)


def test_nothing_heard_is_no_answer_even_while_feedback_is_spoken():
    task = make_task("mini1")
    task.script = RoundScript([[Round("v.", "true.", "bravo.", "Wrong.")]] * 2)
    environment = environment_with(task)
    for said in (None, None, None, ".", None, None, None, None, None, None, None):
        environment.next(said)
    assert environment.finished == 1


def test_a_script_is_played_to_its_end_and_then_says_that_it_is_too_short():
    task = make_task("micro7.1")
    task.script = RoundScript([[("say: x.", "x.", "correct! x.;")] * 3])
    environment = environment_with(task)
    stream = [environment.next(symbol) for symbol in (None, *f"{' ' * 6}x.{' ' * 12}" * 3)]
    assert "".join(symbol for symbol, _ in stream).strip() == "say: x. correct! x.;" * 3
    assert sum(reward for _, reward in stream) == 3
    environment.next("x")
    with pytest.raises(InvalidInput, match="has 3 questions, and one more was answered"):
        environment.next(".")


class Silence(Task):
    """Speaks with two priorities."""

    def start(self, stage):
        stage.say("high", priority=2)
        stage.say("low", priority=1)
        stage.say("!", priority=2)
        return Instance(stage)


def test_what_is_less_important_than_the_unsaid_is_dropped():
    environment = environment_with(Silence())
    assert "".join(environment.next(" ")[0] for _ in range(8)) == "high!   "


def test_a_session_can_stop_and_go_on():
    environment = make_environment(CommaiSettings(tasks=("micro4",), cyclic=True))
    session = LearnerSession(
        environment, EchoLearner(), observe=lambda *step: session.stop() if session.steps == 0 else None
    )
    assert session.run(100) == 1
    assert session.run(100) == 100
    assert session.steps == 101


def heard_in(bits):
    """The characters that are complete."""
    return "".join(filter(None, map(BitReader().feed, bits)))


def fingerprint(seed):
    environment = make_environment(CommaiSettings(scheduler="random", success_threshold=1), seed)
    digest, learner = hashlib.sha256(), RandomLearner(seed)
    LearnerSession(environment, learner, observe=lambda *step: digest.update(repr(step).encode())).run(20_000)
    return digest.hexdigest()


def test_the_same_seed_gives_the_same_stream_in_another_process():
    code = "from domains.commai.environment.test_environment import fingerprint; print(fingerprint(7))"
    others = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": salt, "PYTHONPATH": str(ROOT / "tests")},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for salt in ("1", "2")
    }
    assert others == {fingerprint(7)}
    assert fingerprint(8) != fingerprint(7)


def test_environments_share_nothing():
    first, second = (make_environment(CommaiSettings(tasks=("micro19",)), seed=3) for _ in range(2))
    interleaved = [(first.next(" "), second.next(" ")) for _ in range(3000)]
    assert all(one == other for one, other in interleaved)
    assert first.scheduler.tasks[0] is not second.scheduler.tasks[0]


@pytest.mark.parametrize("task", ["mini0", "mini3", "mini4"])
def test_a_dot_said_with_the_last_symbol_of_a_question_decides_behind_it(task):
    environment = make_environment(CommaiSettings(tasks=(task,), scheduler="sequential"), seed=1)
    asked, _ = environment.next(None)
    while environment.unsaid > 1:
        asked += environment.next(" ")[0]
    told = environment.instance.round.wrong
    assert asked == environment.instance.round.question[:-1]
    answered = environment.next(".")[0] + "".join(environment.next(" ")[0] for _ in told)
    assert answered == f".{told}"


def test_an_instance_whose_task_draws_its_time_has_that_time_from_the_first_on():
    environment = make_environment(CommaiSettings(tasks=("repetition.BeSilent",), scheduler="sequential"))
    steps = 0
    while not environment.finished:
        environment.next(" " if steps else None)
        steps += 1
    assert environment.task.max_time < steps < environment.task.max_time + 30 <= 1030


def test_books_hold_every_step_of_a_finished_curriculum():
    environment = make_environment(CommaiSettings(tasks=("micro4", "mini0"), success_threshold=2))
    session = LearnerSession(environment, Oracle(environment))
    steps = session.run()
    assert sum(book.steps for book in session.tallies().values()) == steps == session.steps


@pytest.mark.parametrize(("task", "said", "verdict"), [("mini0", ".", "Wrong. "), ("sample.BeSilent", "x", "")])
def test_in_bits_a_verdict_replaces_the_rest_at_once(task, said, verdict):
    environment = make_environment(CommaiSettings(tasks=(task,), scheduler="sequential", bit_mode=True), seed=2)
    bits = [environment.next(bit)[0] for bit in (None, *to_bits(said), *to_bits(" " * 30))]
    heard = heard_in(bits)
    question = environment.instance.round.question if task == "mini0" else "be silent"
    assert heard[0] == question[0]
    assert heard[1] != question[1]
    assert heard[1:].startswith(verdict)


def test_an_environment_has_few_enough_attributes_to_be_fast():
    """Python shares the keys of fewer than 30 attributes between the objects of a class."""
    session = LearnerSession(make_environment(CommaiSettings(tasks=("micro1", "mini1"))), EchoLearner())
    session.run(1000)
    assert len(vars(session.environment)) < 30
