"""Sealed trials cannot be computed from what an agent knows, and can be played again afterwards."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from openfield.errors import InvalidInput
from openfield.journal.writer import Journal
from openfield.registry import find_domain
from openfield.result import Result
from openfield.runner.experiment import make_experiment
from openfield.runner.plan import make_plan
from openfield.runner.run import run_plan
from openfield.runner.sealing import DIGEST_FACT, SEED_FACT, seal
from openfield.trial import Trial
from support.places import MAZE

SMALL: dict[str, Any] = {"domain": MAZE, "trials": 2, "settings": {"before": 1, "after": 1, "training": 0}}


def make_trials(path: Path, **keys: Any) -> tuple[list[Trial], dict[str, str]]:
    return make_experiment(keys).make_trials(find_domain(keys["domain"]), path)


def test_a_sealed_run_draws_128_bits_and_keeps_them(path: Path) -> None:
    trials, facts = make_trials(path, **SMALL, sealed=True)
    again, _ = make_trials(path, **SMALL, sealed=True)
    assert int(facts[SEED_FACT], 16) >> 96  # with a chance of 2^-32 this fails
    assert {trial.id for trial in trials}.isdisjoint(trial.id for trial in again)
    plan = make_plan("random", trials)
    with Journal(path) as journal:
        journal.enter(plan.cells, plan.sources, facts)
    assert [trial.id for trial in make_trials(path, **SMALL, sealed=True)[0]] == [trial.id for trial in trials]


def test_a_secret_is_shared_by_runs_and_stays_in_its_file(path: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    seed, facts = seal(path, secret)
    assert seal(tmp_path / "other.sqlite", secret) == (seed, facts)
    assert list(facts) == [DIGEST_FACT]
    assert f"{seed:032x}" not in facts[DIGEST_FACT]
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600


def test_a_secret_that_others_can_read_is_refused(path: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    seal(path, secret)
    secret.chmod(0o640)
    with pytest.raises(InvalidInput, match=r"Others can read .* chmod 600"):
        seal(path, secret)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_secret_is_a_regular_file(path: Path, tmp_path: Path, make: Callable[[Path], None]) -> None:
    secret = tmp_path / "secret"
    make(secret)
    with pytest.raises(InvalidInput, match="secret is not a regular file"):
        seal(path, secret)


@pytest.mark.parametrize("content", [b"", b"12", b"\xff" * 32, b"z" * 32])
def test_a_file_that_is_no_secret_is_refused(path: Path, tmp_path: Path, content: bytes) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(content)
    secret.chmod(0o600)
    with pytest.raises(InvalidInput, match="32 hexadecimal digits"):
        seal(path, secret)


def test_the_trials_of_a_run_are_played_again(path: Path) -> None:
    trials, facts = make_trials(path, **SMALL, sealed=True)
    plan = make_plan("random", trials)
    with Journal(path) as journal:
        journal.enter(plan.cells, plan.sources, facts)
    again, _ = make_trials(path, domain=MAZE, trials_of=str(path))
    assert sorted(trial.id for trial in again) == sorted(trial.id for trial in trials)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"sealed": True, "seed": 3}, "either --seed, or --sealed"),
        ({"trials_of": "x.sqlite", "trials": 3}, "leave out trials"),
        ({"trials_of": "x.sqlite", "sealed": True}, "leave out sealed"),
    ],
)
def test_contradicting_sources_of_trials_are_refused(path: Path, keys: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make_trials(path, domain=MAZE, **keys)


def test_a_run_without_trials_of_the_domain_is_refused(path: Path) -> None:
    trials, facts = make_trials(path, **SMALL)
    plan = make_plan("random", trials)
    with Journal(path) as journal:
        journal.enter(plan.cells, plan.sources, facts | plan.describe())
    with pytest.raises(InvalidInput, match=rf"has no trials of commai\. It has trials of {re.escape(MAZE)}\.$"):
        make_trials(path, domain="commai", trials_of=str(path))


def test_the_seed_is_shown_only_after_the_run(path: Path, tmp_path: Path) -> None:
    trials, facts = make_trials(path, **SMALL, sealed=True)
    plan = replace(make_plan("random", trials), facts=facts)
    with Journal(path) as journal:
        journal.enter(plan.cells, plan.sources, facts)
    page = Result([path]).page(tmp_path / "page.html")
    assert facts[SEED_FACT] not in page.read_text()
    run_plan(plan, path)
    Result([path]).page(page)
    assert facts[SEED_FACT] in page.read_text()
