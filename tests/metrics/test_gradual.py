"""Gradual learning: counted by hand on small records, and on a real run of the oracle."""

import json

import pytest

import openfield as of
from openfield.cli import run_command
from openfield.journal.reader import Episode
from openfield.metrics.gradual import (
    accuracy_by_index,
    geometric_mean,
    learning_curve,
    measure_gradual,
    retention,
    solved_within,
    task_efforts,
    transfer,
)
from support.records import make_cell


def make_curriculum(*instances):
    """A cell of instances (task, marks, solved), ten steps a question."""
    episodes = tuple(
        Episode(
            number=number, phase="test", novel=False, turns=1, performance=None, belief=None, detected=False,
            ended="terminated",
            detail={"task": task, "marks": marks, "steps": 10 * len(marks), "solved": ok, "interruptions": 1, "of": 2},
        )
        for number, (task, marks, ok) in enumerate(instances)
    )  # fmt: skip
    return make_cell(episodes=episodes)


WON, LOST = ("++", True), ("+-", False)


def play(task, *results):
    return [(task, *result) for result in results]


def test_a_task_is_solved_by_five_in_a_row_and_nothing_after_that_counts():
    cell = make_curriculum(*play("a", LOST, *[WON] * 7), *play("b", WON, LOST))
    first, second = task_efforts(cell)
    assert (first.solved, first.steps, first.questions, first.instances) == (True, 120, 12, 6)
    assert (first.success_rate, first.accuracy, first.interruptions) == (5 / 6, 11 / 12, 6)
    assert (second.solved, second.solved_strictly, second.steps) == (False, False, 40)


def test_twenty_in_a_row_solve_a_task_strictly():
    assert task_efforts(make_curriculum(*play("a", *[WON] * 20)))[0].solved_strictly
    assert not task_efforts(make_curriculum(*play("a", *[WON] * 19)))[0].solved_strictly


def test_curves_count_questions():
    cell = make_curriculum(*play("a", LOST, WON, WON))
    assert learning_curve(cell, size=2) == [0.5, 1.0, 1.0]
    assert learning_curve(cell, size=4) == [0.75]
    assert accuracy_by_index(cell) == [1.0, 2 / 3]


def test_transfer_compares_with_scratch():
    ordered = make_curriculum(*play("a", *[WON] * 5), *play("b", *[WON] * 5))
    scratch = [make_curriculum(*play("b", *[LOST] * 15, *[WON] * 5)), make_curriculum(*play("a", LOST))]
    assert transfer(ordered, scratch) == {"b": 4.0}
    assert geometric_mean([4.0, 1.0]) == pytest.approx(2.0)
    assert geometric_mean([]) is None


def test_retention_looks_at_the_first_instance_of_a_task_that_comes_back():
    cell = make_curriculum(*play("a", LOST, WON), *play("b", WON), *play("a", LOST, WON))
    assert retention(cell) == {"a": 0.5}


def test_solved_within_a_budget():
    cell = make_curriculum(*play("a", *[WON] * 5), *play("b", *[WON] * 5))
    assert [solved_within(cell, budget) for budget in (99, 100, 199, 200)] == [0.0, 0.5, 0.5, 1.0]


def test_the_numbers_of_a_cell():
    numbers = measure_gradual(make_curriculum(*play("a", LOST, *[WON] * 5)))
    assert numbers["tasks_solved"] == 0.5
    assert numbers["success"] == 5 / 6
    assert numbers["interruptions"] == 50
    assert numbers["steps_to_solve"] == 120
    assert numbers["retention"] is None
    assert set(measure_gradual(make_cell(before=[1.0])).values()) == {None}


def test_the_oracle_solves_and_keeps_everything(tmp_path, monkeypatch):
    trials = of.trials("commai", 1, tasks="micro2,micro7.1,mini1", retest=True, unchanged=0)
    result = of.run(["oracle"], trials, tmp_path / "run.sqlite")
    numbers = measure_gradual(result.cells[0])
    assert numbers["accuracy"] == numbers["success"] == numbers["retention"] == 1
    assert numbers["interruptions"] == 0
    assert numbers["instances_to_solve"] == 5


def test_a_table_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["run", "commai", "-a", "echo", "--trials", "1", "--workers", "0", "--set", "tasks=micro4"]
    assert run_command([*words, "--table", "tables/tasks.json"]) == 0
    (row,) = json.loads((tmp_path / "tables" / "tasks.json").read_text())
    assert row["tasks"][0]["instances"] == 5
    assert row["solved_within"] == {"10000": 1.0, "100000": 1.0, "1000000": 1.0}
