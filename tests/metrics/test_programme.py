"""The programme's measures, against numbers worked out by hand."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from openfield.core import Belief
from openfield.metrics.characterisation import measure_characterisation
from openfield.metrics.programme import compare_with_baseline, difficulties, measure_programme
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


def test_against_a_baseline() -> None:
    ada = make_cell(before=[0.9], after=[0.2, 0.4, 0.6], agent="ada")
    bob = make_cell(before=[0.8], after=[0.4, 0.4, 0.2], agent="bob")
    lone = make_cell(before=[0.8], after=[1.0], agent="ada", trial=make_trial(7))
    against = {found.agent: found for found in compare_with_baseline([ada, bob, lone], "bob")}
    assert against["ada"].trials == 1
    assert against["ada"].nrp == pytest.approx(0.6 / 0.8)
    assert against["ada"].opti == pytest.approx(0.4 / (0.4 + 1 / 3))
    assert against["ada"].apti == pytest.approx(0.6 / 0.2)
    assert against["bob"].opti == against["bob"].apti / 2 == 0.5
    assert compare_with_baseline([ada, bob], "bob", last=3)[0].apti == pytest.approx(1.2)


def test_given_detection_is_kept_apart() -> None:
    cells = [
        make_cell(before=[1.0], after=[score], agent="ada", trial=make_trial(red_light=given))
        for given, score in ((False, 0.5), (True, 0.8))
    ]
    assert [(a.given, a.nrp) for a in compare_with_baseline(cells, "ada")] == [(False, 0.5), (True, 0.8)]


def test_difficulty_is_the_reference_agents_loss() -> None:
    cells = [make_cell(before=[0.8], after=[0.2], agent="ref"), make_cell(before=[0.1], after=[1.0], agent="other")]
    assert difficulties(cells, "ref") == {"swap": pytest.approx(0.75)}


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
