from __future__ import annotations

from dataclasses import replace as change
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from openfield.errors import InvalidInput
from openfield.journal.reader import OUR_FAILURES, CellRecord
from openfield.metrics import BUILT_IN, Metric, Number, Summary, summarise
from openfield.metrics.confidence_sequences import bet_against, follow_mean
from openfield.metrics.significance import correct_by_holm, permute_labels
from openfield.metrics.stats import (
    Estimate,
    bound_mean,
    estimate_count,
    estimate_iqm,
    estimate_mean,
    estimate_paired_improvement,
)
from openfield.metrics.summary import Failure, list_counted, list_numbers, measure_trials, score_trials
from openfield.trial import Phase
from support.records import make_cell, make_run, make_trial


def play(agent: str, afters: list[float], **fields: Any) -> list[CellRecord]:
    return [
        make_cell([], [0.9], [after], agent=agent, trial=make_trial(seed, **fields), id=f"{agent}{seed}")
        for seed, after in enumerate(afters)
    ]


def test_estimates_are_over_trials() -> None:
    (group,) = summarise(play("ada", [0.1, 0.2, 0.3, 0.4, 0.6]), BUILT_IN).groups
    assert str(group.estimates["after"]) == str(bound_mean([0.1, 0.2, 0.3, 0.4, 0.6], (0.0, 1.0)))
    assert group.trials == 5
    assert "training" not in group.estimates


def test_the_interquartile_mean_appears_from_twenty_trials_on() -> None:
    afters = [number / 20 for number in range(20)]
    assert summarise(play("ada", afters[1:]), BUILT_IN).groups[0].iqm is None
    (group,) = summarise(play("ada", afters), BUILT_IN, "usual").groups
    assert str(group.iqm) == str(estimate_iqm(afters))
    (safe,) = summarise(play("ada", afters), BUILT_IN).groups
    assert "(no conservative interval)" in str(safe.iqm)


@pytest.mark.parametrize("outcome", OUR_FAILURES)
def test_cells_that_no_agent_failed_are_counted_and_never_scored(outcome: str | None) -> None:
    good = play("ada", [0.1, 0.2, 0.3, 0.4, 0.6])
    bad = make_cell([], [0.0], [0.0], outcome=outcome, trial=make_trial(99), id="bad")
    (alone,), (group,) = summarise(good, BUILT_IN).groups, summarise([*good, bad], BUILT_IN).groups
    assert group.estimates == alone.estimates
    assert group.iqm == alone.iqm
    assert group.outcomes == {"done": 5, outcome: 1}
    assert group.valid == "fixed"


MISSING = ["cancelled", "superseded", None]
"""Outcomes of cells that are not over."""


