"""Trials as tasks of Inspect, played by a model that Inspect makes up."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from openfield.result import Result
from support.places import MAZE, SUPPORT

PROGRAM = SUPPORT / "evaluate_maze.py"


@pytest.mark.slow
def test_a_model_of_inspect_plays_trials_that_openfield_records(tmp_path: Path) -> None:
    words = [sys.executable, PROGRAM, MAZE, tmp_path / "runs", tmp_path / "logs"]
    finished = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr
    log = json.loads(finished.stdout.splitlines()[-1])
    assert log["status"] == "success", log["error"]
    runs = sorted((tmp_path / "runs").glob("*.sqlite"))
    assert len(log["samples"]) == len(runs) == 2  # one that changes and one that does not
    for sample in log["samples"]:
        (path,) = [run for run in runs if run.name.startswith(sample["id"])]
        (cell,) = Result([path]).cells
        assert cell.outcome == "done", cell.note
        assert {episode.belief.highest for episode in cell.episodes if episode.belief} == {0.25}
        assert sample["tokens_out"] > 0
        judged = [each for each in cell.episodes if each.phase == "test" and each.novel == cell.trial.is_changed]
        assert sample["scores"] == [pytest.approx(sum(each.performance or 0.0 for each in judged) / len(judged))]
        assert not any(str(cell.trial.seed) in text for text in sample["said"])
