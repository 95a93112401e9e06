"""The measures of drift detectors, beside what CapyMOA 0.15.1 gives for the same alarms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfield.errors import InvalidInput
from openfield.metrics.drift.alarms import find_rises, score_alarms

Change = float | tuple[float, float]

CAPYMOA: list[tuple[list[float], list[Change], int, int, tuple[float | None, ...]]] = [
    (
        [500, 1200, 1250, 2100],
        [1000, 2000],
        3000,
        200,
        (0.5, 1.0, 1.0, 0.6666666666666666, 150.0, 0.75, 0.6666666666666666, 1.3333333333333333),
    ),
    (
        [110, 120, 250, 301],
        [100, 200, 300],
        400,
        50,
        (1.0, 1.0, 1.0, 1.0, 20.333333333333332, 0.4066666666666666, 0.0, 10.0),
    ),
    ([], [100], 400, 50, (0.0, 0.0, 0.0, 0.0, None, None, 0.0, 0.0)),
    ([90], [100], 400, 50, (0.0, 0.0, 0.0, 0.0, None, None, 2.5, 2.5)),
    ([150], [100], 400, 50, (1.0, 1.0, 1.0, 1.0, 50.0, 1.0, 0.0, 2.5)),
    ([151], [100], 400, 50, (0.0, 0.0, 0.0, 0.0, None, None, 2.5, 2.5)),
    ([120, 190], [(100, 150)], 400, 50, (1.0, 1.0, 1.0, 1.0, 20.0, 0.4, 0.0, 5.0)),
    ([125], [100, 120], 400, 50, (1.0, 0.5, 0.5, 0.6666666666666666, 25.0, 0.5, 0.0, 2.5)),
    ([97, 549, 841], [204, 454, 716], 1000, 20, (0.0, 0.0, 0.0, 0.0, None, None, 3.0, 3.0)),
    (
        [61, 72, 93, 247, 435, 565],
        [(109, 109), (569, 569), (646, 656)],
        1000,
        20,
        (0.0, 0.0, 0.0, 0.0, None, None, 6.0, 6.0),
    ),
    (
        [407, 591, 600],
        [176, 278, 692, 695],
        1000,
        150,
        (0.3333333333333333, 0.25, 0.25, 0.28571428571428575, 129.0, 0.86, 2.0, 3.0),
    ),
    (
        [121, 148, 316, 554, 574, 585],
        [(97, 97), (276, 286)],
        1000,
        150,
        (0.5, 1.0, 1.0, 0.6666666666666666, 32.0, 0.21333333333333335, 3.0, 6.0),
    ),
    ([100, 382, 561, 730], [155, 235, 634, 645], 1000, 150, (0.5, 0.5, 0.5, 0.5, 121.5, 0.81, 2.0, 4.0)),
    (
        [322, 438, 465, 477, 545, 600, 796, 946],
        [(111, 111), (627, 637)],
        1000,
        150,
        (0.0, 0.0, 0.0, 0.0, None, None, 8.0, 8.0),
    ),
]
"""Alarms, changes, length and delay, and what `EvaluateDriftDetector(max_delay).calc_performance` returned for them."""


@pytest.mark.parametrize(("alarms", "changes", "length", "max_delay", "values"), CAPYMOA)
def test_the_values_are_those_of_capymoa(
    alarms: list[float], changes: list[Change], length: int, max_delay: int, values: tuple[float | None, ...]
) -> None:
    for ours, theirs in zip(score_alarms(alarms, changes, length, max_delay), values, strict=True):
        assert ours == (theirs if theirs is None else pytest.approx(theirs, abs=1e-12))


def test_by_hand() -> None:
    found = score_alarms([3, 12, 14, 40], [10, 30], 50, 5, rate_period=100)
    assert found.precision == 0.5  # 12 and 14 belong to the first change
    assert found.recall == pytest.approx(2 / 3)  # and the second was missed
    assert found.episode_recall == 0.5
    assert found.f1 == pytest.approx(2 * 0.5 * (2 / 3) / (0.5 + 2 / 3))
    assert (found.detection_time, found.normalised_time) == (2, 0.4)
    assert (found.false_alarm_rate, found.alarm_rate) == (4.0, 8.0)


def test_a_stream_without_changes_has_only_false_alarms() -> None:
    found = score_alarms([3, 12], [], 50, 5, rate_period=100)
    assert (found.precision, found.recall, found.episode_recall, found.f1) == (0.0, None, None, None)
    assert (found.false_alarm_rate, found.alarm_rate) == (4.0, 4.0)


@given(st.lists(st.integers(1, 99), unique=True), st.lists(st.integers(1, 99), unique=True), st.integers(1, 40))
def test_shares_are_shares(alarms: list[int], changes: list[int], max_delay: int) -> None:
    found = score_alarms(sorted(alarms), sorted(changes), 100, max_delay)
    assert all(share is None or 0.0 <= share <= 1.0 for share in found[:4])
    assert found.false_alarm_rate <= found.alarm_rate
    assert found.normalised_time is None or 0.0 <= found.normalised_time <= 1.0


@pytest.mark.parametrize(
    ("alarms", "changes", "length", "delay", "message"),
    [
        ([5, 3], [1], 9, 1, "must be in order"),
        ([3], [4, 4], 9, 1, "must be in order"),
        ([3], [(4, 2)], 9, 1, "must be in order"),
        ([3], [4], 0, 1, "length must be above 0, not 0"),
        ([3], [4], 9, 0, "max_delay must be above 0, not 0"),
    ],
)
def test_what_cannot_be_scored_is_refused(
    alarms: list[float], changes: list[Change], length: int, delay: int, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        score_alarms(alarms, changes, length, delay)


def test_rises() -> None:
    assert find_rises([True, True, False, False, True, False, True]) == [0, 4, 6]
    assert find_rises([]) == []