class TestMissingTrials:
    """As long as trials are missing, the first ones count, with intervals that hold at every look."""

    afters = (0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 0.9)

    @pytest.mark.parametrize("outcome", MISSING)
    def test_trials_up_to_the_first_missing_one_count(self, outcome: str | None) -> None:
        cells = play("ada", self.afters)
        cells[5] = replace(cells[5], outcome=outcome)
        (group,) = summarise(cells, BUILT_IN).groups
        assert group.estimates["after"] == follow_mean(self.afters[:5])
        assert (group.valid, group.trials) == ("anytime", 5)
        assert group.outcomes == {"done": 6, outcome or "unfinished": 1}
        assert "anytime intervals over the first 5 of 7 trials" in group.note

    def test_which_trials_count_depends_on_when_they_were_entered_and_not_on_how_they_went(self) -> None:
        cells = play("ada", self.afters)
        long = [replace(cell, outcome=None) if cell.trial.seed in (0, 3) else cell for cell in cells]
        (late,), (early,) = (summarise(order, BUILT_IN).groups for order in (long[::-1], long))
        assert late.estimates["after"].n == 3
        assert "after" not in early.estimates

    def test_a_trial_counts_when_all_its_repeats_are_over(self) -> None:
        cells = [
            make_cell([], [0.9], [0.5], trial=make_trial(seed), id=f"{seed}/{n}", repeat=n, outcome=outcome)
            for seed, outcome in enumerate(["done"] * 6 + [None])
            for n in range(2)
        ]
        cells[-1] = replace(cells[-1], outcome="done")
        assert summarise(cells, BUILT_IN).groups[0].trials == 6

    def test_the_whole_plan_has_the_intervals_it_always_had(self) -> None:
        (group,) = summarise(play("ada", self.afters), BUILT_IN).groups
        assert (group.valid, group.estimates["after"]) == ("fixed", bound_mean(self.afters, (0.0, 1.0)))
        assert "anytime" not in group.note

    def test_trials_that_were_added_later_keep_the_intervals_anytime(self) -> None:
        cells = play("ada", self.afters)
        added = [*cells[:5], *(replace(cell, later="ada5") for cell in cells[5:])]
        (group,) = summarise(added, BUILT_IN).groups
        assert (group.valid, group.estimates["after"]) == ("anytime", follow_mean(self.afters))
        assert "trials were added after some had been played" in group.note
        (late,) = summarise([replace(cell, later="ada0") for cell in cells], BUILT_IN).groups
        assert late.valid == "fixed"

    def test_anytime_intervals_can_be_asked_for(self) -> None:
        (group,) = summarise(play("ada", self.afters), BUILT_IN, "anytime").groups
        assert (group.valid, group.estimates["after"]) == ("anytime", follow_mean(self.afters))

    def test_agents_are_compared_over_the_trials_that_count_for_both(self) -> None:
        ours, theirs = play("ada", self.afters), play("bob", [0.0] * 7)
        ours[6] = replace(ours[6], outcome=None)
        (one,) = summarise([*ours, *theirs], BUILT_IN).comparisons
        assert (one.valid, one.paired) == ("anytime", True)
        assert one.difference == follow_mean(self.afters[:6], (-1.0, 1.0))
        assert one.improvement == follow_mean([1.0] * 6)
        assert one.p == bet_against(self.afters[:6], 0.0, (-1.0, 1.0))

    def test_p_values_of_many_agents_are_corrected(self) -> None:
        scores = {"ada": [0.9] * 30, "bob": [0.1] * 30, "eve": [0.2] * 30}
        cells = [cell for agent, afters in scores.items() for cell in play(agent, afters)]
        cells[29] = replace(cells[29], outcome=None)
        comparisons = summarise(cells, BUILT_IN).comparisons
        assert [one.family for one in comparisons] == [3] * 3
        assert [one.p_holm for one in comparisons] == correct_by_holm([one.p for one in comparisons])

    def test_others_without_common_trials_have_neither_interval_nor_p_value(self) -> None:
        ours = play("ada", self.afters)
        theirs = [replace(cell, trial=make_trial(cell.trial.seed + 50)) for cell in play("bob", self.afters)]
        theirs[6] = replace(theirs[6], outcome=None)
        (one,) = summarise([*ours, *theirs], BUILT_IN).comparisons
        assert (one.p, one.improvement.low, one.difference.low) == (None, None, None)

    def test_a_baseline_that_is_behind_leaves_its_trials_out_for_all(self) -> None:
        ours, theirs = play("ada", self.afters), play("bob", [0.3] * 7)
        theirs[2] = replace(theirs[2], outcome=None)
        cells = [*ours, *theirs]
        (metric,) = (metric for metric in BUILT_IN if metric.name == "baseline")
        found, whole = (
            summarise(cells, [metric.among(related, "bob")]).groups[0].estimates["opti"]
            for related in (list_counted(cells), cells)
        )
        assert (found.n, whole.n) == (2, 6)

    def test_totals_have_no_interval(self) -> None:
        cells = [cell for name in ("swap", "ice") for cell in play("ada", self.afters, novelty=name)]
        cells = [replace(cell, id=str(number)) for number, cell in enumerate(cells)]
        (whole,) = summarise(cells, BUILT_IN).totals
        (part,) = summarise([*cells[:-1], replace(cells[-1], outcome=None)], BUILT_IN).totals
        assert whole.estimates["after"].low is not None
        assert (part.valid, part.estimates["after"].low) == ("anytime", None)

    def test_seeds_that_scenarios_share_are_no_further_trials_of_totals(self) -> None:
        cells = [cell for name in ("swap", "ice") for cell in play("ada", self.afters, novelty=name)]
        cells = [replace(cell, id=str(number)) for number, cell in enumerate(cells)]
        found = summarise(cells, BUILT_IN)
        (total,), one = found.totals, found.groups[0]
        assert (total.trials, total.estimates["after"]) == (one.trials, one.estimates["after"])
        assert f"{len(cells)} trials of {one.trials} seeds" in total.note
        others = [replace(cell, trial=replace(cell.trial, seed=cell.trial.seed + 100)) for cell in cells[one.trials :]]
        (total,) = summarise([*cells[: one.trials], *others], BUILT_IN).totals
        assert (total.trials, total.estimates["after"].n, " seeds" in total.note) == (len(cells), len(cells), False)

    def test_totals_are_over_what_changes_or_else_over_all(self) -> None:
        steady = [
            make_cell([], [value], [], trial=make_trial(seed, (), settings={"slip": value}), id=f"s{seed}")
            for seed, value in enumerate((0.1, 0.3))
        ]
        (total,) = summarise(steady, BUILT_IN).totals
        assert (total.scenario.novelty, total.estimates["before"].mean) == ((), pytest.approx(0.2))
        cells = [cell for name in ("swap", "ice") for cell in play("ada", self.afters, novelty=name)]
        cells = [replace(cell, id=str(number), agent=steady[0].agent) for number, cell in enumerate(cells)]
        (total,) = summarise([*steady, *cells], BUILT_IN).totals
        assert sum(total.outcomes.values()) == len(cells)

    def test_numbers_pooled_otherwise_have_no_interval(self) -> None:
        metric = Metric(
            "spread",
            "",
            (Number(name="spread", title="Spread", note="", pooled=True),),
            lambda cell: {},
            pool=lambda cells: {"spread": Estimate(0.4, 0.3, 0.5, len(cells), p=0.01)},
        )
        cells = play("ada", self.afters)
        assert summarise(cells, [metric]).groups[0].estimates["spread"].low == 0.3
        (group,) = summarise([*cells[:-1], replace(cells[-1], outcome=None)], [metric]).groups
        assert (group.estimates["spread"].low, group.estimates["spread"].p) == (None, None)


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
    assert str(group.estimates["delay"]) == "0.00, 3 trials"
    assert group.estimates["detected"].mean == 0.5


