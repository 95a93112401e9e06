"""Performance in each period, and adaptation after the onset, by hand."""

from __future__ import annotations

import pytest

from openfield.core import Belief
from openfield.metrics.performance import measure_adaptation, measure_performance, normalised_area, split_periods
from support.records import make_cell


class TestPerformance:
    def test_by_hand(self) -> None:
        found = measure_performance(make_cell([0.2, 0.4], [0.8, 1.0], [0.1, 0.2, 0.6]))
        assert found == pytest.approx({"training": 0.3, "before": 0.9, "after": 0.3})

    def test_leaves_out_what_the_world_did_not_give(self) -> None:
        found = measure_performance(make_cell([], [0.8, None, float("nan")], [None]))
        assert found == {"training": None, "before": 0.8, "after": None}


class TestAdaptation:
    def test_by_hand(self) -> None:
        found = measure_adaptation(make_cell([0.9], [0.8, 0.6], [0.0, 0.2, 0.4, 0.6]))
        want = {"before": 0.7, "after": 0.3, "change": -0.4, "asymptotic": 0.5, "area": (0.1 + 0.3 + 0.5) / 3}
        assert found == pytest.approx(want)

    def test_is_not_defined_without_an_onset(self) -> None:
        found = measure_adaptation(make_cell([], [0.5], []))
        assert found == {"before": 0.5, "after": None, "change": None, "asymptotic": None, "area": None}

    @pytest.mark.parametrize(("curve", "area"), [([], None), ([0.4], 0.4), ([0.0, 1.0], 0.5), ([1.0, 0.0, 1.0], 0.5)])
    def test_area(self, curve: list[float], area: float | None) -> None:
        assert normalised_area(curve) == area


class TestPeriods:
    def test_everything_from_the_first_novel_episode_on_is_after(self) -> None:
        parts = split_periods(make_cell([0.1, 0.2], [0.3], [0.4, 0.5]))
        assert [[e.number for e in period] for period in (parts.training, parts.before, parts.after)] == [
            [0, 1],
            [2],
            [3, 4],
        ]

    def test_without_an_onset_the_whole_test_is_before(self) -> None:
        parts = split_periods(make_cell([0.1], [0.3, 0.4], []))
        assert len(parts.before) == 2
        assert parts.after == ()

    @pytest.mark.parametrize(
        ("belief", "want"), [(Belief(0.3), 0.3), (Belief((0.1, 0.8, 0.2)), 0.8), (Belief(()), 0.0)]
    )
    def test_of_many_samples_the_highest_counts(self, belief: Belief, want: float) -> None:
        assert belief.highest == want
