"""Gradual learning: counted by hand on small records, and on a real run of the oracle."""

import json

import msgspec
import pytest

import openfield as of
from openfield.cli import run_command
from openfield.journal.reader import Episode
from openfield.metrics.catalogue import installed_metrics
from openfield.metrics.curricula.gradual import (
    accuracy_by_index,
    learning_curve,
    measure_gradual,
    pool_gradual,
    retention,
    solved_within,
    task_efforts,
)
from openfield.metrics.failures import apply_policy
from openfield.metrics.stats import Estimate
from openfield.metrics.summary import estimate
from openfield.trial import Phase, Trial
from support.records import make_cell


def make_curriculum(*instances, tasks=("a", "b"), seed=0, outcome="done", **settings):
    """A CommAI cell of instances (task, marks, solved), ten steps a question; 1,000 steps are the budget.

    Tasks whose names are not those of the domain are named by a configuration of the original's form.
    """
    scheduler = {"type": "core.scheduler.ConsecutiveTaskScheduler", "args": {"tasks": list(tasks)}}
    known = {"max_steps": 1000, "configuration": {"scheduler": scheduler}} | settings
    trial = Trial(domain="commai", version=2, seed=seed, phases=(Phase("test"),), settings=known)
    places, place, last = len(tasks) * (1 + known.get("retest", False)), 0, None
    episodes = []
    for number, (task, marks, ok) in enumerate(instances):
        place, last = place + (task != last), task
        told = {"task": task, "marks": marks, "steps": 10 * len(marks), "solved": ok, "interruptions": 1}
        episode = Episode(
            number=number, phase="test", novel=False, turns=told["steps"], performance=None, belief=None,
            detected=False, ended="terminated", detail=told | {"of": places, "at": place},
        )  # fmt: skip
        episodes.append(episode)
    return make_cell(episodes=tuple(episodes), trial=trial, outcome=outcome, id=f"c{seed}")


WON, LOST = ("++", True), ("+-", False)


def play(task, *results):
    return [(task, *result) for result in results]


@pytest.mark.parametrize("intervals", ["usual", "conservative", "anytime"])
def test_equal_steps_have_no_interval_as_wide_as_the_budget(intervals):
    lost = [make_curriculum(*play("a", LOST), seed=seed) for seed in range(5)]
    numbers = [number for metric in installed_metrics() for number in metric.numbers if number.within == "budget"]
    assert {"steps_to_solve", "steps_to_solve_all"} <= {number.name for number in numbers}
    for number in numbers:
        assert estimate(number, [120.0] * 5, intervals, lost) == Estimate(120.0, None, None, 5, "all 5 equal")
        assert estimate(number, [120.0] * 4 + [130.0], intervals, lost).high > 122
        assert estimate(number, [], intervals, lost).mean is None


def test_a_task_is_solved_by_five_in_a_row_and_nothing_after_that_counts():
    cell = make_curriculum(*play("a", LOST, *[WON] * 7), *play("b", WON, LOST))
    first, second = task_efforts(cell)
    assert (first.solved, first.steps, first.questions, first.instances) == (True, 120, 12, 6)
    assert (first.success_rate, first.accuracy, first.interruptions) == (5 / 6, 11 / 12, 6)
    assert (second.solved, second.steps) == (False, 40)


def test_twenty_in_a_row_solve_a_task_strictly_where_it_is_not_left_before():
    def solved(*results, **settings):
        cell = make_curriculum(*play("a", *results), **settings)
        return task_efforts(cell)[0].solved_strictly, measure_gradual(cell)["tasks_solved_strictly"]

    assert solved(*[WON] * 20, strict=True) == (True, 0.5)
    assert solved(*[WON] * 19, strict=True) == (False, 0.0)
    assert solved(*[WON] * 20) == (None, None)
    lenient = [make_curriculum(*play("a", WON), seed=seed) for seed in range(5)]
    assert pool_gradual(lenient)["tasks_solved_strictly"].mean is None
    assert "tasks_solved_strictly" not in pool_gradual([make_curriculum(*play("a", WON), strict=True)])


def test_curves_count_questions():
    cell = make_curriculum(*play("a", LOST, WON, WON))
    assert learning_curve(cell, size=2) == [0.5, 1.0, 1.0]
    assert learning_curve(cell, size=4) == [0.75]
    assert accuracy_by_index(cell) == [1.0, 2 / 3]


def test_retention_looks_at_the_first_instance_of_a_task_in_the_retest():
    played = [*play("a", LOST, *[WON] * 5), *play("b", WON, LOST), *play("a", LOST, WON), *play("b", WON)]
    assert retention(make_curriculum(*played, cyclic=True)) == {}
    assert retention(make_curriculum(*played, retest=True)) == {"a": 0.5}, "b was never solved"
    forgot = [*play("a", *[WON] * 5), *play("b", WON), *play("a", ("--", False))]
    assert retention(make_curriculum(*forgot, retest=True)) == {"a": 0.0}


