"""Suggestions for files that are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from openfield.files.near import suggest_file, suggest_run


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_is_suggested_by_its_name_without_suffix_and_folder() -> None:
    Path("runs").mkdir()
    Path("runs/birds.sqlite").touch()
    for typed in ("birds", "birds.sqlite", "run/birds.sqlite", "runs/brids.sqlite", "runs/birds.sqlit"):
        assert suggest_run(Path(typed)) == " Did you mean runs/birds.sqlite?"
    assert suggest_run(Path("unlike")) == " See those that there are: openfield list runs"


def test_without_runs_a_run_is_made_first() -> None:
    assert suggest_run(Path("birds.sqlite")) == " Make a run: openfield demo"


def test_only_files_of_the_same_kind_are_suggested() -> None:
    for name in ("agent.py", "agent.toml"):
        Path(name).touch()
    assert suggest_file(Path("agnet.py")) == " Did you mean agent.py?"
    assert suggest_file(Path("agent.json")) == ""
    assert suggest_file(Path("\0")) == ""
