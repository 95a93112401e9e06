"""`examples/detectors.toml`: the bench of detectors, planned whole and played very small."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

import openfield as of
from openfield.cli import run_command
from openfield.journal.reader import Run
from support.places import ROOT

CONTROLS = {"counter", "alarmist", "doubter"}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    for extra in ("river", "gymnasium", "Box2D", "vizdoom"):
        pytest.importorskip(extra)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", "examples", ignore=shutil.ignore_patterns("train_commai", "notebooks"))
    return tomllib.loads(Path("examples/detectors.toml").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_bench_is_twelve_agents_in_five_domains_for_three_kinds_of_change(
    bench: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["run", "examples/detectors.toml", "--dry-run", "--trials", "2", "--set", "unchanged=0"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    cells = [row for row in rows if len(row) >= 5 and re.fullmatch("[0-9a-f]{12}", row[0])]
    for each in bench["domains"]:
        each["domain"] = each["domain"].replace(":", "-")
    domains = {each["domain"] for each in bench["domains"]}
    assert {row[2] for row in cells if row[1] == "counter"} == domains
    assert len(domains) == 5
    for each in bench["domains"]:
        assert len({row[1] for row in cells if row[2] == each["domain"]}) == 12
        assert len(each["novelty"]) == 3
        assert sum(row[1] == "counter" and row[2] == each["domain"] for row in cells) >= 6


@pytest.mark.slow
def test_the_bench_is_blind(bench: dict[str, Any]) -> None:
    for each in bench["domains"]:
        for novelty in each["novelty"]:
            trials = of.trials(each["domain"], 2, novelty=novelty, **each["settings"], unchanged=1)
            windows = {trial.window for trial in trials if not trial.is_training}
            assert all(window is not None and window[0] < window[1] for window in windows), each["domain"]


@pytest.mark.slow
def test_a_very_small_bench_plays_to_its_end(bench: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    """One trial of one change in each domain but doom, whose engine has tests of its own, with every detector."""
    text = Path("examples/detectors.toml").read_text(encoding="utf-8")
    head, *parts = text.split("\n[[domains]]")
    parts = [part for part in parts if '"doom"' not in part]
    small = [re.sub(r'novelty = \[("[^"]*"), ("[^"]*").*\]', r"novelty = [\2]", part) for part in parts]
    Path("small.toml").write_text("\n[[domains]]".join([head, *small]), encoding="utf-8")
    words = ["run", "small.toml", "--trials", "1", "--set", "unchanged=0", "--workers", "0", "-o", "small.sqlite"]
    assert run_command(words) == 0, capsys.readouterr().err
    with Run(Path("small.sqlite")) as run:
        cells = run.cells()
    assert {cell.outcome for cell in cells} == {"done"}
    assert len({cell.agent for cell in cells}) == 4 * 9 + len(CONTROLS)
    for cell in cells:
        assert any(episode.belief is not None for episode in cell.episodes), cell.agent
