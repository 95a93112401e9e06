"""Every mistake of a user is one line that says what would be right, and exit status 2."""

from __future__ import annotations

import re
import sqlite3
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from openfield.cli.app import COMMANDS
from support.messages import PAGE
from support.mistakes import MISTAKES
from support.places import MAZE


def read(said: Any) -> str:
    """Return the one line a command complained with."""
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith("openfield: ")
    assert said.err.count("\n") == 1
    return str(said.err)


def test_mistakes_are_said_in_one_line() -> None:
    """The page has what each prints: a line, or else it could not be written. `test_messages.py` prints all of them."""
    page = PAGE.read_text(encoding="utf-8")
    said = dict(re.findall(r"^\$ openfield (.*)\nopenfield: (.*)$", page, re.MULTILINE))
    for line, hint in chain(*MISTAKES.values()):
        assert hint in said[line], line


def test_every_command_has_a_mistake() -> None:
    tried = {line.split()[0] for line, _ in chain(*MISTAKES.values())}
    assert tried >= COMMANDS.keys()


@pytest.mark.parametrize("words", [["report"], ["run", "commai", "-o"], ["run", "gym:CartPole-v1", "--novelty"]])
def test_a_word_that_is_no_text_is_refused_in_a_line(openfield: Any, words: list[str]) -> None:
    said = openfield(*words, "gravity=\udcff")
    assert read(said) == "openfield: 'gravity=\\udcff' is not text in UTF-8, which names and values must be.\n"


@pytest.mark.parametrize("words", [["report"], ["show"], ["run", MAZE, "-o"]], ids=lambda words: words[0])
def test_names_too_long_for_a_file_are_said_in_a_line(openfield: Any, words: list[str]) -> None:
    said = openfield(*words, "x" * 300)
    assert said.status == 2
    assert said.err.splitlines()[-1].endswith(": File name too long.")


@pytest.mark.parametrize("words", [["export", "--format", "csv"], ["export", "--metric", "detection"], ["report"]])
def test_no_table_and_no_page_takes_the_place_of_a_record(openfield: Any, run: Path, words: list[str]) -> None:
    before = run.read_bytes()
    said = openfield(*words, run, "-o", run)
    assert said.status == 2
    assert said.err == f"openfield: {run} is the record of a run and is not written over. Name another file.\n"
    assert run.read_bytes() == before


@pytest.mark.parametrize("command", ["show", "report", "resume", "verify", "export"])
def test_files_that_are_no_runs_are_refused(openfield: Any, finished: Path, tmp_path: Path, command: str) -> None:
    (tmp_path / "notes.txt").write_text("all the things I did not do\n")
    sqlite3.connect(tmp_path / "other.sqlite").execute("CREATE TABLE birds (name)").connection.close()
    (tmp_path / "cut.sqlite").write_bytes(finished.read_bytes()[:6000])
    assert "notes.txt is not a run of openfield." in read(openfield(command, "notes.txt"))
    assert "an SQLite file, but not a run of openfield." in read(openfield(command, "other.sqlite"))
    assert "cut.sqlite is damaged or cut short" in read(openfield(command, "cut.sqlite"))
    assert "There is no run file nowhere.sqlite." in read(openfield(command, "nowhere.sqlite"))


def test_a_folder_is_no_place_for_a_record(openfield: Any) -> None:
    said = openfield("run", MAZE, "-o", ".")
    assert said.status == 2
    assert said.err.endswith("openfield: . cannot be written: Is a directory.\n")


def test_a_foreign_file_is_not_written_to(openfield: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    said = openfield("run", MAZE, "-o", "notes.txt")
    assert said.status == 2
    assert "notes.txt is not a run of openfield." in said.err
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_unknown_cells_turns_and_metrics(openfield: Any, run: Path) -> None:
    cell = next(line for line in openfield("show", run).out.splitlines() if "compass" in line).split()[0]
    nearly = cell[:-1] + ("0" if cell[-1] != "0" else "1")
    assert f"Did you mean '{cell}'?" in read(openfield("show", run, "--cell", nearly))
    assert f"Cell {cell} has turns 0 to " in read(openfield("show", run, "--cell", cell, "--turn", "99999"))
    assert "has turns 0 to " in read(openfield("show", run, "--cell", cell, "--turn", "-1"))
    assert "--turn needs --cell." in read(openfield("show", run, "--turn", "3"))
    assert "draws no pictures" in openfield("show", run, "--cell", cell, "--gif", "film.gif").err
    assert "Did you mean 'detection'?" in read(openfield("report", run, "--metric", "detecton"))
    assert "Unknown format 'xml'. Known: csv, html, jsonl, latex, markdown, parquet." in read(
        openfield("export", run, "--format", "xml")
    )
