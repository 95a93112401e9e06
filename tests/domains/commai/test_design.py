"""The gradual design: a curriculum and its tasks alone, paired by seed, and tasks with budgets of their own."""

import json

import msgspec
import pytest

import openfield as of
from openfield.cli import run_command
from openfield.domains.commai import DOMAIN
from openfield.errors import InvalidInput
from openfield.journal.reader import Run
from openfield.metrics.curricula.gradual import measure_gradual
from openfield.trial import with_limits

TASKS = "micro1,micro4,micro5.1"


def make_design(count=1, **settings):
    return of.trials("commai", count, design="gradual", **{"tasks": TASKS, "task_budget": 400} | settings)


def visits(cell):
    """Return the task, the steps and the last verdict of each visit to a task."""
    found = {}
    for episode in cell.episodes:
        told = episode.detail
        steps, _ = found.get((told["at"], told["task"]), (0, None))
        found[told["at"], told["task"]] = (steps + told["steps"], told["solved"])
    return [(task, *rest) for (_, task), rest in found.items()]


def play(tmp_path, agent, trials):
    return of.run([agent], trials, tmp_path / "run.sqlite").cells


def test_a_curriculum_and_its_tasks_alone_are_paired_by_seed():
    first, *alone = make_design(2)[:4]
    assert [trial.seed for trial in alone] == [first.seed] * 3 != [make_design(2)[4].seed] * 3
    assert [trial.settings["tasks"] for trial in alone] == [["micro1"], ["micro4"], ["micro5.1"]]
    assert {trial.reference_for for trial in alone} == {first.id}
    assert first.reference_for is None
    assert (first.settings["max_steps"], first.settings["retest"]) == (6 * 400, True)
    assert all(trial.settings["max_steps"] == 400 and "retest" not in trial.settings for trial in alone)


def test_what_is_given_wins_over_the_design():
    first, *alone = make_design(retest=False, max_steps=900)
    assert (first.settings["max_steps"], "retest" in first.settings) == (900, False)
    assert DOMAIN.curriculum(first).task_steps is None  # 900 steps are not enough for three tasks of 400
    assert DOMAIN.curriculum(alone[0]).task_steps == 400


def test_tasks_have_no_budget_of_their_own_where_they_come_again_and_again():
    (trial,) = of.trials("commai", 1, tasks=TASKS, cyclic=True, task_budget=100)
    assert (DOMAIN.curriculum(trial).task_steps, DOMAIN.curriculum(trial).steps) == (None, 100_000)


def test_a_python_configuration_tells_whether_it_is_tested_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "from openfield.domains.commai.environment.schedulers import ConsecutiveScheduler\n"
        "from openfield.domains.commai.tasks.catalogue import make_task\n"
        "def create_tasks():\n    return ConsecutiveScheduler([make_task('micro4'), make_task('micro5.1')], 5)\n"
    )
    (trial,) = of.trials("commai", 1, module="mine.py", retest=True, max_steps=200)
    assert DOMAIN.curriculum(trial) == ((), 200, None, True, True)
    (cell,) = play(tmp_path, "echo", trial)
    assert measure_gradual(cell)["tasks_solved"] == 0.5  # of two tasks, not of four


def test_the_trials_of_single_tasks_follow_their_curriculum_to_its_new_id():
    first, *alone = with_limits(make_design(), lambda limits: msgspec.structs.replace(limits, reply_seconds=7.0))
    assert {trial.reference_for for trial in alone} == {first.id} != {make_design()[0].id}


@pytest.mark.parametrize(
    "settings",
    [
        {"novelty": "alphabet:hard"},
        {"scheduler": "random"},
        {"cyclic": True},
        {"tasks": "micro1"},
        {"tasks": "micro1,micro1"},
    ],
)
def test_a_design_that_compares_nothing_is_refused(settings):
    with pytest.raises(InvalidInput, match="gradual design"):
        make_design(**settings)


def test_a_budget_needs_tasks_in_order():
    with pytest.raises(InvalidInput, match="task_budget"):
        of.trials("commai", 1, tasks=TASKS, scheduler="sequential", task_budget=100)


@pytest.mark.parametrize(
    ("agent", "settings"),
    [
        ("silent", {}),
        ("silent", {"bit_mode": True, "task_budget": 803}),
        ("random", {"tasks": "mini1,micro6,repetition.BeSilent", "task_budget": 333}),
    ],
)
def test_a_task_takes_no_step_more_than_its_budget(tmp_path, agent, settings):
    trial, *_ = make_design(**settings)
    (cell,) = play(tmp_path, agent, trial)
    budget = trial.settings["task_budget"]
    assert cell.outcome == "done"
    assert len(visits(cell)) == 6
    assert [steps for _, steps, _ in visits(cell)] == [budget] * 6


def test_a_task_that_runs_out_of_steps_has_no_verdict_and_the_next_one_its_own_steps(tmp_path):
    (cell,) = play(tmp_path, "echo", make_design(retest=False)[0])
    assert visits(cell) == [("micro1", 400, None), ("micro4", 50, True), ("micro5.1", 400, None)]


def test_an_answer_to_the_last_symbol_of_the_budget_counts(tmp_path):
    """An echo solves micro4 in ten steps five times, so that 50 steps are just enough and 49 are not."""
    enough, short = (make_design(task_budget=budget)[2] for budget in (50, 49))
    assert [cell.episodes[-1].detail["solved"] for cell in play(tmp_path, "echo", [enough, short])] == [True, None]


def test_a_configuration_of_the_original_can_be_the_curriculum(tmp_path):
    kinds = {"one": "Micro1Task", "four": "Micro4Task"}
    configuration = {
        "worlds": {},
        "tasks": {name: {"type": f"tasks.challenge.round1.challenge_micro.{kind}"} for name, kind in kinds.items()},
        "scheduler": {
            "type": "core.scheduler.ConsecutiveTaskScheduler",
            "args": {"tasks": ["one", "four"], "success_threshold": 5},
        },
    }
    trials = of.trials("commai", 1, design="gradual", configuration=configuration, task_budget=100)
    played = play(tmp_path, "oracle", trials)
    assert [[task for task, *_ in visits(cell)] for cell in played] == [["one", "four"] * 2, ["one"], ["four"]]


def test_one_command_and_an_experiment_file_play_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["--set", f"tasks={TASKS}", "--set", "task_budget=200", "--trials", "1", "--workers", "0"]
    assert run_command(["run", "commai", "-a", "echo", "--design", "gradual", *words, "-o", "one.sqlite"]) == 0
    (tmp_path / "two.toml").write_text(
        f'domain = "commai"\nagents = ["echo"]\ntrials = 1\nworkers = 0\noutput = "two.sqlite"\n'
        f'[settings]\ndesign = "gradual"\ntasks = {TASKS.split(",")}\ntask_budget = 200\n'
    )
    assert run_command(["run", "two.toml"]) == 0
    capsys.readouterr()
    assert run_command(["report", "one.sqlite", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["curricula"]
    compared = {each["task"]: each["transfer"] and each["transfer"]["n"] for each in found["tasks"]}
    assert compared == {"micro1": None, "micro4": 1, "micro5.1": None}, "an echo solves one of them"
    with Run("one.sqlite") as one, Run("two.sqlite") as two:
        assert [cell.id for cell in one.cells()] == [cell.id for cell in two.cells()]
        assert len(one.cells()) == 4
