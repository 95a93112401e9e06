"""People at play: modes, typed lines as symbols, SKIP and QUIT, on a pipe and on a real (pseudo-)terminal."""

import io
import os
import pty
import re
import select
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from openfield.core import Reply
from openfield.domains.commai import DOMAIN
from openfield.domains.commai.agents.human import Human, LineView
from openfield.domains.commai.agents.listener import Streams
from openfield.errors import Cancelled
from openfield.journal.reader import Run
from openfield.rollout import Rollout


def sit_down(lines, mode="dot", **settings):
    """A person who types these lines, and the rollout they play until they leave."""
    target = io.StringIO()
    human = Human(LineView(source=io.StringIO(lines), target=target), mode, settings.get("bit_mode", False))
    rollout = Rollout(DOMAIN.world(DOMAIN.trials(1, skips=True, **settings, unchanged=0)[0]))
    rewards, said = [], []
    with suppress(Cancelled):
        while not rollout.over:
            reply = human(rollout.turn)
            said.append(reply.action)
            rewards.append(rollout.reply(reply).reward)
    return rewards, said, target.getvalue()


def test_what_is_typed_is_said_symbol_by_symbol():
    _, said, shown = sit_down("hello...\n", tasks="micro7.1")
    assert bytes(symbol for symbol in said if symbol != 32) == b"hello."
    assert "QUIT leaves" in shown


@pytest.mark.parametrize("mode", ["line", "dot"])
def test_a_person_can_solve_a_question(mode):
    first = "\n" if mode == "line" else ""  # the person is asked when the teacher begins, and listens on
    _, _, shown = sit_down(first, mode, tasks="micro7.1", seed=3)
    letter = shown.split("say:_")[1][0]
    rewards, _, shown = sit_down(f"{first}{letter}.\nQUIT\n", mode, tasks="micro7.1", seed=3)
    assert rewards.count(1.0) == 1
    assert "correct!" in shown


def test_immediate_asks_at_every_step_and_an_empty_line_is_silence():
    _, said, _ = sit_down("a\n\nb\n", "immediate", tasks="micro1")
    assert said == [97, 32, 98]


def test_the_first_prompt_comes_with_the_first_symbol():
    _, said, shown = sit_down("QUIT\n", "line", tasks="micro1")
    assert said == []
    assert "The teacher has begun. Press Enter to listen on, or type an answer." in shown


def test_where_every_symbol_is_a_question_the_person_is_asked_at_every_symbol():
    _, said, shown = sit_down("a\nb\n\nc\nQUIT\n", "line", tasks="micro1")
    assert said == [97, 98, 32, 99]
    assert shown.count("The teacher does not pause here.") == 4


def test_who_listens_on_is_asked_at_the_next_pause_and_at_last_without_one():
    _, said, _ = sit_down("\nQUIT\n", "line", tasks="micro7.1")
    assert len(said) == len("say: x.") - 1
    _, said, shown = sit_down("\nQUIT\n", "line", tasks="micro5.18", separators=True)
    assert len(said) < 300
    assert shown.count(">") == 2


def ask_once(task, answers, steps=1_500, **settings):
    """Answer what each prompt shows with a function of the text; return what was heard before each prompt."""
    prompts, streams = [], []

    class Typist(LineView):
        def ask(self, shown, note=""):
            text = "".join(shown.teacher)
            prompts.append(text[len(streams[-1]) if streams else 0 :])
            streams.append(text)
            return answers(prompts[-1])

    human = Human(Typist(target=io.StringIO()), "line")
    options = {"tasks": task, "max_steps": steps, "cyclic": True, **settings}
    rollout = Rollout(DOMAIN.world(DOMAIN.trials(1, skips=True, unchanged=0, **options)[0]))
    while not rollout.over and len("".join(streams[-1:])) < 450:
        rollout.reply(human(rollout.turn))
    return prompts


@pytest.mark.parametrize("task", ["micro5.5", "micro7.1", "micro8", "micro9.1", "micro13.1", "mini1"])
@pytest.mark.parametrize("answer", ["x.", "true."])
def test_a_person_is_asked_once_a_question_and_not_in_feedback(task, answer):
    first, *asked = ask_once(task, lambda heard: "" if len(heard) == 1 else answer)
    assert len(first) == 1, "the teacher has begun"
    ends = {"mini1": r"verify: [A-Z]*\.$"}.get(task, r"^[^.]*\.$")
    for heard in asked:
        question = heard.strip() if task == "mini1" else heard.rpartition(";")[2]
        assert re.search(ends, question), heard
    assert len(asked) >= 3


@pytest.mark.parametrize(("task", "answer"), [("micro5.5", ""), ("micro5.12", "1."), ("micro5.12", "")])
def test_feedback_to_an_answer_that_silence_completes_is_no_question(task, answer):
    _, _, *asked = ask_once(task, lambda heard: "" if len(heard) == 1 else answer)
    assert len(asked) >= 10
    assert all(re.search(r"^[^;]*;\d\.$", heard) for heard in asked)


def test_the_question_behind_the_feedback_of_a_mini_task_is_asked_in_any_task():
    def answer(heard):
        return "" if len(heard) == 1 else f"{heard[-2]}." if "say: " in heard else "true."

    asked = ask_once("mini0,micro7.1", answer, scheduler="sequential", required_consecutive_rewards=2)
    assert all(re.search(r"(verify: [A-Z]*|say: \w)\.$", heard) for heard in asked[1:])
    assert sum("say: " in heard for heard in asked) >= 4


def test_a_dot_and_a_silence_may_be_questions_themselves():
    asked = ask_once("micro4", lambda heard: heard[-1], alphabet_size=26)
    assert {" ", "."} < {*"".join(asked)}
    assert {len(heard) for heard in asked} == {1}


