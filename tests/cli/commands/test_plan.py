from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openfield.errors import Cancelled
from support.places import MAZE


def test_a_pilot_or_a_run_says_how_many_trials_are_needed_and_what_they_take(openfield: Any) -> None:
    words = ("--detect", "0.3", "--power", "0.8")
    said = openfield("plan", str(MAZE), "--agents", "compass", "random", *words, "-o", "pilot.sqlite")
    assert said.status == 0
    assert "to see a difference of 0.3 with a chance of 80 %" in said.out
    assert "compass - random" in said.out
    assert "As one run: --trials " in said.out
    again = json.loads(openfield("plan", "pilot.sqlite", *words, "--json").out)
    assert (again["needs"][0]["measured"], again["detect"]) == (10, 0.3)
    assert set(again["spending"]) == {"compass", "random"}
    drawn = openfield("plan", "pilot.sqlite", *words, "-o", "plan.svg")
    assert drawn.out.endswith("Drawn for all pairs of agents: plan.svg\n")
    assert "trials that change" in Path("plan.svg").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Name a domain for a pilot, or run files"),
        ((str(MAZE), "-a", "compass"), "compares agents: name two"),
        ((str(MAZE), "run.sqlite"), "Name one domain or run files"),
        ((str(MAZE), "-a", "compass", "random", "-o", "plan.txt"), "A figure is written as pdf, svg, png"),
        (("run.sqlite", "-o", "a.svg", "-o", "b.pdf"), "One run file and one figure are written"),
        (("run.sqlite", "-o", "pilot.sqlite"), "Existing runs have their agents and trials"),
        (("run.sqlite", "-a", "compass"), "Existing runs have their agents and trials"),
        ((str(MAZE), "--detect", "0"), "--detect cannot be 0.0"),
    ],
)
def test_mistakes_are_said_in_one_line(openfield: Any, words: tuple[str, ...], said: str) -> None:
    told = openfield("plan", *words)
    assert (told.status, told.out) == (2, "")
    assert said in told.err


def test_a_pilot_of_an_experiment_file_leaves_its_run_alone(openfield: Any) -> None:
    asked = 'register = "asked.json"\nuntil = "decided"\nmax_trials = 40\nsecret = "secret.key"\nshare = "0/2"\n'
    Path("study.toml").write_text(f"domain = '{MAZE}'\n{asked}[agents]\na = 'compass'\nb = 'random'\n")
    told = openfield("plan", "study.toml", "--trials", "3", "--json")
    assert json.loads(told.out)["needs"][0]["measured"] == 3
    assert sorted(path.name for path in Path().iterdir()) == ["study.toml"]


def test_a_pilot_that_is_stopped_is_not_kept_unless_it_has_a_file(openfield: Any, monkeypatch: Any) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise Cancelled("To go on: openfield resume FILE")

    monkeypatch.setattr("openfield.cli.shared.results.play_plan", stop)
    words = ("plan", str(MAZE), "-a", "compass", "-a", "random")
    said, kept = openfield(*words), openfield(*words, "-o", "pilot.sqlite")
    assert said.status == kept.status == 130
    assert "the pilot is not kept" in said.err
    assert "openfield resume FILE" in kept.err


def test_a_run_says_first_what_its_trials_can_show(openfield: Any) -> None:
    words = ("run", str(MAZE), "-a", "compass", "--trials", "1", "--workers", "0", "-o")
    two = openfield(*words, "two.sqlite", "-a", "random")
    assert two.err.startswith("openfield: 1 trial: no difference between agents can be seen, below 6 trials")
    assert "can be seen" not in openfield(*words, "one.sqlite").err


def test_a_run_that_stops_says_what_all_its_trials_can_show(openfield: Any) -> None:
    words = ("run", str(MAZE), "-a", "compass", "-a", "random", "--until", "decided", "--max-trials", "10")
    said = openfield(*words, "--trials", "5", "--workers", "0", "-o", "run.sqlite")
    assert said.err.startswith("openfield: at most 10 trials: only differences above 0.51 can be seen")
    assert "the run stops by itself" in said.out


def test_a_dry_run_refuses_a_rule_that_cannot_be_met(openfield: Any) -> None:
    words = ("run", str(MAZE), "-a", "compass", "-a", "random", "--until", "x - random: width < 0.2", "--dry-run")
    said = openfield(*words)
    assert (said.status, said.out) == (2, "")
    assert "Unknown agent 'x'" in said.err
