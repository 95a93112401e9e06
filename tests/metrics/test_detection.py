"""Detections, delays and false alarms of single trials, by hand."""

from __future__ import annotations

from openfield.metrics.detection import measure_detection
from support.records import make_cell


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