def test_an_agent_that_states_no_belief_has_no_detection_numbers() -> None:
    cells = [make_cell([0.5], [0.5], [0.5], [0.9], trial=make_trial(seed), id=str(seed)) for seed in range(6)]
    (group,) = summarise(cells, BUILT_IN).groups  # only in training
    for name in ("correct", "detected", "alarmed", "alarms", "cdt", "false_positive_trial"):
        assert str(group.estimates[name]) == "–"
    told = make_cell([], [0.5], [0.5], [0.1, 0.2], trial=make_trial(7), id="told")
    (group,) = summarise([*cells, told], BUILT_IN).groups
    assert (group.estimates["correct"].mean, group.estimates["correct"].n) == (0.0, 7)


def test_an_agent_that_failed_is_not_silent() -> None:
    """Its failed episodes are alarms and misses, even if it stated no belief before it failed."""
    cells = [make_cell([], [0.5], outcome="agent_error", trial=make_trial(seed), id=str(seed)) for seed in range(6)]
    (group,) = summarise(cells, BUILT_IN).groups
    names = ("correct", "detected", "alarmed", "delay_all")
    assert [group.estimates[name].mean for name in names] == [0.0, 0.0, 1.0, 4.0]
    (group,) = summarise(
        [*cells, make_cell([], [0.5], [0.5], trial=make_trial(7), id="c7")], BUILT_IN, policy="exclude"
    ).groups
    assert str(group.estimates["detected"]) == "–"


