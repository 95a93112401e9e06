"""The programme's measures, against numbers worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from openfield.core import Belief
from openfield.metrics.baseline import BASELINE
from openfield.metrics.characterisation import measure_characterisation
from openfield.metrics.programme import measure_programme
from openfield.view import CellRecord
from records import make_cell, make_trial


@pytest.mark.parametrize(
    ("beliefs", "first", "correct", "false", "missed"),
    [
        ([0, 0, 0, 0, 1, 1], 4, 1, 0, 2),
        ([0, 0, 1, 1, 1, 1], 2, 1, 0, 0),
        ([0, 1, 1, 1, 1, 1], 1, 0, 1, None),
        ([0, 0, 0, 0, 0, 0], 6, 0, 0, None),
    ],
)
def test_detection(beliefs: list[float], first: int, correct: int, false: int, missed: int | None) -> None:
    cell = make_cell(before=[1, 1], after=[1, 1, 1, 1], beliefs=beliefs)
    found = measure_programme(cell)
    assert found == {"first_detection": first, "cdt": correct, "false_positive_trial": false, "m1": missed}


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
    found = against([make_cell(before=[1.0], after=[1.0], agent="ada"), failed, lone], "bob")
    assert set(found["ada"].values()) == {None}


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


@pytest.mark.parametrize(
    "level", ["high", [3], [{"level_number": "x", "probability": 1}], [{"a": 1, "b": 2}], {"1": 1}]
)
def test_an_agent_may_say_anything(level: Any) -> None:
    found = measure_characterisation(_saying(level))
    assert found["level_right"] is None


def _saying(level: Any) -> CellRecord:
    cell = described()
    belief = Belief(0.9, None, {"characterization": {"level": level}})
    return msgspec.structs.replace(
        cell, episodes=(cell.episodes[0], msgspec.structs.replace(cell.episodes[1], belief=belief))
    )
