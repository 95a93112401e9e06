"""A domain that keeps its promises passes all controls; one whose numbers can be had without looking does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import openfield as of
from openfield.domain import Domain
from openfield.metrics.concordance import estimate_concordance
from openfield.metrics.metric import Number
from openfield.registry import use_domain
from openfield.testing import Report, check_controls, controls
from openfield.testing.controls import draw_trials, find_gain
from support import leaky_domains
from support.walks import WALKS
from support.worlds import TINY

SCORE = Number(name="x", title="Score", note="")
MANY = {str(number): 0.1 for number in range(20)}


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Play everything in this process, which is much faster, and leave out the peeker."""
    monkeypatch.setattr(controls, "WORKERS", 0)


def failed(report: Report) -> list[str]:
    return [finding.subject for finding in report.findings if not finding.passed]


@pytest.mark.usefixtures("inline")
def test_a_sound_domain_passes() -> None:
    report = check_controls(WALKS, changed=10)
    assert report.passed, str(report)
    assert [finding.subject for finding in report.findings if finding.judged] == [
        "control counter",
        "control alarmist",
        "control quitter",
        "control quitter",
        "control enumerator, sealed",
    ]


@pytest.mark.usefixtures("inline")
@pytest.mark.parametrize(
    ("domain", "found_by"),
    [
        (leaky_domains.FIXED_ONSET, ["counter", "alarmist", "quitter", "enumerator, sealed"]),
        (leaky_domains.PUBLIC_TRIALS, ["enumerator, sealed"]),
    ],
)
def test_a_leaky_domain_fails(domain: Domain[Any], found_by: list[str]) -> None:
    assert failed(check_controls(domain, changed=10)) == [f"control {name}" for name in found_by]


@pytest.mark.sandbox
def test_the_peeker_finds_nothing_in_isolation_but_ids_that_tell() -> None:
    assert failed(check_controls(leaky_domains.TELLING_IDS, changed=8)) == ["control peeker, isolated"]


def test_the_trials_are_blind_even_if_the_settings_of_checks_fix_the_onset() -> None:
    trials = draw_trials(use_domain(TINY), 28, 0)
    assert len(trials) == 40
    assert {trial.window for trial in trials} == {(2, 4)}
    assert sum(not trial.is_changed for trial in trials) == 12


@pytest.mark.parametrize("n", range(8))
def test_no_counter_does_better_than_chance(n: int, path: Path) -> None:
    settings = {"training": 0, "before": 3, "after": 4, "length": 1, "onset": "1-5"}
    result = of.run([f"counter:{n}", "alarmist"], of.trials(TINY, 6, **settings), path)
    for name in (f"counter:{n}", "alarmist"):
        found = estimate_concordance([cell for cell in result.cells if cell.agent == name])
        assert found is not None
        assert (found.mean, found.p) == (0.5, 1.0)


def test_the_peeker_knows_everything_in_the_process_of_the_world(path: Path) -> None:
    result = of.run("peeker", draw_trials(use_domain(TINY), 10, 0), path)
    found = estimate_concordance(result.cells)
    assert found is not None
    assert found.mean == 1.0
    assert found.p is not None
    assert found.p < controls.ALPHA


def test_better_numbers_in_the_same_trials_are_a_gain() -> None:
    assert "better by 0.40 in the same trials" in find_gain(SCORE, dict.fromkeys(MANY, 0.5), MANY)
    assert find_gain(SCORE, dict.fromkeys(MANY, 0.0), MANY) == ""
    assert find_gain(SCORE, {**MANY, "3": 0.9}, MANY) == "", "one lucky trial is chance"


def test_leaving_out_what_went_badly_is_a_gain() -> None:
    stays = {str(number): float(number % 2) for number in range(20)}
    assert "leaves out 10 trials" in find_gain(SCORE, {key: 1.0 for key in stays if stays[key]}, stays)
    assert find_gain(SCORE, {key: 0.0 for key in stays if not stays[key]}, stays) == ""


def test_a_lower_number_may_be_the_better_one() -> None:
    lower = Number(name="x", title="Alarms", note="", better="lower")
    assert find_gain(lower, dict.fromkeys(MANY, 0.5), MANY) == ""
    assert find_gain(lower, dict.fromkeys(MANY, 0.0), MANY)
    delay = Number(name="x", title="Delay", note="", better="lower", partial=True)
    assert find_gain(delay, dict.fromkeys(MANY, 0.0), MANY) == "", "delays enter no comparison"


def test_without_novelties_there_is_nothing_to_judge() -> None:
    class Still(type(TINY)):  # type: ignore[misc]
        name, novelties, default_novelty = "still", (), None

    (finding,) = check_controls(Still()).findings
    assert not finding.judged
