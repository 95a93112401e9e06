"""What the domains say of their trials: how a lost episode is scored, and on which wire."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from openfield.cli.shared.domain_options import prepare_changes
from openfield.domains.doom import ARENA, DUEL
from openfield.domains.doom.domain import KEEPS_TIME, DoomDomain
from openfield.result import Result
from openfield.runner.experiment import ServedTrials, fill, parse_settings
from support.places import ROOT

KEPT = ROOT / "tests" / "data" / "kept"


@pytest.mark.parametrize(
    ("domain", "words", "counts"),
    [(DUEL, [], False), (DUEL, ["death_counts=true"], True), (ARENA, [], True)],
)
def test_the_published_formula_stays_on_the_wire(
    domain: DoomDomain, words: list[str], counts: bool, tmp_path: Path
) -> None:
    options = fill(ServedTrials, {"trials": 1, "settings": parse_settings(words)})
    trials, _ = options.make(domain, prepare_changes(domain, "serve", None), tmp_path / "run.sqlite", 5)
    assert {domain.settings_of(trial).death_counts for trial in trials} == {counts}
    assert {domain.settings_of(trial).death_counts for trial in domain.trials(1)} == {True}


def test_trials_of_another_run_are_served_as_they_are(tmp_path: Path) -> None:
    options = fill(ServedTrials, {"trials_of": str(KEPT / "doom-arena.sqlite")})
    assert options.make(ARENA, prepare_changes(ARENA, "serve", None), tmp_path / "run.sqlite", 5)[0]


@pytest.mark.parametrize("counts", [True, False])
def test_a_report_names_the_formula_and_the_share_won(counts: bool, tmp_path: Path) -> None:
    path = shutil.copy(KEPT / "doom.sqlite", tmp_path)
    with closing(sqlite3.connect(path)) as db, db:
        change = "UPDATE trials SET content = json_set(content, '$.settings.death_counts', json(?))"
        db.execute(change, (json.dumps(counts),))
    groups = [group for group in Result([path]).summary().groups if group.scenario.novelty]
    assert groups
    for group in groups:
        assert "won_after" in group.estimates
        assert (KEEPS_TIME in group.note) is not counts
