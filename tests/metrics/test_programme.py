"""The programme's measures, against numbers worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfield.core import Belief
from openfield.journal.reader import CellRecord
from openfield.metrics.baseline import BASELINE
from openfield.metrics.characterisation import measure_characterisation
from openfield.metrics.programme import measure_programme
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


def described(**detail: Any) -> CellRecord:
    trial = make_trial(novelty=("201:easy",), domain="doom-arena")
    cell = make_cell(before=[1.0], after=[1.0], trial=trial)
    belief = Belief(0.9, detail.pop("level", None), {"characterization": detail} if detail else None)
    episodes = (cell.episodes[0], msgspec.structs.replace(cell.episodes[1], belief=belief))
    return msgspec.structs.replace(cell, episodes=episodes)


def test_characterisation() -> None:
    levels = [{"level_number": 1, "probability": 0.5}, {"level_number": 2, "probability": 0.25}]
    found = measure_characterisation(described(levels=None, entity="trap", attribute="size", change="increase"))
    assert found["words_right"] == pytest.approx(2 / 3)
    cell = described(entity="trap")
    belief = msgspec.structs.replace(
        cell.episodes[1].belief or Belief(0.0), detail={"characterization": {"level": levels}}
    )
    cell = msgspec.structs.replace(
        cell, episodes=(cell.episodes[0], msgspec.structs.replace(cell.episodes[1], belief=belief))
    )
    found = measure_characterisation(cell)
    assert (found["level_loss"], found["level_right"]) == (pytest.approx(0.6931, abs=1e-4), 1.0)
    assert measure_characterisation(described(level=2))["level_right"] == 0.0
    assert measure_characterisation(described(level=0))["level_right"] == 0.0
    assert measure_characterisation(described(level=-1))["level_right"] is None


@pytest.mark.parametrize(
    "level", ["high", [3], [{"level_number": "x", "probability": 1}], [{"a": 1, "b": 2}], {"1": 1}]
)
def test_an_agent_may_say_anything(level: Any) -> None:
    found = measure_characterisation(_saying(level))
    assert found["level_right"] is None


@pytest.mark.parametrize(
    ("levels", "right"),
    [
        ([(number, 1.0) for number in range(9)], 1 / 9),
        ([(1, 100.0)], 1.0),
        ([(1, 0.2), (1, 0.3)], 0.5),
        ([(1, 0.5), (2, -3.0)], 0.5),
        ([(1, 0.5), (2, 2.0)], 1 / 3),
        ([(2, 1.0)], 1e-6),
    ],
)
def test_no_distribution_is_better_than_the_truth(levels: list[tuple[int, float]], right: float) -> None:
    told = [{"level_number": level, "probability": share} for level, share in levels]
    assert measure_characterisation(_saying(told))["level_loss"] == pytest.approx(-math.log(right))


@pytest.mark.parametrize("share", [0.0, -5.0, math.nan])
def test_a_level_held_impossible_is_not_the_one_named(share: float) -> None:
    assert measure_characterisation(_saying([{"level_number": 1, "probability": share}]))["level_right"] == 0.0


def test_an_unknown_level_is_no_opinion() -> None:
    assert measure_characterisation(described(level=-1))["level_loss"] is None


def _saying(level: Any) -> CellRecord:
    cell = described()
    belief = Belief(0.9, None, {"characterization": {"level": level}})
    return msgspec.structs.replace(
        cell, episodes=(cell.episodes[0], msgspec.structs.replace(cell.episodes[1], belief=belief))
    )
