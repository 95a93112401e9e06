"""What a run file says about how it was made."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

import openfield as of
from openfield import __version__
from openfield.errors import DamagedRun, InvalidInput
from openfield.journal.reader import Run
from openfield.provenance.provenance import (
    MAX_SOURCE,
    Provenance,
    Remarks,
    name_command,
    read_provenance,
    read_revision,
)
from openfield.result import Result
from support.places import MAZE
from support.players import copycat
from support.worlds import tiny_trials

AGENT = "import openfield as of\nimport near\ndef left(turn):\n    return of.Reply('left')\n"


def told(path: Path) -> list[Provenance]:
    with Run(path) as run:
        return read_provenance(run.facts, path)


def test_every_command_that_plays_leaves_a_record(path: Path) -> None:
    of.run([copycat], tiny_trials(1), path, note="the first", tags=["base", "v1.0"])
    of.run([copycat], tiny_trials(1), path)  # has nothing to do
    of.run([copycat], tiny_trials(2), path)
    first, second = told(path)
    assert (first.note, first.tags, second.note) == ("the first", ("base", "v1.0"), "")
    assert {"openfield": __version__}.items() <= first.versions.items()
    with Run(path) as run:
        assert run.facts["openfield"] == __version__
    assert {"python", "numpy"} <= first.versions.keys()
    assert first.machine
    assert first.command
    assert "file support/worlds.py" in first.domains["tiny"].parts
    assert Result([path]).provenance == [first, second]


def test_a_note_alone_is_recorded_too(path: Path) -> None:
    for note in ("", "a second thought"):
        of.run([copycat], tiny_trials(1), path, note=note)
    assert [each.note for each in told(path)] == ["", "a second thought"]


@pytest.mark.parametrize(
    ("remarks", "said"),
    [
        ({"note": "\x1b[31mred"}, "can be printed"),
        ({"note": "x" * 3_000}, "at most 2000"),
        ({"tags": ["two words"]}, "A tag is a word"),
    ],
)
def test_notes_and_tags_can_be_printed(path: Path, remarks: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        of.run([copycat], tiny_trials(1), path, **remarks)  # type: ignore[arg-type]
    assert not path.exists()


def test_the_texts_of_agents_and_domains_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {"mine.py": AGENT, "near.py": "#" * MAX_SOURCE, "far.py": ""}.items():
        Path(name).write_text(text)
    of.run(["mine.py:left"], of.trials(MAZE, count=1, training=1, before=1, after=1), "x.sqlite")
    with Run("x.sqlite") as run:
        assert {each.name for each in run.sources()} == {"mine.py", "near.py", "maze.py"}
        assert run.sources()[1].text == AGENT
    Path("near.py").write_text("#" * (MAX_SOURCE + 1))
    of.run(["mine.py:left"], of.trials(MAZE, count=1, training=1, before=1, after=1), "y.sqlite")
    with Run("y.sqlite") as run:
        assert {each.name for each in run.sources()} == {"mine.py", "maze.py"}


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_revision_of_the_working_folder_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*words: str) -> str:
        identity = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")
        return subprocess.run(
            ["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60
        ).stdout

    monkeypatch.delenv("GIT_DIR")
    git("init", "-q")
    assert read_revision(tmp_path) == ("", False)
    (tmp_path / "x").write_text("1")
    git("add", "x")
    git("commit", "-qm", "x")
    (tmp_path / "run.sqlite").touch()  # our own files change nothing
    assert read_revision(tmp_path) == (git("rev-parse", "HEAD").strip(), False)
    (tmp_path / "x").write_text("2")
    assert read_revision(tmp_path)[1] is True


def test_a_folder_without_git_has_no_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_revision(tmp_path) == ("", False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert read_revision(Path.cwd()) == ("", False)
    assert read_revision(tmp_path / "gone") == ("", False)


def test_a_command_is_named_as_it_is_typed() -> None:
    assert name_command(["/usr/bin/openfield", "run", "a b.py"]) == "openfield run 'a b.py'"
    assert name_command(["/x/openfield/__main__.py", "run"]) == "openfield run"
    assert name_command(["/home/me/study.py", "--fast"]) == "python study.py --fast"


def test_a_command_is_recorded_without_its_secrets():
    words = ["openfield", "serve", "ond", "--token", "s3cret", "--team=red:r3d", "--team", "blue:blu3", "--port", "1"]
    assert name_command(words) == "openfield serve ond --token ... --team=... --team ... --port 1"
    assert name_command([""]) == "python"


def test_a_damaged_record_is_named(path: Path) -> None:
    of.run([copycat], tiny_trials(1), path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE facts SET value = '{\"started\": 3}' WHERE key LIKE 'command %'")
    with pytest.raises(DamagedRun, match="a record of how it was made cannot be read"):
        Result([path])


def test_remarks_of_several_lines_are_allowed() -> None:
    assert Remarks("one\ntwo").note == "one\ntwo"
