"""The tasks of a curriculum one by one: transfer over all trials alone, times within budgets, and quitting."""

import msgspec
import pytest

import openfield as of
from openfield.metrics.curricula.tasks import summarise_tasks
from openfield.metrics.failures import apply_policy
from openfield.metrics.scenario import group_cells, scenario_of
from support.records import make_cell

BUDGET = 400


def make_design(count=5, tasks="micro1,micro4", **settings):
    return of.trials("commai", count, design="gradual", **{"tasks": tasks, "task_budget": BUDGET} | settings)


def play_tasks(trial, taken, again=()):
    """A cell whose tasks take (steps, solved), in instances that are five in a row at the end if it is solved."""
    names = trial.settings["tasks"]
    told = {"marks": "+-", "interruptions": 0, "of": len(names) * (1 + trial.settings.get("retest", False))}
    details = []
    for place, (steps, solved) in enumerate([*taken, *again], 1):
        task = names[(place - 1) % len(names)]
        parts = [(steps - 50, False), *[(10, True)] * 5] if solved else [(steps, None)]
        marks = {"marks": "+-" if place <= len(names) else "--"}
        details += [told | marks | {"task": task, "at": place, "steps": n, "solved": ok} for n, ok in parts if n]
    cell = make_cell([], [0.5] * len(details), id=f"{trial.id}", trial=trial)
    episodes = zip(cell.episodes, details, strict=True)
    return msgspec.structs.replace(cell, episodes=tuple(msgspec.structs.replace(e, detail=d) for e, d in episodes))


def play_design(ordered, alone, **settings):
    """All cells of a design: what both tasks take in the curriculum and alone, one after the other for each seed."""
    trials = make_design(len(ordered), **settings)
    times = [each for first, second in zip(ordered, alone, strict=True) for each in (first, *([one] for one in second))]
    return [play_tasks(trial, taken) for trial, taken in zip(trials, times, strict=True)]


def summarise(cells, intervals="usual"):
    cells = apply_policy(cells, "count")
    ((key, played),) = group_cells(cells).items()
    return summarise_tasks(key, played, cells, intervals)


ORDERED = [((100, True), (100, True))] * 4 + [((100, True), (400, False))]
ALONE = [((100, True), (200, True))] * 3 + [((100, True), (400, False))] * 2


def test_transfer_divides_means_over_all_trials_those_not_solved_included():
    results = summarise(play_design(ORDERED, ALONE))
    first, second = results.tasks
    assert (results.task_steps, first.task, second.task) == (BUDGET, "micro1", "micro4")
    assert (second.solved.mean, second.steps.mean, second.alone.mean) == (0.8, 160.0, 280.0)
    assert (first.transfer.mean, second.transfer.mean) == (1.0, 280 / 160)
    assert first.transfer.note == "all 5 equal"
    assert second.transfer.low < 280 / 160 < second.transfer.high
    assert results.transfer.mean == (100 + 280) / (100 + 160)


def test_what_neither_side_solves_has_no_transfer():
    never = [((100, True), (400, False))] * 5
    first, second = summarise(play_design(never, never)).tasks
    assert (first.transfer.mean, second.transfer) == (1.0, None)
    nothing = [((400, False), (400, False))] * 5
    assert summarise(play_design(nothing, nothing)).transfer is None


@pytest.mark.parametrize("intervals", ["usual", "conservative"])
def test_equal_times_have_no_interval_as_wide_as_the_budget(intervals):
    first = summarise(play_design(ORDERED, ALONE), intervals).tasks[0]
    assert (first.steps.mean, first.steps.low, first.steps.high) == (100.0, None, None)
    assert (first.steps.note, first.alone.note) == ("all 5 equal", "all 5 equal")
    assert (first.transfer.mean, first.transfer.low, first.transfer.note) == (1.0, None, "all 5 equal")


def test_fewer_than_five_trials_have_no_interval_and_conservative_ones_of_a_ratio_are_wider():
    few = summarise(play_design(ORDERED[1:], ALONE[1:])).tasks[1]
    assert (few.transfer.low, few.steps.low, few.transfer.n) == (None, None, 4)
    safe = summarise(play_design(ORDERED, ALONE), "conservative").tasks[1]
    usual = summarise(play_design(ORDERED, ALONE)).tasks[1]
    assert safe.transfer.low < usual.transfer.low < usual.transfer.mean < usual.transfer.high < safe.transfer.high
    assert 0 < safe.steps.low < safe.steps.mean < safe.steps.high <= BUDGET


def test_without_a_budget_of_its_own_a_task_has_neither_time_nor_transfer():
    results = summarise(play_design(ORDERED, ALONE, max_steps=700))
    assert results.task_steps is None
    assert {(task.steps, task.alone, task.transfer) for task in results.tasks} == {(None, None, None)}
    assert [task.solved.mean for task in results.tasks] == [1.0, 0.8]
    assert results.transfer is None


def test_without_trials_alone_there_is_no_transfer():
    cells = [cell for cell in play_design(ORDERED, ALONE) if cell.trial.reference_for is None]
    results = summarise(cells)
    assert results.tasks[1].steps.mean == 160
    assert (results.tasks[1].alone, results.tasks[1].transfer, results.transfer) == (None, None, None)


def test_a_retest_gives_retention_and_no_time():
    trial = make_design(1)[0]
    cell = play_tasks(trial, [(100, True), (400, False)], [(400, False), (60, True)])
    first, second = summarise([cell]).tasks
    assert (first.retention.mean, second.retention) == (0.0, None), "there is nothing to keep of what was not solved"
    assert (second.solved.mean, second.steps.mean) == (0.0, 400.0)


def test_the_share_of_instances_is_of_those_until_a_task_is_solved_or_left():
    first, second = summarise(play_design(ORDERED, ALONE)).tasks
    assert (first.success.mean, second.success.mean) == (pytest.approx(5 / 6), pytest.approx(4 / 5 * 5 / 6))
    trial = make_design(1)[0]
    again = play_tasks(trial, [(100, True), (100, True)], [(400, False), (60, True)])
    assert summarise([again]).tasks[0].success.mean == pytest.approx(5 / 6), "without the retest"


def test_a_single_task_is_no_curriculum():
    (trial,) = of.trials("commai", 1, tasks="micro4", max_steps=100)
    assert summarise([play_tasks(trial, [(100, True)])]) is None
    cell = make_cell([], [1.0])
    assert summarise_tasks((scenario_of(cell), "ada"), [cell], [cell], "usual") is None


def is_no_better(name, quitting, going_on):
    ours, theirs = getattr(going_on, name), getattr(quitting, name)
    if ours is None:
        return True
    return theirs.mean >= ours.mean if name in ("steps", "alone") else theirs.mean <= ours.mean


@pytest.mark.parametrize("which", range(15))
@pytest.mark.parametrize("played", [0, 1, 3])
def test_quitting_never_pays_in_any_task(which, played):
    """Whichever trial an agent quits, in the curriculum or alone, no number of a task is better for it."""
    cells = play_design([((400, False), (90, True))] * 5, [((400, False), (400, False))] * 5)
    whole = summarise(cells)
    stopped = msgspec.structs.replace(
        cells[which], outcome="agent_error", note="it broke", episodes=cells[which].episodes[:played]
    )
    results = summarise([*cells[:which], stopped, *cells[which + 1 :]])
    for quitting, going_on in zip(results.tasks, whole.tasks, strict=True):
        assert [name for name in ("solved", "success", "steps", "alone", "transfer", "retention")
                if not is_no_better(name, quitting, going_on)] == []  # fmt: skip
    assert is_no_better("transfer", results, whole)
