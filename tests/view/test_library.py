"""The library: which files it finds, and that it reads a file again only when it has changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from openfield.errors import UnknownName
from openfield.report.addresses import name_run
from openfield.report.run_list import list_runs
from openfield.view import library as module
from openfield.view.library import Library


@pytest.fixture
def folder(runs: Path, tmp_path: Path) -> Path:
    for name in ("one", "two"):
        shutil.copy(runs / "maze.sqlite", tmp_path / f"{name}.sqlite")
    (tmp_path / "notes.sqlite").write_text("something else")
    return tmp_path


def test_runs_are_found_and_other_files_are_not(folder: Path) -> None:
    assert sorted(entry.name for entry in Library([folder]).entries()) == ["one", "two"]
    assert [entry.name for entry in Library([folder / "one.sqlite"]).entries()] == ["one"]
    assert Library([folder / "later.sqlite"]).entries() == []


def test_a_file_that_two_places_lead_to_is_one_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    places = [Path(folder.name), folder, folder / "one.sqlite"]
    assert sorted(entry.name for entry in Library(places).entries()) == ["one", "two"]
    assert len(list_runs(places)) == 2
    (folder / "two-linked.sqlite").symlink_to(folder / "two.sqlite")
    library = Library([folder])
    assert len(library.entries()) == 2
    for name in ("two", "two-linked"):  # both addresses are good
        assert library.entry(name_run(folder / f"{name}.sqlite")).summary.planned == 12


def test_a_file_is_read_once_until_it_changes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    summarise = module.summarise_run
    monkeypatch.setattr(module, "summarise_run", lambda path: (read.append(path.name), summarise(path))[1])
    library = Library([folder])
    library.entries()
    library.entries()
    assert sorted(read) == ["notes.sqlite", "one.sqlite", "two.sqlite"]
    shutil.copy(folder / "one.sqlite", folder / "two.sqlite")
    library.entries()
    assert read[3:] == ["two.sqlite"]
    key = name_run(folder / "one.sqlite")
    assert library.result(key) is library.result(key)


def test_only_what_was_given_can_be_reached(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = Path(shutil.copy(folder / "one.sqlite", tmp_path_factory.mktemp("elsewhere") / "secret.sqlite"))
    library = Library([folder])
    for key in (name_run(elsewhere), "..", "", str(elsewhere)):
        with pytest.raises(UnknownName):
            library.find(key)
    with pytest.raises(UnknownName):
        library.entry(name_run(folder / "notes.sqlite"))
