"""Recorded interactions in the JSON formats of the first published task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import openfield as of
from openfield.cli import run_command
from openfield.core import Belief, Reply, Turn
from openfield.domains.doom import ARENA, DUEL
from openfield.domains.doom.exports import predicted_level
from openfield.journal.reader import Run

SHORT = {"episodes": 2, "before": 1, "limit": 30}


class Opinionated:
    """Predicts level 1 within an episode and level 2 at its end."""

    def __call__(self, turn: Turn) -> Reply:
        return Reply("nothing", Belief(0.9, 1)) if turn.last is None else Reply(None, Belief(0.9, 2))


def export(tmp_path: Path, domain: Any, red_light: bool = False, **settings: Any) -> list[dict[str, Any]]:
    path = tmp_path / "run.sqlite"
    trials = domain.trials(1, novelty=domain.default_novelty, red_light=red_light, **{**SHORT, **settings}, unchanged=0)
    of.run({"opinionated": lambda spec, seed: Opinionated()}, trials, path, workers=0)
    assert run_command(["export", str(path), "--format", "seed"]) == 0
    return [json.loads(line) for line in path.with_suffix(".seed").read_text().splitlines()]


@pytest.mark.engine
def test_the_published_keys_and_no_other(tmp_path: Path) -> None:
    rows = export(tmp_path, DUEL, red_light=True, training=1)
    vector = {"time_stamp", "player", "enemy", "projectiles"}
    assert all(row["feature_vector"].keys() == vector for row in rows)
    assert {row["action"] for row in rows} == {"nothing"}
    assert {row["novelty_indicator"] for row in rows} == {"null", "false", "true"}
    labelled = [row for row in rows if "feature_label" in row]
    assert len(labelled) == 30
    assert all(row["feature_label"].keys() == {"action"} for row in labelled)


@pytest.mark.engine
def test_the_last_interaction_of_an_episode_has_the_final_prediction_and_performance(tmp_path: Path) -> None:
    rows = export(tmp_path, ARENA, training=0, enemy_damage=(0, 0))
    assert [row["novelty_prediction"] for row in rows] == [*[1] * 29, 2] * 2
    with Run(tmp_path / "run.sqlite") as run:
        (cell,) = run.cells()
        assert [row["performance"] for row in rows[29::30]] == [episode.performance for episode in cell.episodes]
        assert {row["cell"] for row in rows} == {cell.id}


@pytest.mark.engine
def test_arrays_have_no_such_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trials = DUEL.trials(1, novelty="none", **SHORT, training=0, observation="array", unchanged=0)
    of.run("random", trials, tmp_path / "run.sqlite", workers=0)
    assert run_command(["export", str(tmp_path / "run.sqlite"), "--format", "seed"]) == 2
    assert "needs feature vectors" in capsys.readouterr().err
    assert not (tmp_path / "run.seed").exists()


@pytest.mark.parametrize(
    ("belief", "level"), [(None, 0), (Belief(0.9, 0), 0), (Belief(0.1, 3), 3), (Belief(0.7), 1), (Belief(1.0, 99), 10)]
)
def test_predictions_are_levels(belief: Belief | None, level: int) -> None:
    assert predicted_level(belief) == level


def test_detection_is_a_last_prediction_above_zero() -> None:
    assert not DUEL.detected(Belief(0.9, 0))
    assert DUEL.detected(Belief(0.1, 1))
    assert DUEL.detected(Belief(0.3, 0, {"threshold": 0.25}))
    assert not DUEL.detected(Belief(0.3, 5, {"threshold": 0.5}))
    assert DUEL.detected(Belief(0.5))
