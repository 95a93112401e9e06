"""Whole questions: a function and a program answer text with text, and bytes, silence and timing are taken care of."""

import sys

import openfield as of
from openfield.domains.commai.turns import TurnAgent, turn_agent

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
    trials = of.trials("commai", 1, tasks="micro7.1,micro7.2,micro7.3", success_threshold=2)
    result = of.run({"repeat": turn_agent(repeat)}, trials, tmp_path / "run.sqlite")
    assert solved(result) == [True] * 6
    assert sum(episode.detail["interruptions"] for episode in result.cells[0].episodes) == 0


def test_it_is_told_what_its_last_answer_earned(tmp_path):
    heard = []

    def answer(said, reward):
        heard.append((said, reward))
        return "x."

    trials = of.trials("commai", 1, tasks="micro7.1", max_steps=60)
    of.run({"x": turn_agent(answer)}, trials, tmp_path / "run.sqlite")
    assert heard[0][0].startswith("say: ")
    assert heard[0][1] == 0
    assert heard[1][0].startswith("false! ")
    assert heard[1][1] == -1


def test_single_symbols_are_questions_too(tmp_path):
    trials = of.trials("commai", 1, tasks="micro4", success_threshold=2)
    result = of.run({"echo": turn_agent(lambda said, reward: said or " ", ends="")}, trials, tmp_path / "run.sqlite")
    assert solved(result) == [True, True]


def test_a_program_answers_a_line_a_question_on_stdio(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = f"{sys.executable} -m openfield.domains.commai.turns {sys.executable} {tmp_path / 'program.py'}"
    trials = of.trials("commai", 1, tasks="micro7.1,micro7.2", success_threshold=1)
    result = of.run({"program": f"process:{command}"}, trials, tmp_path / "run.sqlite")
    assert result.cells[0].outcome == "done", result.cells[0].note
    assert solved(result) == [True, True]


def test_a_pause_is_a_question(tmp_path):
    agent = TurnAgent(lambda said, reward: "yes", of.Spec(domain="commai", task=""))
    said = [agent(of.Turn(observation=ord(symbol))).action for symbol in "well?   "]
    assert bytes(said) == b"      ye"
