from __future__ import annotations

from dataclasses import replace as change
from typing import Any

import msgspec
import pytest

from openfield.errors import InvalidInput
from openfield.journal.reader import CellRecord
from openfield.metrics import BUILT_IN, Metric, Number, Summary, summarise
from openfield.metrics.stats import estimate_iqm, estimate_mean, estimate_paired_improvement
from openfield.metrics.summary import Failure, list_numbers, measure_trials
from openfield.trial import Phase
from support.records import make_cell, make_run, make_trial

FAILURES = ["agent_error", "agent_timeout", "agent_protocol", "agent_gone", "world_error", "harness_error"]


def play(agent: str, afters: list[float], **fields: Any) -> list[CellRecord]:
    return [
        make_cell([], [0.9], [after], agent=agent, trial=make_trial(seed, **fields), id=f"{agent}{seed}")
        for seed, after in enumerate(afters)
    ]


def test_estimates_are_over_trials() -> None:
    (group,) = summarise(play("ada", [0.1, 0.2, 0.3, 0.4, 0.6]), BUILT_IN).groups
    after, iqm = estimate_mean([0.1, 0.2, 0.3, 0.4, 0.6]), estimate_iqm([0.1, 0.2, 0.3, 0.4, 0.6])
    assert (str(group.estimates["after"]), str(group.iqm)) == (str(after), str(iqm))
    assert group.trials == 5
    assert "training" not in group.estimates


@pytest.mark.parametrize("outcome", [*FAILURES, "cancelled", "superseded", None])
def test_failed_cells_are_counted_and_never_scored(outcome: str | None) -> None:
    good = play("ada", [0.1, 0.2, 0.3, 0.4, 0.6])
    bad = make_cell([], [0.0], [0.0], outcome=outcome, trial=make_trial(99), id="bad")
    (alone,), (group,) = summarise(good, BUILT_IN).groups, summarise([*good, bad], BUILT_IN).groups
    assert group.estimates == alone.estimates
    assert group.iqm == alone.iqm
    assert group.outcomes == {"done": 5, outcome or "unfinished": 1}


def test_failures_tell_the_first_note_of_each_agent_and_outcome() -> None:
    notes = [("bob", "agent_gone", ""), ("bob", "agent_gone", "left"), ("bob", "agent_gone", "left too")]
    notes += [("ada", "agent_error", "x"), ("ada", "done", ""), ("ada", None, "")]
    cells = [
        make_cell(agent=agent, outcome=outcome, note=note, repeat=number, id=str(number))
        for number, (agent, outcome, note) in enumerate(notes)
    ]
    for order in (cells, cells[::-1]):
        assert summarise(order, BUILT_IN).failures == (
            Failure("agent_error", "ada", 1, "x"),
            Failure("agent_gone", "bob", 3, "left"),
        )


def test_truncated_cells_are_scored_and_named() -> None:
    cells = play("ada", [0.1, 0.2, 0.3, 0.4])
    cells.append(make_cell([], [0.9], [0.6], outcome="truncated", trial=make_trial(4)))
    summary = summarise(cells, BUILT_IN)
    assert summary.outcomes == {"done": 4, "truncated": 1}
    assert summary.groups[0].estimates["after"].n == 5


def test_repeats_of_a_trial_are_averaged_first() -> None:
    cells = [make_cell([], [], [after], repeat=repeat) for repeat, after in enumerate([0.2, 0.4])]
    assert measure_trials(cells, BUILT_IN)["after"] == pytest.approx({cells[0].trial.id: 0.3})


def test_a_number_counts_the_trials_in_which_it_is_defined() -> None:
    cells = [
        make_cell([], [0.5], [0.5], [0.0, 0.9 if seed < 3 else 0.1], trial=make_trial(seed), id=str(seed))
        for seed in range(6)
    ]
    (group,) = summarise(cells, BUILT_IN).groups
    assert str(group.estimates["delay"]) == "not defined (n=3)"
    assert group.estimates["detected"].mean == 0.5


def test_groups_keep_apart_what_differs() -> None:
    cells = play("ada", [0.5]) + play("bob", [0.5]) + play("ada", [0.5], red_light=True)
    cells += play("ada", [0.5], novelty=()) + play("ada", [0.5], settings={"size": 9})
    scenarios = [(group.agent, group.scenario) for group in summarise(cells, BUILT_IN).groups]
    assert len(scenarios) == len(set(scenarios)) == 5
    assert {s.settings for _, s in scenarios} == {"", "size=9"}


def test_training_that_others_go_on_from_is_no_scenario_of_its_own() -> None:
    school = make_trial(7, novelty=(), phases=(Phase("training", 1),))
    lesson = make_cell([0.5], agent="ada", trial=school, id="lesson")
    (alone,) = summarise([lesson], BUILT_IN).groups
    assert alone.trials == 1
    (group,) = summarise([lesson, *play("ada", [0.1, 0.2], after=school.id)], BUILT_IN).groups
    assert (group.scenario.novelty, group.trials) == (("swap",), 2)


def test_agents_on_the_same_trials_are_compared_one_by_one() -> None:
    ada, bob = [0.5, 0.6, 0.7, 0.8, 0.9], [0.4, 0.6, 0.8, 0.2, 0.1]
    (comparison,) = summarise(play("ada", ada) + play("bob", bob), BUILT_IN).comparisons
    assert comparison.paired
    assert comparison.improvement == estimate_paired_improvement(ada, bob)
    assert comparison.difference.mean == pytest.approx(0.28)


def test_agents_on_other_trials_are_compared_all_against_all() -> None:
    moved = [msgspec.structs.replace(cell, trial=make_trial(100 + n)) for n, cell in enumerate(play("bob", [0.1] * 5))]
    (comparison,) = summarise(play("ada", [0.5] * 6) + moved, BUILT_IN).comparisons
    assert not comparison.paired
    assert comparison.improvement.mean == 1.0
    assert comparison.improvement.n == 5
    assert str(comparison.difference) == "not defined (n=0)"


def test_a_trial_that_never_reached_its_onset_is_not_compared_by_what_came_before() -> None:
    cells = [*play("ada", [0.1] * 5), make_cell([], [0.9], [], outcome="truncated", trial=make_trial(9))]
    assert summarise(cells, BUILT_IN).groups[0].iqm.n == 5


def test_the_order_of_cells_does_not_matter() -> None:
    cells = make_run(trials=6)
    assert summarise(cells, BUILT_IN) == summarise(cells[::-1], BUILT_IN)


def test_survives_json() -> None:
    summary = summarise(make_run(trials=6), BUILT_IN)
    assert msgspec.json.decode(msgspec.json.encode(summary), type=Summary) == summary


def test_nothing_gives_an_empty_summary() -> None:
    assert summarise([], BUILT_IN).groups == ()


def test_shared_numbers_appear_once_and_contradictions_are_refused() -> None:
    names = [number.name for number in list_numbers(BUILT_IN)]
    assert len(names) == len(set(names))
    clash = Metric("mine", "", (Number(name="after", title="Mine", note=""),), lambda cell: {})
    with pytest.raises(InvalidInput, match="'mine' has a number 'after'"):
        list_numbers([*BUILT_IN, clash])
    assert list_numbers([clash, change(clash, name="other")]) == clash.numbers
