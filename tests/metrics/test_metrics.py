from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfield.core import Belief
from openfield.metrics import BUILT_IN
from openfield.metrics.adaptation import measure_adaptation, normalised_area
from openfield.metrics.detection import measure_detection
from openfield.metrics.performance import measure_performance
from openfield.metrics.stats import closed
from openfield.metrics.stretches import split
from support.records import make_cell

performances = st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=8)
beliefs = st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=24)


class TestStretches:
    def test_everything_from_the_first_novel_episode_on_is_after(self) -> None:
        parts = split(make_cell([0.1, 0.2], [0.3], [0.4, 0.5]))
        assert [[e.number for e in stretch] for stretch in (parts.training, parts.before, parts.after)] == [
            [0, 1],
            [2],
            [3, 4],
        ]

    def test_without_an_onset_the_whole_test_is_before(self) -> None:
        parts = split(make_cell([0.1], [0.3, 0.4], []))
        assert len(parts.before) == 2
        assert parts.after == ()

    @pytest.mark.parametrize(
        ("belief", "want"), [(Belief(0.3), 0.3), (Belief((0.1, 0.8, 0.2)), 0.8), (Belief(()), 0.0)]
    )
    def test_of_many_samples_the_highest_counts(self, belief: Belief, want: float) -> None:
        assert belief.highest == want


class TestPerformance:
    def test_by_hand(self) -> None:
        found = measure_performance(make_cell([0.2, 0.4], [0.8, 1.0], [0.1, 0.2, 0.6]))
        assert found == pytest.approx({"training": 0.3, "before": 0.9, "after": 0.3})

    def test_leaves_out_what_the_world_did_not_give(self) -> None:
        found = measure_performance(make_cell([], [0.8, None, float("nan")], [None]))
        assert found == {"training": None, "before": 0.8, "after": None}


class TestDetection:
    def test_at_once(self) -> None:
        found = measure_detection(make_cell([0.5], [0.5], [0.5, 0.5], [0.0, 0.1, 0.9, 0.9]))
        assert found == {"correct": 1, "detected": 1, "delay": 0, "alarmed": 0, "alarms": 0}

    def test_late_and_after_false_alarms(self) -> None:
        found = measure_detection(make_cell([], [0.5] * 3, [0.5] * 4, [0.9, 0.1, 0.5, 0.2, 0.3, 0.6, 0.9]))
        assert found == {"correct": 0, "detected": 1, "delay": 2, "alarmed": 1, "alarms": 2}

    def test_never(self) -> None:
        found = measure_detection(make_cell([], [0.5], [0.5] * 2, [0.1, 0.2]))
        assert found == {"correct": 0, "detected": 0, "delay": None, "alarmed": 0, "alarms": 0}

    def test_beliefs_in_training_are_no_false_alarms(self) -> None:
        assert measure_detection(make_cell([0.5], [0.5], [0.5], [0.9, 0.1, 0.9]))["alarms"] == 0

    def test_without_an_onset_there_is_nothing_to_detect(self) -> None:
        found = measure_detection(make_cell([], [0.5, 0.5], [], [0.9, 0.1]))
        assert found == {"correct": None, "detected": None, "delay": None, "alarmed": 1, "alarms": 1}

    def test_without_episodes_before_the_onset_there_are_no_false_alarms_to_count(self) -> None:
        found = measure_detection(make_cell([], [], [0.5], [0.9]))
        assert (found["alarms"], found["alarmed"], found["correct"]) == (None, None, 1)


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


@given(performances, performances, performances, beliefs)
def test_numbers_stay_in_their_bounds(
    training: list[float | None], before: list[float | None], after: list[float | None], said: list[float | None]
) -> None:
    total = len(training) + len(before) + len(after)
    cell = make_cell(training, before, after, said[:total])
    for metric in BUILT_IN:
        found = metric.measure(cell)
        assert set(found) == {number.name for number in metric.numbers}
        for number in metric.numbers:
            value, bounds = found[number.name], closed(number.bounds) or (0, total + 1)
            assert value is None or bounds[0] - 1e-12 <= value <= bounds[1] + 1e-12