def test_an_unchanged_twin_is_a_trial_more_in_its_own_row_only() -> None:
    """It shares its seed with a changed trial, so any other row would have the same value twice."""
    cells = [make_cell([0.5, 0.5], [0.9] * 2, [0.2] * 4, [0.0] * 8, trial=make_trial(n), id=str(n)) for n in range(5)]
    calm = make_trial(0, phases=(Phase("training", 2), Phase("test", 6)), scenario=("swap",))
    twin = make_cell([0.5, 0.5], [0.9] * 6, (), [0.0] * 8, trial=calm, id="twin")
    for played in (twin, replace(twin, outcome="agent_error", episodes=twin.episodes[:3])):
        (group,) = summarise([*cells, played], BUILT_IN).groups
        counted = {name: found.n for name, found in group.estimates.items() if found.n > 5}
        assert set(counted) <= {"concordance"}
        assert group.estimates["alarmed_unchanged"].n == 1
        assert group.estimates["training"].n == 5


def test_conservative_intervals_use_the_range_of_each_number() -> None:
    beliefs = [[0.0] * 2 + [0.0] * delay + [1.0] * (4 - delay) for delay in (0, 1, 1, 2, 3)]
    trial = [make_trial(seed, phases=(Phase("test", 2), Phase("test", 4, ("swap",)))) for seed in range(5)]
    cells = [make_cell([], [0.9] * 2, [0.2] * 4, said, trial=trial[n], id=str(n)) for n, said in enumerate(beliefs)]
    summary = summarise(cells, BUILT_IN, "conservative")
    found = summary.groups[0].estimates
    assert summary.intervals == "conservative"
    assert found["delay"] == bound_mean([0.0, 1.0, 1.0, 2.0, 3.0], (0.0, 4.0))
    assert found["alarms"] == bound_mean([0.0] * 5, (0.0, 2.0))
    assert found["correct"] == bound_mean([1.0] * 5, (0.0, 1.0))
    assert found["change"] == bound_mean([-0.7] * 5, (-1.0, 1.0))
    usual = summarise(cells, BUILT_IN, "usual").groups[0].estimates
    assert found["first_detection"] == usual["first_detection"], "it has no range"
    assert found["first_detection"].low is not None


def test_a_count_of_a_world_that_decides_its_own_length_has_the_usual_interval() -> None:
    endless = [make_trial(seed, phases=(Phase("test"), Phase("test", 0, ("swap",)))) for seed in range(5)]
    cells = [make_cell([], [0.9], [0.2], [0.0, 1.0], trial=trial, id=trial.id) for trial in endless]
    (group,) = summarise(cells, BUILT_IN, "conservative").groups
    assert group.estimates["delay"] == estimate_count([0.0] * 5)


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
    (comparison,) = summarise(play("ada", ada) + play("bob", bob), BUILT_IN, "usual").comparisons
    assert comparison.paired
    assert comparison.improvement == estimate_paired_improvement(ada, bob)
    assert comparison.difference.mean == pytest.approx(0.28)


def test_p_values_of_a_scenario_are_corrected_together() -> None:
    cells = play("ada", [0.8] * 6) + play("bob", [0.5] * 6) + play("eve", [0.5] * 5 + [0.6])
    cells += play("ada", [0.8] * 6, red_light=True) + play("bob", [0.5] * 6, red_light=True)
    found = {(c.first, c.second, c.scenario.red_light): c for c in summarise(cells, BUILT_IN).comparisons}
    assert [(c.p, c.p_holm, c.family) for c in found.values()] == [
        (2 / 64, 6 / 64, 3),
        (2 / 64, 6 / 64, 3),
        (1.0, 1.0, 3),
        (2 / 64, 2 / 64, 1),
    ]


def test_few_trials_are_compared_without_interval_and_p() -> None:
    (comparison,) = summarise(play("ada", [0.5, 0.6]) + play("bob", [0.4, 0.7]), BUILT_IN).comparisons
    assert comparison.paired
    assert (str(comparison.difference), str(comparison.improvement)) == ("0.00, 2 trials", "0.50, 2 trials")
    assert (comparison.p, comparison.p_holm, comparison.family) == (None, None, 0)


def test_agents_on_other_trials_are_compared_all_against_all() -> None:
    moved = [msgspec.structs.replace(cell, trial=make_trial(100 + n)) for n, cell in enumerate(play("bob", [0.1] * 5))]
    (comparison,) = summarise(play("ada", [0.5] * 6) + moved, BUILT_IN).comparisons
    assert not comparison.paired
    assert comparison.improvement.mean == 1.0
    assert comparison.improvement.n == 5
    assert str(comparison.difference) == "–"
    assert comparison.p == permute_labels([0.5] * 6, [0.1] * 5) == pytest.approx(1 / 462)


