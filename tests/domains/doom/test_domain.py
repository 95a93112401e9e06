"""What the domains say of their trials: how a lost episode is scored, on which wire, and in older files."""

from __future__ import annotations

from pathlib import Path

import pytest

from openfield.cli.shared.domain_options import prepare
from openfield.cli.shared.parameters import TrialOptions
from openfield.domains.doom import ARENA, DUEL
from openfield.domains.doom.domain import KEEPS_TIME, DoomDomain
from openfield.result import Result
from support.places import ROOT

OLD = ROOT / "tests" / "data" / "v0.1.0"


@pytest.mark.parametrize(
    ("domain", "words", "counts"),
    [(DUEL, [], False), (DUEL, ["death_counts=true"], True), (ARENA, [], True)],
)
def test_the_published_formula_stays_on_the_wire(
    domain: DoomDomain, words: list[str], counts: bool, tmp_path: Path
) -> None:
    options = TrialOptions(trials=1, set_=words)
    trials, _ = options.make(domain.name, prepare(domain, "serve", None), tmp_path / "run.sqlite", 5)
    assert {domain.settings_of(trial).death_counts for trial in trials} == {counts}
    assert {domain.settings_of(trial).death_counts for trial in domain.trials(1)} == {True}


def test_trials_of_another_run_are_served_as_they_are(tmp_path: Path) -> None:
    options = TrialOptions(trials_of=str(OLD / "doom-arena.sqlite"))
    assert options.make("doom-arena", prepare(ARENA, "serve", None), tmp_path / "run.sqlite", 5)[0]


@pytest.mark.parametrize(("name", "said"), [("doom", KEEPS_TIME), ("doom-arena", "")])
def test_a_report_names_the_formula_and_the_share_won(name: str, said: str) -> None:
    groups = [group for group in Result([OLD / f"{name}.sqlite"]).summary().groups if group.trials]
    assert groups
    for group in groups:
        assert "won_after" in group.estimates  # the world of these trials changes at once
        assert group.note.partition("; ")[2] == said
