"""Performance in each period, and adaptation after the onset, by hand."""

from __future__ import annotations

import pytest

from openfield.metrics.performance import measure_adaptation, measure_performance, normalised_area
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
