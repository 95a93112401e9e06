"""A detector around any agent."""

import openfield as of
from openfield.domains.birds.agents import PassiveDetector
from openfield.metrics.detection import Rule


def test_a_detector_around_any_agent_reports_for_it():
    passes = [1] * 6 + [0] * 6

    def silent(turn):
        return of.Reply()

    detector, said = PassiveDetector(silent, Rule(5)), []
    for passed in passes:
        turn = of.Turn(last="terminated", phase="test", feedback={"state": "won" if passed else "lost"})
        said.append(detector(turn).belief.novel)
    assert said == [0.0] * 6 + [1.0] * 6, "one that never failed is not expected to"


def test_a_detector_watches_training_until_there_is_a_test_and_then_assumes_it():
    def silent(turn):
        return of.Reply()

    detector, said = PassiveDetector(silent, Rule(5)), []
    for phase, passed in [("training", 1)] * 6 + [("training", 0)] * 2 + [("test", 1)] * 5 + [("test", 0)] * 5:
        turn = of.Turn(last="terminated", phase=phase, feedback={"state": "won" if passed else "lost"})
        said.append(detector(turn).belief.novel)
    assert said == [0.0] * 6 + [1.0] * 2 + [0.0] * 7 + [1.0] * 3, "three of four passed in training, two of five now"
