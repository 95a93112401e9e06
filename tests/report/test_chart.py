from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfield.report.chart import (
    MAX_POINTS,
    Frame,
    Point,
    average,
    draw_interval,
    draw_panel,
    draw_trial,
    pick_evenly,
    trace_all,
)
from support.records import make_cell, make_run


def test_curves_count_from_the_onset() -> None:
    (curve,) = trace_all([make_cell([0.1, 0.2], [0.3], [0.4, 0.5], [None, 0.9, 0.8, 0.1, 0.7])])
    assert [(p.at, p.performance, p.belief, p.detected, p.training) for p in curve] == [
        (-3, 0.1, None, False, True),
        (-2, 0.2, 0.9, False, True),
        (-1, 0.3, 0.8, True, False),
        (0, 0.4, 0.1, False, False),
        (1, 0.5, 0.7, True, False),
    ]


def test_without_an_onset_they_count_from_the_start_of_the_test() -> None:
    (curve,) = trace_all([make_cell([0.1, 0.2], [0.3, 0.4], [])])
    assert [point.at for point in curve] == [-2, -1, 0, 1]


def test_long_curves_are_averaged_in_bins_that_keep_the_onset() -> None:
    (curve,) = trace_all([make_cell([], [1.0] * 101, [0.0] * 200)])
    assert len(curve) <= MAX_POINTS + 1
    assert {point.performance for point in curve} == {0.0, 1.0}
    assert next(point.at for point in curve if point.performance == 0.0) == 0


def test_the_mean_curve_needs_half_of_the_trials() -> None:
    curves = trace_all([make_cell([], [0.0], [0.2, 0.4]), make_cell([], [1.0], [0.4]), make_cell([], [0.5], [0.6])])
    assert [(point.at, point.performance) for point in average(curves)] == [(-1, 0.5), (0, pytest.approx(0.4))]


@given(st.lists(st.integers(), max_size=50), st.integers(0, 20))
def test_picking_keeps_order_and_ends(items: list[int], most: int) -> None:
    picked = pick_evenly(list(enumerate(items)), most)
    assert len(picked) == min(most, len(items))
    assert picked == sorted(set(picked))
    if most > 1 and items:
        assert (picked[0][0], picked[-1][0]) == (0, len(items) - 1)


def test_panels_and_trials_are_drawings_with_a_title() -> None:
    cells = make_run(trials=5)
    curves = trace_all(cells)
    panel = ElementTree.fromstring(draw_panel("a <b>", curves, 3, onset=True))
    assert panel.findtext("title") == "a <b>"
    assert len(panel.findall("path[@class='f']")) == 3
    trial = ElementTree.fromstring(draw_trial("one", curves[0], onset=True))
    assert [path.get("class") for path in trial.findall("path")][:4] == ["a", "o", "b", "p"]


def test_false_alarms_are_hollow_and_the_detection_is_filled() -> None:
    (curve,) = trace_all([make_cell([], [0.5] * 2, [0.5] * 3, [0.9, 0.9, 0.1, 0.9, 0.9])])
    trial = ElementTree.fromstring(draw_trial("one", curve, onset=True))
    words = [path.findtext("title") for path in trial.findall("path") if path.find("title") is not None]
    assert words == ["false alarm", "false alarm", "detected after 1"]


def test_intervals_are_shares_of_the_range() -> None:
    assert draw_interval(-0.5, 0.0, 0.5, (-1.0, 1.0)) == '<i class="iv z" style="--a:0.25;--b:0.5;--c:0.75"></i>'


def test_labels_of_curves_that_end_low_stay_above_the_axis_and_apart() -> None:
    low = tuple(Point(at, 0.0, 0.01) for at in range(3))
    places = [int(y) for y in re.findall(r'<text class="l \w" x="\d+" y="(\d+)">', draw_panel("x", [low], 0, True))]
    frame = Frame(0, 2, 380, 190)
    assert len(places) == 2
    assert max(places) <= frame.y(0)
    assert abs(places[0] - places[1]) >= 13
