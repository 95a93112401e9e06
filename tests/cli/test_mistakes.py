"""Every mistake of a user is one line that says what would be right, and exit status 2."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from support.places import MAZE


def complain(said: Any) -> str:
    """The one line a command complained with."""
    assert said.status == 2
    assert said.out == ""
    line: str = said.err
    assert line.startswith("openfield: ")
    assert line.count("\n") == 1
    assert "Traceback" not in line
    return line


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["rum", MAZE], "Did you mean 'run'?"),
        (["run", MAZE, "--agnt", "random"], "Did you mean '--agent'?"),
        (
            ["list", "novelty"],
            "metrics, settings, options, flags, not 'novelty'. Did you mean 'novelties'?",
        ),
        (["run", MAZE, "--agent", "compas"], "Did you mean 'compass'? For maze: compass, random."),
        (["run", MAZE, "--agent", f"{MAZE}:Compas"], "Did you mean 'Compass'?"),
        (["run", MAZE, "--novelty", "swaped"], "Did you mean 'swapped'? Declared: slip:easy, slip:hard, swapped."),
        (["play", MAZE, "--novelty", "slip:heard"], "Did you mean 'slip:hard'?"),
        (
            ["run", MAZE, "--agent", "support.bad_agents:Naked"],
            "'Naked' is no agent: too many positional arguments. A class or",
        ),
        (
            ["run", MAZE, "--agent", "support.bad_agents:three"],
            "'three' is no agent: missing a required argument: 'c'.",
        ),
        (["demo", MAZE, "--trials", "0"], "There is nothing to see with 0 trials."),
        (["run", MAZE, "--agent", "mine.py"], "Which agent of mine.py? Write mine.py:NAME."),
        (["run", MAZE, "--agent", 'process:"'], "'process:\"' is not a command: no closing quotation."),
        (["run", MAZE, "--agent", "wire:python 'x"], "is not a command: no closing quotation."),
        (["run", MAZE, "--agent", "wire:"], "wire: needs a command, for instance wire:'python3 agent.py'."),
        (["run", MAZE, "--set", "siz=3"], "Unknown setting 'siz'. Did you mean 'size'?"),
        (["serve", MAZE, "--set", "siz=3"], "Did you mean 'size'?"),
        (["run", MAZE, "--set", "seed=3"], "Unknown setting 'seed'."),
        (["run", MAZE, "--set", "size=99"], "Setting 'size' cannot be '99'"),
        (["run", MAZE, "--set", "size=99"], "Allowed: integer >= 3 <= 20."),
        (["run", MAZE, "--set", "size"], "--set takes key=value, not 'size'."),
        (["run", MAZE, "--trials", "0"], "Expected `int` >= 1 (key 'trials')."),
        (["run", MAZE, "--trials", "99999999999999999999"], "Expected `int` <= 1000000 (key 'trials')."),
        (["play", MAZE, "--trials", "1e20"], "--trials cannot be 100000000000000000000. Must be <= 1000000."),
        (["run", MAZE, "--trials", "many"], "--trials takes a whole number, not 'many'."),
        (["serve", MAZE, "--trials", "0"], "--trials cannot be 0. Must be >= 1."),
        (["play", MAZE, "--trials", "0"], "--trials cannot be 0. Must be >= 1."),
        (["run", MAZE, "--workers", "-1"], "(key 'workers')"),
        (["run", MAZE, "--workers", "1.5"], "takes a whole number, not '1.5'."),
        (["run", MAZE, "--trials", "1.5"], "takes a whole number, not '1.5'."),
        (["run", MAZE, "--repeats", "1.5"], "takes a whole number, not '1.5'."),
        (["run", MAZE, "--seed", "1.5"], "takes a whole number, not '1.5'."),
        (["serve", MAZE, "--port", "1.5"], "takes a whole number, not '1.5'."),
        (["serve", MAZE, "--trials", "1.5"], "takes a whole number, not '1.5'."),
        (["play", MAZE, "--seed", "1.5"], "takes a whole number, not '1.5'."),
        (["resume", "x.sqlite", "--workers", "1.5"], "takes a whole number, not '1.5'."),
        (["demo", MAZE, "--trials", "1.5"], "takes a whole number, not '1.5'."),
        (["show", "x.sqlite", "--cell", "a", "--turn", "1.5"], "takes a whole number, not '1.5'."),
        (["generate", "birds", "--pool", "x", "--count", "1.5"], "takes a whole number, not '1.5'."),
        (["run", MAZE, "--novelty", ""], "--novelty is empty. Is a variable of your shell not set?"),
        (["run", MAZE, "--novelty="], "--novelty is empty."),
        (["serve", MAZE, "--token", ""], "--token is empty."),
        (["report", "x.sqlite", "-o", ""], "-o is empty."),
        (["report", ""], "A word is empty."),
        (["run", MAZE, "--novelty", "swapped+"], "Unknown novelty ''."),
        (["run", MAZE, "--reply-seconds", "0"], "(key 'reply_seconds')"),
        (["run", MAZE, "--reply-seconds", "inf"], "(key 'reply_seconds')"),
        (["run", MAZE, "-a", "random", "-a", "random"], "Two agents are called 'random'."),
        (["run"], "DOMAIN is missing."),
        (["list", "settings"], "Settings of which domain?"),
        (["serve", MAZE, "--host", "0.0.0.0"], "that needs a token: --token SECRET."),
        (["serve", MAZE, "--host", "192.0.2.1", "--token", "x"], "Cannot listen on 192.0.2.1: Cannot assign requested"),
        (["serve", MAZE, "--port", "99999"], "--port is a number from 0 to 65,535, not 99999."),
        (["run", "x.sqlite"], "x.sqlite is a run, not a domain. To go on with it: openfield resume x.sqlite"),
        (["run", "nowhere.py"], "no such file: nowhere.py"),
        (["run", "nowhere.toml"], "nowhere.toml cannot be read: No such file or directory."),
    ],
    ids=lambda value: " ".join(value)[-40:].replace("/", ".") if isinstance(value, list) else "",
)
def test_mistakes_in_words(openfield: Any, words: list[str], hint: str) -> None:
    assert hint in complain(openfield(*words)).split("\n")[0]


@pytest.mark.parametrize("novelty", ['""', '["swapped", ""]'])
def test_an_empty_novelty_of_a_file_is_not_the_default(openfield: Any, tmp_path: Path, novelty: str) -> None:
    (tmp_path / "x.toml").write_text(f'domain = "{MAZE}"\nnovelty = {novelty}\n')
    assert "x.toml: Unknown novelty ''." in complain(openfield("run", "x.toml"))


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


@pytest.mark.parametrize(
    ("words", "need"), [(["--cell", "zz"], "a --format of the domain's own"), (["--baseline", "nobody"], "--metric")]
)
def test_options_without_a_say_are_refused(openfield: Any, run: Path, words: list[str], need: str) -> None:
    assert f"{words[0]} has no effect without {need}; leave it out." in complain(openfield("export", run, *words))


def test_an_unknown_domain_lists_what_there_is(openfield: Any) -> None:
    openfield("list", "domains", MAZE)
    assert "Unknown domain 'mase'. Did you mean 'maze'?" in complain(openfield("run", "mase"))


@pytest.mark.parametrize("command", ["show", "report", "resume", "verify", "export"])
def test_files_that_are_no_runs_are_refused(openfield: Any, finished: Path, tmp_path: Path, command: str) -> None:
    (tmp_path / "notes.txt").write_text("all the things I did not do\n")
    sqlite3.connect(tmp_path / "other.sqlite").execute("CREATE TABLE birds (name)").connection.close()
    (tmp_path / "cut.sqlite").write_bytes(finished.read_bytes()[:6000])
    assert "notes.txt is not a run of openfield." in complain(openfield(command, "notes.txt"))
    assert "an SQLite file, but not a run of openfield." in complain(openfield(command, "other.sqlite"))
    assert "cut.sqlite is damaged or cut short" in complain(openfield(command, "cut.sqlite"))
    assert "There is no run file nowhere.sqlite." in complain(openfield(command, "nowhere.sqlite"))


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


@pytest.mark.parametrize("source", ["broken:Agent", "broken.py:Agent"])
def test_an_agent_that_cannot_be_imported_says_why(openfield: Any, tmp_path: Path, source: str) -> None:
    (tmp_path / "broken.py").write_text("import json\nraise ValueError('no brain')\n")
    said = complain(openfield("run", MAZE, "--agent", source))
    assert f"'{source}' cannot be imported: ValueError: no brain" in said


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("trails = 3", "Unknown key 'trails'. Did you mean 'trials'? Keys of an experiment: agents, domain,"),
        ("trials = 0", "Expected `int` >= 1 (key 'trials')."),
        ('trials = "three"', "Expected `int`, got `str` (key 'trials')."),
        ("agents = [3]", "(key 'agents[0]')"),
        ('agents = ["compas"]', "Did you mean 'compass'?"),
        ('novelty = "swaped"', "Did you mean 'swapped'?"),
        ("[settings]\nsize = 99", "Setting 'size' cannot be 99: Expected `int` <= 20. Allowed: integer >= 3 <= 20."),
        ("[settings]\nsiz = 9", "Did you mean 'size'?"),
        ("[limits]\nreply = 9", "Allowed: reply_seconds, episode_turns, trial_seconds."),
        ("[limits]\nreply_seconds = -9", "(key 'reply_seconds')"),
        ("trials = ", "is not TOML"),
    ],
)
def test_a_bad_experiment_file_is_named_with_key_and_remedy(
    openfield: Any, tmp_path: Path, text: str, hint: str
) -> None:
    (tmp_path / "e.toml").write_text(f'domain = "{MAZE}"\n{text}\n')
    said = complain(openfield("run", "e.toml"))
    assert said.startswith("openfield: e.toml")
    assert hint in said


def test_an_experiment_needs_a_domain(openfield: Any, tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text("trials = 3\n")
    assert "e.toml: missing required field `domain`." in complain(openfield("run", "e.toml"))


def test_unknown_cells_turns_and_metrics(openfield: Any, run: Path) -> None:
    cell = next(line for line in openfield("show", run).out.splitlines() if "compass" in line).split()[0]
    nearly = cell[:-1] + ("0" if cell[-1] != "0" else "1")
    assert f"Did you mean '{cell}'?" in complain(openfield("show", run, "--cell", nearly))
    assert f"Cell {cell} has turns 0 to " in complain(openfield("show", run, "--cell", cell, "--turn", "99999"))
    assert "has turns 0 to " in complain(openfield("show", run, "--cell", cell, "--turn", "-1"))
    assert "--turn needs --cell." in complain(openfield("show", run, "--turn", "3"))
    assert "has nothing to be seen" in complain(openfield("show", run, "--cell", cell, "--gif", "film.gif"))
    assert "Did you mean 'detection'?" in complain(openfield("report", run, "--metric", "detecton"))
    assert "Unknown format 'xml'. Known: csv, jsonl, parquet." in complain(openfield("export", run, "--format", "xml"))
