"""Detections, delays and false alarms of single trials, by hand."""

from __future__ import annotations

import pytest

from openfield.metrics.detection import (
    BAND,
    DETECTION,
    PUBLISHED,
    Rule,
    measure_detection,
    measure_passive,
    measure_rule,
)
from openfield.metrics.metric import undefined
from openfield.trial import Phase
from support.records import make_cell, make_trial

REST = {"alarmed_unchanged": None}


class TestDetection:
    def test_at_once(self) -> None:
        found = measure_detection(make_cell([0.5], [0.5], [0.5, 0.5], [0.0, 0.1, 0.9, 0.9]))
        assert found == {"correct": 1, "detected": 1, "delay": 0, "delay_all": 0, "alarmed": 0, "alarms": 0} | REST

    def test_late_and_after_false_alarms(self) -> None:
        found = measure_detection(make_cell([], [0.5] * 3, [0.5] * 4, [0.9, 0.1, 0.5, 0.2, 0.3, 0.6, 0.9]))
        assert found == {"correct": 0, "detected": 1, "delay": None, "delay_all": 4, "alarmed": 1, "alarms": 2} | REST

    def test_never(self) -> None:
        found = measure_detection(make_cell([], [0.5], [0.5] * 2, [0.1, 0.2]))
        assert found == {"correct": 0, "detected": 0, "delay": None, "delay_all": 2, "alarmed": 0, "alarms": 0} | REST

    def test_beliefs_in_training_are_no_false_alarms(self) -> None:
        assert measure_detection(make_cell([0.5], [0.5], [0.5], [0.9, 0.1, 0.9]))["alarms"] == 0

    def test_without_an_onset_there_is_nothing_to_detect(self) -> None:
        found = measure_detection(make_cell([], [0.5, 0.5], [], [0.9, 0.1]))
        assert found == undefined(DETECTION) | {"alarmed": 1, "alarms": 1}

    def test_an_unchanged_twin_has_a_row_of_its_own(self) -> None:
        trial = make_trial(phases=(Phase("test", 2),), scenario=("swap",))
        for said, alarmed in ((0.9, 1), (0.2, 0)):
            found = measure_detection(make_cell([], [0.5, 0.5], [], [0.1, said], trial=trial))
            assert found == undefined(DETECTION) | {"alarmed_unchanged": alarmed}

    def test_without_episodes_before_the_onset_there_are_no_false_alarms_to_count(self) -> None:
        found = measure_detection(make_cell([], [], [0.5], [0.9]))
        assert (found["alarms"], found["alarmed"], found["correct"]) == (None, None, 1)


NAMES = ("passive_correct", "passive_alarmed", "passive_delay", "fall_correct", "fall_alarmed", "fall_delay")


def test_a_fall_is_an_average_below_the_threshold():
    results = [1, 1, 1, 1, 1, 0, 0, 0, 0, 0]
    assert Rule(5, threshold=0.5).alarms(results, 1.0) == [7, 8, 9]
    assert Rule(5, threshold=0.2).alarms(results, 1.0) == [9]
    assert Rule(5, threshold=0.5).alarms(results[:4], 1.0) == [], "too few to average"


def test_a_departure_is_further_from_what_was_assumed_than_chance_explains():
    assert Rule(10, 1.5).alarms([1] * 10 + [0] * 5, 0.9) == [12, 13, 14]
    assert Rule(10, 2.0).alarms([0] * 10, 1.0) == [9]
    assert Rule(10, 1.5).alarms([1, 0] * 10, 0.5) == []


@pytest.mark.parametrize(
    ("training", "before", "after", "want"),
    [
        ([1] * 9 + [0], [1] * 10, [0] * 10, {"passive_correct": 1.0, "passive_alarmed": 0.0, "passive_delay": 2}),
        ([1] * 10, [0] * 10, [0] * 10, {"passive_correct": 0.0, "passive_alarmed": 1.0, "passive_delay": None}),
        ([], [1] * 10, [1] * 10, {"passive_correct": 0.0, "passive_alarmed": 0.0, "passive_delay": None}),
    ],
)
def test_trials_are_correct_wrong_or_missed(training, before, after, want):
    found = measure_passive(make_cell(training, before, after))
    assert {name: value for name, value in found.items() if name.startswith("passive")} == want


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        ([1] * 10, [0] * 10, (1.0, 0.0, 5)),
        ([0] * 10, [0] * 10, (0.0, 1.0, None)),
        ([1] * 10, [1, 0] * 5, (0.0, 0.0, None)),
        ([], [0] * 10, (1.0, None, 9)),
    ],
)
def test_a_threshold_needs_nothing_to_be_assumed(before, after, want):
    found = measure_passive(make_cell([], before, after))
    assert tuple(found[name] for name in NAMES[3:]) == want


def test_all_published_settings_can_be_measured():
    assert len(PUBLISHED) == 18
    assert BAND in PUBLISHED
    cell = make_cell([1] * 10, [1] * 10, [0] * 10)
    delays = {rule: measure_rule(cell, rule, "x")["x_delay"] for rule in PUBLISHED}
    assert delays[Rule(5, threshold=0.8)] < delays[Rule(10, threshold=0.8)] < delays[Rule(10, threshold=0.2)]


def test_without_an_onset_nothing_is_measured():
    assert measure_passive(make_cell([1], [1, 0], [])) == dict.fromkeys(NAMES)
