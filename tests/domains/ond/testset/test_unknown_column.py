"""Scores and labels for tests that have the unknown class last."""

from __future__ import annotations

from openfield.domains.ond.testset.results import number_from_one, put_unknown_last


def test_scores_and_bought_labels_are_turned_round() -> None:
    assert put_unknown_last([[0.5, 0.3, 0.2]]).tolist() == [[0.3, 0.2, 0.5]]
    lines = ["a,0", "|b,c|,1", "d,2", "e,9", "f,-1", "g,run,jump,sit,eat,sleep"]
    assert number_from_one("labels", lines, 2) == ["a,1", "|b,c|,2", "d,0", "e,0", "f,0", lines[-1]]