def test_steps_are_counted_from_the_start_and_a_task_not_solved_takes_the_budget():
    both = make_curriculum(*play("a", *[WON] * 5), *play("b", LOST, *[WON] * 5))
    one = make_curriculum(*play("a", *[WON] * 5), *play("b", *[LOST] * 45))
    none = make_curriculum(*play("a", *[LOST] * 50))
    found = [measure_gradual(cell) for cell in (both, one, none)]
    assert [each["steps_to_solve"] for each in found] == [(100 + 220) / 2, (100 + 1000) / 2, 1000]
    assert [each["steps_to_solve_all"] for each in found] == [220, 1000, 1000]
    assert [each["tasks_solved"] for each in found] == [1.0, 0.5, 0.0]


def test_the_share_solved_ends_with_what_is_played():
    cell = make_curriculum(*play("a", *[WON] * 5), *play("b", *[WON] * 5))
    assert [solved_within(cell, budget) for budget in (99, 100, 199, 200, 1000)] == [0.0, 0.5, 0.5, 1.0, 1.0]
    assert solved_within(cell, 1001) is None
    numbers = measure_gradual(cell)
    assert (numbers["solved_by_1000"], numbers["solved_by_10000"]) == (1.0, None)
    assert measure_gradual(make_curriculum(*play("a", WON), max_steps=999))["solved_by_1000"] is None


def test_the_median_is_beyond_the_budget_if_fewer_than_half_are_solved():
    half = [make_curriculum(*play("a", *[WON] * 5), *play("b", LOST), seed=seed) for seed in range(4)]
    more = make_curriculum(*play("a", *[WON] * 5), *play("b", *[WON] * 5), seed=4)
    less = make_curriculum(*play("a", LOST), seed=4)
    assert pool_gradual([*half, more])["steps_median"].mean == 100
    assert pool_gradual([*half, less])["steps_median"] == Estimate(None, None, None, 5, beyond=1000.0)
    assert str(pool_gradual([*half, less])["steps_median"]) == "> 1,000"
    assert str(pool_gradual([less])["steps_median"]) == "> 1,000, 1 trial"
    assert pool_gradual([*half, *half, more])["steps_median"].n == 5


def test_quitting_never_improves_the_median():
    cells = [make_curriculum(*play("a", *[WON] * 5), *play("b", *[WON] * 5), seed=seed) for seed in range(4)]
    quitter = msgspec.structs.replace(cells[0], outcome="agent_error", note="it broke", episodes=cells[0].episodes[:6])
    middles = [
        pool_gradual(apply_policy(each, "count"))["steps_median"].mean for each in (cells, [quitter, *cells[1:]])
    ]
    assert middles == [100, 200]
    both = [msgspec.structs.replace(cell, outcome="agent_error", note="it broke") for cell in cells[:3]]
    assert pool_gradual(apply_policy([*both, cells[3]], "count"))["steps_median"].beyond == 1000


@pytest.mark.parametrize("again", [[], play("a", *[WON] * 5) + play("b", *[WON] * 5), play("a", *[LOST] * 9)])
def test_a_retest_never_lowers_the_share_solved(again):
    first = play("a", *[WON] * 5) + play("b", LOST, WON, WON, WON, WON)
    plain, retested = (
        measure_gradual(make_curriculum(*first)),
        measure_gradual(make_curriculum(*first, *again, retest=True)),
    )
    same = ("tasks_solved", "steps_to_solve", "steps_to_solve_all", "solved_by_1000")
    assert [retested[name] for name in same] == [plain[name] for name in same] == [0.5, 550.0, 1000.0, 0.5]


def test_a_task_that_is_none_of_the_curriculum_is_not_counted():
    cell = make_curriculum(*play("a", *[WON] * 5), *play("intruder", *[WON] * 5), *play("b", *[WON] * 5))
    assert measure_gradual(cell)["tasks_solved"] == 1.0


def test_the_numbers_of_a_cell():
    numbers = measure_gradual(make_curriculum(*play("a", LOST, *[WON] * 5)))
    assert numbers["success"] == 5 / 6
    assert numbers["interruptions"] == 50
    assert numbers["retention"] is None
    assert set(measure_gradual(make_cell(before=[1.0])).values()) == {None}


def test_details_of_another_kind_are_no_instances():
    (episode,) = make_curriculum(*play("a", WON)).episodes
    for wrong in ({"task": 1}, {"steps": "many"}, {"steps": -1}, {"marks": None}, {"needs": 0}):
        odd = msgspec.structs.replace(episode, detail=episode.detail | wrong)
        assert set(measure_gradual(make_cell(episodes=(odd,))).values()) == {None}


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
    assert row["agent_version"] == ""
    assert row["solved_within"] == {"1000": 1.0, "10000": 1.0, "100000": 1.0}