@pytest.mark.parametrize("task", ["repetition.RepeatWhatISay", "counting.SimpleCounting", "small.Repeat1V1L", "mini1"])
def test_no_verdict_is_a_question(task):
    """Answer as soon as one is asked, also in the middle of a question."""
    asked = ask_once(task, lambda heard: "true.")
    assert len(asked) >= 3
    assert not [
        heard for heard in asked if re.search(r"(wrong|incorrect|right answer is|wrong: \w+)[^.!]*\.$", heard, re.I)
    ]


def test_a_resumed_game_shows_its_question(tmp_path):
    words = [sys.executable, "-m", "openfield", "play", "commai", "--terminal", "--set", "tasks=micro7.1"]
    shown = []
    for _ in range(2):
        done = subprocess.run(words, input="\nQUIT\n", cwd=tmp_path, capture_output=True, text=True, timeout=300)
        shown.append(done.stdout)
    question = re.findall(r"_say:_(.)\._*\n", shown[0])
    assert re.findall(r"_say:_(.)\._*\n", shown[1])[:1] == question[-1:]


def test_bits_are_put_together_and_taken_apart():
    _, _, shown = sit_down("", "dot", tasks="small.Repeat1V1L", bit_mode=True)
    letter = shown.split("repeat:_")[1][0]
    rewards, said, _ = sit_down(f"{letter}.\n\n\n\n", "dot", tasks="small.Repeat1V1L", bit_mode=True)
    assert set(said) == {0, 1}
    assert rewards.count(1.0) >= 1


def test_in_bits_the_teacher_may_answer_before_the_person_is_asked_again():
    _, _, shown = sit_down("\nI turn left.\nQUIT\n", "line", tasks="navigation.Turning", bit_mode=True, seed=1)
    assert "You_turned_left,_you_are_now_facing_west." in shown


def test_what_is_no_symbol_is_asked_for_again():
    _, said, shown = sit_down("a€.\nab.\n", "dot", tasks="micro7.1")
    assert bytes(symbol for symbol in said if symbol != 32) == b"ab."
    assert "'€' is not a symbol" in shown


def test_skip_gives_up_the_instance():
    world = DOMAIN.world(DOMAIN.trials(1, skips=True, tasks="micro7.1", unchanged=0)[0])
    turn = world.reset()
    while turn.observation != ord("."):
        turn = world.step(Reply(32))
    world.step(Reply("SKIP"))
    assert world.truth.episode_over
    assert world.truth.detail["solved"] is False


def test_streams_stand_under_each_other():
    streams = Streams()
    for symbol, reward in (("a", 0), (" ", 1), ("\x07", -1)):
        streams.hear(symbol, reward, "")
        streams.say("x")
    teacher, learner, reward = streams.rows(20)
    assert teacher.endswith("_a_?")
    assert learner.endswith("_xxx")
    assert reward.endswith("  +-")
    assert streams.status == "reward 0, step 3"


def talk(words, folder, answers):
    """Runs a command on a pseudo-terminal, types each answer at its cue, returns what was shown."""
    primary, secondary = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    program = subprocess.Popen(
        [sys.executable, "-m", "openfield", *words],
        stdin=secondary, stdout=secondary, stderr=secondary, cwd=folder, env=environment, start_new_session=True,
    )  # fmt: skip
    os.close(secondary)
    shown, mark, end = b"", 0, time.monotonic() + 300
    answers = list(answers)
    while time.monotonic() < end:
        if not select.select([primary], [], [], 0.5)[0]:
            if program.poll() is not None:
                break
            continue
        try:
            shown += os.read(primary, 65536)
        except OSError:
            break
        if answers and answers[0][0] in shown[mark:]:
            mark = len(shown)
            os.write(primary, answers.pop(0)[1])
    program.wait(300)
    os.close(primary)
    return shown.decode(errors="replace")


@pytest.mark.parametrize("flags", [["--mode", "dot"], ["--curses", "--mode", "dot"]])
def test_a_person_plays_on_a_terminal_and_is_recorded(tmp_path, flags):
    words = ["play", "commai", "--set", "tasks=micro7.1", *flags, "-o", "played.sqlite"]
    talk(words, tmp_path, [(b">", b"xyz.\nQUIT\n")])
    with Run(tmp_path / "played.sqlite") as run:
        (cell,) = run.cells()
        said = [step.reply.action for step in run.steps(cell.id, cell.attempt) if step.reply is not None]
    assert cell.agent == "human"
    assert cell.outcome == "cancelled"
    assert bytes(symbol for symbol in said if symbol != 32) == b"xyz."


def test_a_person_may_be_a_pipe(tmp_path):
    words = [sys.executable, "-m", "openfield", "play", "commai", "--set", "tasks=micro7.1", "--set", "max_steps=60"]
    done = subprocess.run(words, input="a.\n" * 20, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    with Run(tmp_path / "runs" / "commai-played.sqlite") as run:
        assert run.cells()[0].outcome == "done"


@pytest.mark.parametrize("kind", ["ImmediateHumanLearner", "ManualHumanLearner"])
def test_no_progress_bar_is_drawn_where_a_person_types(tmp_path, kind):
    words = ["run", "commai", "--set", "tasks=micro1", "-l", f"learners.human_learner.{kind}"]
    shown = talk([*words, "--trials", "1"], tmp_path, [(b">", b"a\n"), (b">", b"b\n"), (b">", b"QUIT\n")])
    assert shown.count("> ") >= 3
    assert "━" not in shown
    assert "turns/s" not in shown
