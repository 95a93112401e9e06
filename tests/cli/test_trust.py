"""Reading a run file runs nothing that it names; going on with it runs only what this user signed or trusts."""

from __future__ import annotations

import json
import shutil
import sqlite3
import warnings
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

import openfield as of
from openfield.journal.writer import Journal
from openfield.runner.plan import make_cells
from openfield.runner.scheduler import RunWarning
from support.places import MAZE, ROOT

EVIL = """
from pathlib import Path
Path({marker!r}).touch()
class Agent:
    def __init__(self, spec, seed): ...
    def __call__(self, turn): raise KeyboardInterrupt
METRIC = DOMAIN = MAZE = Agent
"""
AGENT = """
import openfield as of
def lucky(turn):
    return of.Reply("up")
"""


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that leaves a marker when it is imported, by its path or by its name."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "evil.py").write_text(EVIL.format(marker=str(tmp_path / "marker")))
    return tmp_path / "evil.py"


def forge(path: Path, evil: Path) -> None:
    """Name bad code wherever a run file names code."""
    rules = {"name": "maze", "title": "Maze", "metrics": [f"{evil}:METRIC", "evil:METRIC"], "own_keys": True}
    touch = f"process:touch {evil.parent / 'marker'}"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE facts SET value = ? WHERE key = 'domain maze'", (str(evil),))
        db.execute("UPDATE facts SET value = ? WHERE key = 'rules maze'", (json.dumps(rules),))
        db.execute("UPDATE agents SET source = ? WHERE name = 'compass'", (f"{evil}:Agent",))
        db.execute("UPDATE agents SET source = ? WHERE name = 'random'", (touch,))
        db.execute("UPDATE attempts SET outcome = NULL WHERE rowid = 1")


def list_commands(path: Path) -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(path)) as db:
        (cell,) = db.execute("SELECT id FROM cells LIMIT 1").fetchone()
    return [
        ("report",),
        ("report", "--json"),
        ("report", "--baseline", "random"),
        ("show",),
        ("show", "--cell", cell),
        ("show", "--cell", cell, "--gif", "film.gif"),
        ("verify",),
        ("verify", "--replay"),
        ("export",),
        ("export", "--metric", "performance"),
        ("export", "--format", "logs"),
        ("objectives",),
        ("objectives", "--pictures"),
        ("watch", "--once"),
        ("publish", "-o", "site"),
        ("resume", "--workers", "0"),
        ("resume", "--retry", "--workers", "0"),
    ]


def give_all(openfield: Any, path: Path) -> None:
    for command, *options in list_commands(path):
        with suppress(SystemExit):  # how `objectives` ends if a file cannot be used
            assert openfield(command, path, *options).status in (0, 1, 2)
        assert not (path.parent / "marker").exists(), (command, options)


def test_no_command_runs_code_of_a_hostile_file(openfield: Any, run: Path, evil: Path) -> None:
    forge(run, evil)
    give_all(openfield, run)


@pytest.mark.filterwarnings("ignore:.*beliefs of 0.5 and more")
@pytest.mark.parametrize("name", ["evil.py", "evil:DOMAIN", "./evil.py:DOMAIN"])
def test_a_domain_whose_name_is_code_is_not_run(openfield: Any, path: Path, evil: Path, name: str) -> None:
    """The domain of a trial is a name, never a place to import from."""
    (trial,) = of.trials(MAZE, count=1, unchanged=0)
    cells = make_cells(["random"], [msgspec.structs.replace(trial, domain=name)])
    with Journal(path) as record:
        record.enter(cells, {"random": "random"}, {})
        record.begin(cells[0].id)
    give_all(openfield, path)


def test_a_trusted_file_runs_and_says_what(openfield: Any, run: Path, evil: Path) -> None:
    forge(run, evil)
    said = openfield("resume", run, "--trust", "--workers", "0")
    assert f"names this code, which runs now: {evil}, {evil}:Agent, process:touch " in said.err
    assert (run.parent / "marker").exists()


@pytest.mark.filterwarnings("ignore:An earlier version of")
def test_a_run_of_ones_own_goes_on_without_a_word_of_trust(
    openfield: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user is asked for trust, once, and so is one who edited the agent since."""
    (tmp_path / "mine.py").write_text(AGENT)
    path = tmp_path / "run.sqlite"
    small = ("--trials", "1", "--set", "training=0", "--set", "before=1", "--set", "after=1", "--workers", "0")
    assert openfield("run", MAZE, "-a", "mine.py:lucky", "-o", path, *small).status == 0
    said = openfield("resume", path, "--workers", "0")
    assert said.status == 0
    assert f"names this code, which runs now: {MAZE}, {tmp_path / 'mine.py'}:lucky" in said.err
    (tmp_path / "mine.py").write_text(f"{AGENT}# edited")
    said = openfield("resume", path, "--workers", "0")
    assert (said.status, said.err.count("\n")) == (2, 1)
    assert f"or that has changed or moved since: {tmp_path / 'mine.py'}:lucky. If you trust" in said.err
    assert openfield("resume", path, "--workers", "0", "--trust").status == 0
    assert openfield("resume", path, "--workers", "0").status == 0
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another"))
    said = openfield("resume", path, "--workers", "0")
    assert (said.status, said.err.count("\n")) == (2, 1)
    assert f"or that has changed or moved since: {MAZE}, {tmp_path / 'mine.py'}:lucky. If you trust" in said.err
    assert openfield("resume", path, "--workers", "0", "--trust").status == 0
    assert openfield("resume", path, "--workers", "0").status == 0


def test_trust_is_for_runs(openfield: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("no run, and long enough to be read as one " * 20)
    wanted = "openfield: notes.txt is not a run of openfield. Name a run file, such as runs/maze.sqlite.\n"
    for command, *options in (("resume",), ("verify", "--replay"), ("show", "--cell", "a", "--gif", "f.gif")):
        said = openfield(command, "notes.txt", *options, "--trust")
        assert (said.status, said.err) == (2, wanted)
    with pytest.raises(SystemExit):
        openfield("objectives", "notes.txt", "--trust")
    assert capsys.readouterr().err == wanted
    assert openfield("verify", "notes.txt", "--trust").err.startswith("openfield: --trust needs --replay")
    assert openfield("show", "notes.txt", "--trust").err == "openfield: --trust needs --film.\n"


def test_files_of_installed_domains_and_agents_need_no_trust(openfield: Any, tmp_path: Path) -> None:
    shutil.copy(ROOT / "tests" / "data" / "kept" / "ond.sqlite", tmp_path / "ond.sqlite")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RunWarning)  # its agent may have been another version
        said = openfield("resume", "ond.sqlite", "--keep", "--workers", "0")
    assert (said.status, "names this code" in said.err) == (0, False)
