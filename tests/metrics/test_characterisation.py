"""Levels and words of a characterisation, right, wrong and odd."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from openfield.core import Belief
from openfield.journal.reader import CellRecord
from openfield.metrics.characterisation import measure_characterisation
from support.records import make_cell, make_trial


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
