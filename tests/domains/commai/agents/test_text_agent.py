"""Whole questions: a function and a program answer text with text, and bytes, silence and timing are taken care of."""

import subprocess
import sys

import pytest

import openfield as of
from openfield.domains.commai import CommaiSettings, make_environment, task_ids
from openfield.domains.commai.agents.text_agent import TextAgent, make_text_agent

PROGRAM = """
import json, re, sys
for line in sys.stdin:
    said = json.loads(line)["said"]
    print(re.findall(r"say: (.*?)[.]", said)[-1] + ".", flush=True)
"""


def repeat(said, reward):
    return said.rpartition("say: ")[2]


def solved(result):
    return [episode.detail["solved"] for episode in result.cells[0].episodes]


def test_a_function_solves_tasks_without_knowing_of_bytes(tmp_path):
    trials = of.trials("commai", 1, tasks="micro7.1,micro7.2,micro7.3", success_threshold=2, unchanged=0)
    result = of.run({"repeat": make_text_agent(repeat)}, trials, tmp_path / "run.sqlite")
    assert solved(result) == [True] * 6
    assert sum(episode.detail["interruptions"] for episode in result.cells[0].episodes) == 0


def test_it_is_told_what_its_last_answer_earned(tmp_path):
    heard = []

    def answer(said, reward):
        heard.append((said, reward))
        return "x."

    trials = of.trials("commai", 1, tasks="micro7.1", max_steps=60, unchanged=0)
    of.run({"x": make_text_agent(answer)}, trials, tmp_path / "run.sqlite")
    assert heard[0][0].startswith("say: ")
    assert heard[0][1] == 0
    assert heard[1][0].startswith("false! ")
    assert heard[1][1] == -1


def test_single_symbols_are_questions_too(tmp_path):
    trials = of.trials("commai", 1, tasks="micro4", success_threshold=2, unchanged=0)
    result = of.run(
        {"echo": make_text_agent(lambda said, reward: said or " ", ends="")}, trials, tmp_path / "run.sqlite"
    )
    assert solved(result) == [True, True]


def test_a_program_answers_a_line_a_question_on_stdio(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = (
        f"{sys.executable} -m openfield.domains.commai.agents.text_agent {sys.executable} {tmp_path / 'program.py'}"
    )
    trials = of.trials("commai", 1, tasks="micro7.1,micro7.2", success_threshold=1, unchanged=0)
    result = of.run({"program": f"process:{command}"}, trials, tmp_path / "run.sqlite")
    assert result.cells[0].outcome == "done", result.cells[0].note
    assert solved(result) == [True, True]


def know(environment):
    """An agent that knows every answer, and the conversation it has."""
    heard = []

    def answer(said, reward):
        heard.append(said)
        return environment.instance.round.answer

    return TextAgent(answer, of.Spec(domain="commai", task="")), heard


def converse(environment, agent, instances):
    symbol, reward = environment.next(None)
    while environment.finished < instances:
        symbol, reward = environment.next(chr(agent(of.Turn(observation=ord(symbol), reward=reward)).action))
    return environment


DOTTED = [name for name in task_ids(["all"]) if name not in ("micro1", "micro2", "micro3", "micro4")][2:]


@pytest.mark.parametrize("name", DOTTED)
def test_whoever_knows_the_answers_solves_every_task_whose_questions_end_with_a_dot(name):
    environment = make_environment(CommaiSettings(tasks=(name,), scheduler="sequential"), seed=1)
    agent, heard = know(environment)
    converse(environment, agent, 12)
    book = environment.tallies()[name]
    assert book.solved == 12
    assert book.reward == (12 if name.startswith("mini") else 120)
    assert environment.penalties == 0
    assert all(said.endswith(".") for said in heard)


def test_feedback_that_stops_costs_one_answer_and_no_more():
    plain = make_environment(CommaiSettings(tasks=("micro7.2",), scheduler="sequential"), seed=1)
    agent, _ = know(plain)
    converse(plain, agent, 1)
    bare = make_environment(CommaiSettings(tasks=("micro7.2",), scheduler="sequential", feedback="withheld"), seed=1)
    agent._answer = know(bare)[0]._answer
    converse(bare, agent, 3)
    assert bare.tallies()["micro7.2"].solved == 3
    assert bare.tallies()["micro7.2"].reward == 1 - 1 + 30  # the first after feedback, the one that was late, the rest
    back = make_environment(CommaiSettings(tasks=("micro7.2",), scheduler="sequential"), seed=1)
    agent._answer = know(back)[0]._answer
    converse(back, agent, 3)
    assert back.tallies()["micro7.2"].solved == 3


def test_a_teacher_who_starts_to_speak_is_not_interrupted():
    environment = make_environment(CommaiSettings(tasks=("micro5.4",), scheduler="sequential"), seed=1)
    agent, _ = know(environment)
    known = agent._answer
    agent._answer = lambda said, reward: f"{known(said, reward)}, I think."
    converse(environment, agent, 3)
    assert environment.tallies()["micro5.4"].solved == 3
    assert environment.penalties == 0


def say_to(agent, text):
    return bytes(agent(of.Turn(observation=ord(symbol))).action for symbol in text).decode()


def test_a_pause_is_a_question():
    agent = TextAgent(lambda said, reward: "yes", of.Spec(domain="commai", task=""))
    assert say_to(agent, "well?" + " " * 10) == " " * 12 + "yes"


def test_who_did_not_finish_is_asked_again_and_who_stays_silent_is_not():
    heard, answers = [], ["ye", "s.", ""]

    def answer(said, reward):
        heard.append(said)
        return answers[len(heard) - 1]

    agent = TextAgent(answer, of.Spec(domain="commai", task=""))
    assert say_to(agent, "well." + " " * 60) == f"    ye{' ' * 7}s.{' ' * 50}"[:65]
    assert heard == ["well.", "", ""]


@pytest.mark.parametrize(("words", "says"), [([], "COMMAND"), (["/no/such/program"], "'/no/such/program' cannot be")])
def test_a_program_that_cannot_be_started_is_named(words, says):
    command = [sys.executable, "-m", "openfield.domains.commai.agents.text_agent", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
