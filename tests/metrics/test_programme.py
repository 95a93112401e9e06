"""The programme's measures of one agent and against a baseline, by their definitions."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfield.journal.reader import CellRecord
from openfield.metrics.programme import BASELINE, measure_programme
from openfield.metrics.summary import explain_missing, summarise
from support.records import make_cell, make_trial


@pytest.mark.parametrize(
    ("beliefs", "first", "correct", "false", "missed"),
    [
        ([0, 0, 0, 0, 1, 1], 5, 1, 0, 2),
        ([0, 0, 1, 1, 1, 1], 3, 1, 0, 0),
        ([0, 1, 1, 1, 1, 1], 2, 0, 1, None),
        ([0, 0, 0, 0, 0, 0], 7, 0, 0, None),
    ],
)
def test_detection(beliefs: list[float], first: int, correct: int, false: int, missed: int | None) -> None:
    cell = make_cell(before=[1, 1], after=[1, 1, 1, 1], beliefs=beliefs)
    found = measure_programme(cell)
    assert found == {"first_detection": first, "cdt": correct, "false_positive_trial": false, "m1": missed}


scores = st.lists(st.floats(0.01, 1), min_size=1, max_size=9)


@given(scores, scores, st.data(), st.booleans())
def test_all_measures_by_their_definitions(
    before: list[float], after: list[float], data: st.DataObject, told: bool
) -> None:
    """One trial T = T_pre + T_post of agent a, beside baseline b, detections d(e)."""
    episodes = len(before) + len(after)
    beliefs = data.draw(st.lists(st.sampled_from([0.0, 0.4, 0.5, 1.0]), min_size=episodes, max_size=episodes))
    others = data.draw(st.lists(st.floats(0.01, 1), min_size=episodes, max_size=episodes))
    trial = make_trial(red_light=told)
    a = make_cell(before=before, after=after, beliefs=beliefs, agent="a", trial=trial)
    b = make_cell(before=others[: len(before)], after=others[len(before) :], agent="b", trial=trial)
    numbered = [(number, belief >= 0.5) for number, belief in enumerate(beliefs, 1)]
    first = min((number for number, detected in numbered if detected), default=episodes + 1)
    false = any(detected for _, detected in numbered[: len(before)])
    correct = len(before) < first <= episodes
    assert measure_programme(a) == {
        "first_detection": first,
        "cdt": correct,
        "false_positive_trial": false,
        "m1": first - len(before) - 1 if correct else None,
    }
    last = -(-len(after) // 3)
    post_b = others[len(before) :]
    nrp = (sum(after[-last:]) / last) / (sum(others[: len(before)]) / len(before))
    found = against([a, b], "b")
    assert found["a"]["nrp_given" if told else "nrp"] == pytest.approx(nrp)
    assert found["a"]["nrp" if told else "nrp_given"] is None
    mean_a, mean_b = sum(after) / len(after), sum(post_b) / len(post_b)
    assert found["a"]["opti"] == pytest.approx(mean_a / (mean_a + mean_b))
    assert found["a"]["apti"] == pytest.approx(sum(after[-last:]) / sum(post_b[-last:]))
    assert found["b"]["difficulty"] == pytest.approx(1 - mean_b / (sum(others[: len(before)]) / len(before)))


def test_nothing_is_defined_without_an_onset() -> None:
    assert set(measure_programme(make_cell(before=[1.0])).values()) == {None}


def against(cells: list[CellRecord], name: str | None) -> dict[str, Mapping[str, float | None]]:
    measure = BASELINE.among(cells, name).measure
    return {cell.agent: measure(cell) for cell in cells}


def test_against_a_baseline() -> None:
    ada = make_cell(before=[0.9], after=[0.2, 0.4, 0.6], agent="ada")
    bob = make_cell(before=[0.8], after=[0.4, 0.4, 0.2], agent="bob")
    found = against([ada, bob], "bob")
    assert found["ada"]["nrp"] == pytest.approx(0.6 / 0.8)
    assert found["ada"]["opti"] == pytest.approx(0.4 / (0.4 + 1 / 3))
    assert found["ada"]["apti"] == pytest.approx(0.6 / 0.2)
    assert found["ada"]["difficulty"] is found["ada"]["nrp_given"] is None
    assert (found["bob"]["opti"], found["bob"]["apti"]) == (0.5, 1.0)
    assert against([ada, bob], None)["ada"]["opti"] is None, "nobody is the baseline, for `random` did not play"


def test_trials_the_baseline_did_not_play_have_no_comparison() -> None:
    lone = make_cell(before=[0.8], after=[1.0], agent="ada", trial=make_trial(7))
    failed = msgspec.structs.replace(make_cell(before=[0.8], after=[1.0], agent="bob"), outcome="agent_gone")
    for cell in (lone, make_cell(before=[1.0], after=[1.0], agent="ada")):
        assert set(against([cell, failed], "bob")["ada"].values()) == {None}


def test_a_repeat_is_held_against_the_baselines_own_or_else_against_its_first() -> None:
    bobs = [make_cell(before=[0.5], after=[after], agent="bob", repeat=n) for n, after in enumerate((0.2, 0.4))]
    for repeat, apti in ((0, 0.8 / 0.2), (1, 0.8 / 0.4), (2, 0.8 / 0.2)):
        ada = make_cell(before=[0.5], after=[0.8], agent="ada", repeat=repeat)
        assert against([ada, *bobs], "bob")["ada"]["apti"] == pytest.approx(apti)


@pytest.mark.parametrize(("after", "theirs"), [(None, 0.4), (0.4, None)])
def test_nothing_is_compared_where_one_of_both_has_no_performance(after: float | None, theirs: float | None) -> None:
    ada, bob = (make_cell(before=[0.8], after=[p], agent=agent) for agent, p in (("ada", after), ("bob", theirs)))
    found = against([ada, bob], "bob")["ada"]
    assert found["opti"] is found["apti"] is None


def play_against_itself(afters: list[float], befores: list[float]) -> list[CellRecord]:
    return [
        make_cell(before=[before], after=[after], agent="random", trial=make_trial(number))
        for number, (before, after) in enumerate(zip(befores, afters, strict=True))
    ]


def test_quotients_are_of_means_over_trials() -> None:
    """The mean of quotients would be 5.2: one trial in which the baseline has nearly nothing would rule it."""
    cells = play_against_itself([0.5, 0.5, 0.5, 0.5, 0.5], [0.02, 0.8, 0.9, 0.8, 0.98])
    (group,) = summarise(cells, [BASELINE.among(cells, "random")]).groups
    nrp, apti = group.estimates["nrp"], group.estimates["apti"]
    assert nrp.mean == pytest.approx(2.5 / 3.5)
    assert nrp.low < nrp.mean < nrp.high  # type: ignore[operator]
    assert (apti.mean, apti.n) == (1.0, 5)


def test_trials_without_a_value_are_counted_and_a_baseline_of_0_is_a_value() -> None:
    cells = play_against_itself([0.5] * 6, [0.0, 0.5, 0.5, 0.5, 0.5, 0.5])
    lone = make_cell(before=[1.0], after=[1.0], agent="ada", trial=make_trial(77))
    also = make_cell(before=[1.0], after=[1.0], agent="ada", trial=make_trial(0))
    groups = summarise([*cells, lone, also], [BASELINE.among([*cells, lone, also], "random")]).groups
    found = {group.agent: group for group in groups}
    assert found["random"].estimates["nrp"].mean == pytest.approx(3 / 2.5)
    assert found["random"].estimates["nrp"].missing == 0
    assert "M3: NRP: 1 of 2 trials have no value" in found["ada"].note


def test_a_baseline_without_rows_says_why() -> None:
    ada = make_cell(before=[0.5], after=[0.5], agent="ada")
    assert BASELINE.among([ada], "bob").reason == "no trial was played by the baseline bob"
    assert "no trial has come to a change" in BASELINE.among([make_cell(before=[0.5], agent="ada")], "ada").reason
    assert "no cell has been played" in BASELINE.among([], "ada").reason
    assert BASELINE.among([ada], "ada").reason == ""
    related = BASELINE.among([ada], "bob")
    assert list(explain_missing(summarise([ada], [related]), [related])) == [
        "No row of baseline: no trial was played by the baseline bob."
    ]


def test_each_domain_has_its_own_baseline() -> None:
    cells = [
        make_cell(before=[1.0], after=[score], agent=agent, trial=make_trial(novelty=("slim:easy",), domain="doom"))
        for agent, score in (("ada", 0.9), ("reference", 0.3))
    ]
    assert against(cells, None)["ada"]["opti"] == pytest.approx(0.75)


@pytest.mark.parametrize(("given", "there", "other"), [(False, "nrp", "nrp_given"), (True, "nrp_given", "nrp")])
def test_given_detection_is_kept_apart(given: bool, there: str, other: str) -> None:
    cell = make_cell(before=[1.0], after=[0.8], agent="ada", trial=make_trial(red_light=given))
    found = against([cell], "ada")["ada"]
    assert (found[there], found[other]) == (0.8, None)


def test_difficulty_is_the_reference_agents_loss() -> None:
    cells = [make_cell(before=[0.8], after=[0.2], agent="ref"), make_cell(before=[0.1], after=[1.0], agent="other")]
    assert against(cells, "ref")["ref"]["difficulty"] == pytest.approx(0.75)


def test_difficulty_is_relative_to_all_normal_episodes() -> None:
    """A single bad trial before the onset makes no novelty easy."""
    trials = [
        make_cell(before=[before], after=[0.2], agent="ref", trial=make_trial(number))
        for number, before in enumerate((0.0, 0.8))
    ]
    measure = BASELINE.among(trials, "ref").measure
    assert [measure(cell)["difficulty"] for cell in trials] == [pytest.approx(0.5)] * 2
