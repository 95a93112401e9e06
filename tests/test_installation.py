"""The line that installs an extra fits how the package was installed, and names the pip of this environment."""

from __future__ import annotations

import json
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from openfield import installation
from openfield.cli import run_command
from openfield.errors import MissingExtra


class Installed:
    """A distribution whose installer left this note."""

    def __init__(self, note: str | None) -> None:
        self.note = note

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self.note


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "my clone"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    monkeypatch.setattr(installation, "name_program", lambda name: name)
    monkeypatch.chdir(folder)
    return folder


def install(monkeypatch: pytest.MonkeyPatch, note: object) -> None:
    text = json.dumps(note) if isinstance(note, dict) else note
    monkeypatch.setattr(installation, "distribution", lambda _: Installed(text))


def test_a_clone_is_installed_from_its_folder(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, {"url": clone.as_uri(), "dir_info": {"editable": True}})
    assert installation.install_line("birds") == "pip install -e '.[birds]'"
    assert str(MissingExtra("birds", "This")).endswith("Install it: pip install -e '.[birds]'")
    monkeypatch.chdir(clone.parent)
    assert installation.install_line("birds") == f"pip install -e '{clone}[birds]'"
    install(monkeypatch, {"url": clone.as_uri(), "dir_info": {}})
    assert installation.install_line("birds") == f"pip install '{clone}[birds]'"


@pytest.mark.parametrize("name", ["openfield-0.2.0-py3-none-any.whl", "openfield-0.2.0.tar.gz"])
def test_an_archive_is_named_while_it_is_there(clone: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    archive = clone / name
    install(monkeypatch, {"url": archive.as_uri(), "archive_info": {}})
    assert installation.install_line("birds") == "pip install 'openfield[birds]'"
    archive.touch()
    assert installation.install_line("birds") == f"pip install '{archive}[birds]'"


@pytest.mark.parametrize(
    "note",
    [
        None,
        "{",
        {"url": "file:///somewhere/openfield-0.1.0-py3-none-any.whl", "archive_info": {}},
        {"url": "file:///a/clone/that/is/gone", "dir_info": {"editable": True}},
        {"url": "https://host/openfield.git", "vcs_info": {}},
    ],
    ids=["index", "broken", "wheel", "gone", "git"],
)
def test_anything_else_is_installed_by_name(clone: Path, monkeypatch: pytest.MonkeyPatch, note: object) -> None:
    install(monkeypatch, note)
    assert installation.install_line("birds") == "pip install 'openfield[birds]'"
    assert str(MissingExtra("birds", "This")).endswith("Install it: pip install 'openfield[birds]'")


def test_a_package_that_is_only_on_the_path_is_installed_by_name(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(installation, "distribution", refuse)
    assert installation.install_line("doom") == "pip install 'openfield[doom]'"


def test_doctor_prints_the_line(
    clone: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, {"url": clone.as_uri(), "dir_info": {"editable": True}})
    monkeypatch.setattr(installation, "_find_version", lambda name: None if name == "numba" else "1")
    assert run_command(["doctor"]) == 0
    assert "fast missing numba pip install -e '.[fast]'" in " ".join(capsys.readouterr().out.split())


def test_a_program_of_another_environment_is_not_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    for folder in (own, other):
        folder.mkdir()
        (folder / "pip").write_text("#!/bin/sh\n")
        (folder / "pip").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(own / "python"))
    monkeypatch.setenv("PATH", str(own))
    assert installation.name_program("pip") == "pip"
    monkeypatch.setenv("PATH", str(other))
    assert installation.name_program("pip") == "own/pip"
    assert installation.name_program("nothing") == "nothing"


def test_a_bare_machine_has_no_optional_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bwrap").touch(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(installation.BARE, raising=False)
    assert installation.find_program("bwrap") == str(tmp_path / "bwrap")
    assert installation.find_program("bwrap", path="/nowhere") is None
    monkeypatch.setenv(installation.BARE, "1")
    assert installation.find_program("bwrap") is None
