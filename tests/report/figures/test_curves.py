from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from openfield.journal.reader import StatedBeliefs
from openfield.report.figures.curves import MAX_POINTS, MAX_SINGLES, average_curves, pick_evenly, trace_agent, trace_all
from openfield.trial import Phase
from support.records import make_cell, make_run, make_trial


def test_curves_count_from_the_onset() -> None:
    (curve,) = trace_all([make_cell([0.1, 0.2], [0.3], [0.4, 0.5], [None, 0.9, 0.8, 0.1, 0.7])])
    assert [(p.at, p.performance, p.belief, p.detected, p.training) for p in curve] == [
        (-3, 0.1, None, False, True),
        (-2, 0.2, 0.9, False, True),
        (-1, 0.3, 0.8, True, False),
        (0, 0.4, 0.1, False, False),
        (1, 0.5, 0.7, True, False),
    ]


def test_curves_know_how_strong_a_change_is() -> None:
    plain = make_cell([], [0.5], [0.5, 0.5])
    episodes = [
        replace(each, strength=strength) for each, strength in zip(plain.episodes, (0.0, 0.4, 1.0), strict=True)
    ]
    curves = trace_all([plain, replace(plain, episodes=tuple(episodes))])
    assert [[point.strength for point in curve] for curve in curves] == [[None] * 3, [0.0, 0.4, 1.0]]
    assert [point.strength for point in average_curves(curves)] == [0.0, 0.4, 1.0]
    assert [point.strength for point in average_curves(curves[:1])] == [None] * 3


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
    assert [(point.at, point.performance) for point in average_curves(curves)] == [(-1, 0.5), (0, pytest.approx(0.4))]


@given(st.lists(st.integers(), max_size=50), st.integers(0, 20))
def test_picking_keeps_order_and_ends(items: list[int], most: int) -> None:
    picked = pick_evenly(list(enumerate(items)), most)
    assert len(picked) == min(most, len(items))
    assert picked == sorted(set(picked))
    if most > 1 and items:
        assert (picked[0][0], picked[-1][0]) == (0, len(items) - 1)


def test_single_trials_go_from_the_worst_to_the_best() -> None:
    cells = [make_cell([], [0.5], [score / 40], id=str(score)) for score in (30, 10, 20)]
    found = trace_agent("ada", "ada", cells, "")
    assert found is not None
    assert [single.cell for single in found.singles] == ["10", "20", "30"]
    many = trace_agent("ada", "ada", make_run(["ada"], trials=30), "")
    assert many is not None
    assert (many.trials, len(many.singles)) == (30, MAX_SINGLES)


def test_trials_that_never_reached_the_onset_are_counted() -> None:
    early = make_cell([], [0.5, 0.5], [], outcome="truncated", id="early")
    found = trace_agent("ada", "ada", [*make_run(["ada"], trials=10), early], "")
    assert found is not None
    assert (found.trials, found.early, found.unchanged) == (10, 1, 0)


def test_tests_that_count_steps_are_drawn_step_by_step() -> None:
    phases = (Phase("test", steps=60), Phase("test", steps=60, novelty=("swap",)))
    cell = make_cell([], [1.0] * 6, [0.0, 1.0], trial=make_trial(phases=phases))
    lengths = (10, 10, 10, 10, 10, 10, 45, 15)
    episodes = tuple(replace(one, turns=turns) for one, turns in zip(cell.episodes, lengths, strict=True))
    stated = StatedBeliefs(((30, 0.1), (65, 0.9)), 60, 120)
    found = trace_agent("ada", "ada", [replace(cell, episodes=episodes, stated=stated)], "")
    assert found is not None
    assert found.unit == "step"
    points = {point.at: point for point in found.mean}
    assert (min(points), max(points)) == (-60, 58)  # the change is in the middle, not after six of eight episodes
    assert [points[at].performance for at in (-2, 0, 42, 44, 46)] == [1.0, 0.0, 0.0, 0.5, 1.0]
    assert [points[at].belief for at in (-34, -32, 2, 4)] == [None, 0.1, 0.1, 0.9]


def test_a_detection_in_a_long_episode_is_marked_once() -> None:
    phases = (Phase("test", steps=600),)
    cell = make_cell([], [0.5], [], [0.9], trial=make_trial(phases=phases))
    (curve,) = trace_all([replace(cell, episodes=tuple(replace(one, turns=600) for one in cell.episodes))])
    assert [point.at for point in curve if point.detected] == [590]
