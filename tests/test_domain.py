"""Trials of older versions of a domain keep their defaults, and are refused where their rules would be needed."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from openfield.cli import run_command
from openfield.domain import check_version
from openfield.errors import InvalidInput
from openfield.registry import find_domain, installed_domains
from support.places import MAZE

TEXT = Path(MAZE).read_text()
NAMED = '    name, title, settings = "maze",'


@pytest.fixture
def grown(tmp_path):
    """Return a domain whose version was raised twice: the default size was 4 in its first, and 5 in its second."""
    defaults = "{1: {'size': 4}, 2: {'size': 5, 'before': 2}}"
    older = f"    version, older_versions, older_defaults = 3, frozenset({{2}}), {defaults}\n"
    (tmp_path / "grown.py").write_text(TEXT.replace(NAMED, older + NAMED))
    return find_domain(str(tmp_path / "grown.py"))


@pytest.mark.parametrize(("version", "size", "before"), [(1, 4, 2), (2, 5, 2), (3, 6, 10)])
def test_trials_keep_the_defaults_of_their_version(grown, version, size, before):
    trial = msgspec.structs.replace(grown.trials(count=1)[0], version=version)
    settings = grown.settings_of(trial)
    assert (settings.size, settings.before) == (size, before)
    assert grown.settings_of(msgspec.structs.replace(trial, settings={"size": 9})).size == 9


def test_versions_that_play_the_same_are_played(grown):
    trial = grown.trials(count=1)[0]
    check_version(grown, msgspec.structs.replace(trial, version=2))
    for version in (1, 4):
        with pytest.raises(InvalidInput, match=f"Version {version} of maze made trial .*, and this is version 3"):
            check_version(grown, msgspec.structs.replace(trial, version=version))


def test_a_run_of_an_older_version_is_read_and_not_played(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("maze.py").write_text(TEXT)
    run = ["run", "maze.py", "--trials", "1", "--set", "unchanged=0", "--workers", "0", "-o", "old.sqlite"]
    assert run_command(run) == 0
    Path("maze.py").write_text(TEXT.replace(NAMED, "    version = 2\n" + NAMED))
    assert run_command(["report", "old.sqlite"]) == 0
    assert run_command(["verify", "old.sqlite"]) == 0
    for words in (
        ["verify", "old.sqlite", "--replay", "--trust"],
        ["run", "maze.py", "--trials-of", "old.sqlite", "--workers", "0", "-o", "new.sqlite"],
    ):
        done = subprocess.run([sys.executable, "-m", "openfield", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 2, words
        line = done.stderr.splitlines()[-1]
        assert "Version 1 of maze made trial" in line
        assert "read, reported and verified, but not replayed or resumed" in line


@pytest.mark.parametrize("name", [*sorted(domain.name for domain in installed_domains()), "gym:CartPole-v1", MAZE])
def test_short_trials_are_short_and_blind_in_every_domain(name: str) -> None:
    domain = find_domain(name)
    novelty = domain.default_novelty or domain.demo_novelty
    usual, short = domain.trials(2, novelty=novelty), domain.trials(2, preset="short")
    assert all("preset" not in trial.settings for trial in short)
    tests = [trial for trial in short if not trial.is_training]
    assert {trial.is_changed for trial in tests} == {True, False}
    assert all(trial.window is not None for trial in tests)
    assert tests[-1].test_length < usual[-1].test_length
    assert tests[-1].test_length <= 8 or any(phase.steps for phase in tests[-1].phases)
    (plain,) = (trial for trial in domain.trials(1, novelty="none", preset="short") if not trial.is_training)
    assert not plain.is_changed