def test_a_trial_that_never_reached_its_onset_is_not_compared_by_what_came_before() -> None:
    cells = [*play("ada", [0.1] * 5), make_cell([], [0.9], [], outcome="truncated", trial=make_trial(9))]
    assert list(score_trials(cells).values()) == [0.1] * 5


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


def with_controls() -> list[CellRecord]:
    """A run of two agents and a control that beats them and fails once."""
    cells = make_run()
    controls = [replace(cell, agent="aaron", id=f"c{n}", control=True) for n, cell in enumerate(cells[:10])]
    return [*cells, *controls, make_cell(agent="aaron", id="bad", outcome="agent_error", note="x", control=True)]


def test_controls_come_last_and_are_in_no_comparison() -> None:
    summary = summarise(with_controls(), BUILT_IN)
    assert [(group.agent, group.control) for group in summary.groups] == [
        ("ada", False),
        ("bob", False),
        ("aaron", True),
    ]
    assert [(one.first, one.second, one.family) for one in summary.comparisons] == [("ada", "bob", 1)]
    assert summary.outcomes == {"done": 20}
    assert summary.failures == ()


def test_controls_are_neither_a_baseline_nor_compared_with_one() -> None:
    cells = with_controls()
    related = [metric.among(cells, "ada") for metric in BUILT_IN if metric.relate]
    groups = {group.agent: group.estimates for group in summarise(cells, related).groups}
    assert groups["bob"]["opti"].n == 10
    assert groups["aaron"] == {}
    against = [metric.among(cells, "aaron") for metric in BUILT_IN if metric.relate]
    assert all(not group.estimates for group in summarise(cells, against).groups)


def play_people(scores: dict[str, dict[int, float]], agent: str = "human") -> list[CellRecord]:
    """Return cells of people: person -> seed of a trial -> performance after the onset."""
    return [
        make_cell([], [0.9], [after], agent=agent, trial=make_trial(seed), repeat=number, id=f"{agent}{seed}{name}")
        for number, (name, own) in enumerate(scores.items())
        for seed, after in own.items()
    ]


def name_persons(cells: list[CellRecord]) -> list[CellRecord]:
    return [replace(cell, person=f"p{cell.repeat}") for cell in cells]


def test_people_are_one_agent_whose_numbers_are_over_persons() -> None:
    scores = {f"p{number}": {0: number / 10, 1: (number + 2) / 10} for number in range(6)}
    means = [(number + 1) / 10 for number in range(6)]
    rival = play("ada", [0.5, 0.1, 0.3])
    summary = summarise([*name_persons(play_people(scores)), *rival], BUILT_IN, "usual")
    ada, human = summary.groups
    assert (human.people, human.trials, ada.people) == (6, 2, 0)
    assert human.estimates["after"] == replace(estimate_mean(means), people=True)
    assert human.estimates["concordance"].n == 0  # none of them stated a belief
    (one,) = summary.comparisons
    assert (one.first, one.second, one.paired) == ("ada", "human", True)
    assert str(one.difference) == str(estimate_mean([0.3 - mean for mean in means], (-1.0, 1.0)))
    assert one.improvement.n == 6
    assert one.p is not None
    assert "2 people" in str(replace(human.estimates["after"], n=2, low=None))


def test_two_groups_of_people_are_compared_person_with_person() -> None:
    novices = name_persons(play_people({f"p{n}": {0: n / 10} for n in range(5)}, "novices"))
    experts = name_persons(play_people({f"p{n}": {1: (n + 4) / 10} for n in range(6)}, "experts"))
    (one,) = summarise([*novices, *experts], BUILT_IN).comparisons
    assert not one.paired
    assert one.p == permute_labels([n / 10 for n in range(4, 10)], [n / 10 for n in range(5)])
    assert one.difference.mean == pytest.approx(0.65 - 0.2)
    assert one.improvement.people
