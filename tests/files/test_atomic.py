"""Files appear whole or not at all, and never in the place of a record."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from openfield.errors import InvalidInput
from openfield.files.atomic import replacing
from openfield.journal.writer import Journal


def write(path: Path, text: str = "new") -> None:
    with replacing(path) as draft:
        draft.write_text(text)


def test_a_file_takes_the_place_of_another(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("old")
    write(tmp_path / "page.html")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["new"]


def test_a_run_is_never_written_over(tmp_path: Path) -> None:
    named = pytest.raises(InvalidInput, match=r"run\.sqlite is the record of a run and is not written over")
    with Journal(tmp_path / "run.sqlite") as journal, named:
        write(journal.path)
    before = journal.path.read_bytes()
    with pytest.raises(InvalidInput, match="not written over"):
        write(journal.path)
    assert journal.path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [journal.path]


@pytest.mark.parametrize("content", [b"", b"cell,agent\n", b"SQLite format 4 is a text of mine, not a file of theirs"])
def test_other_files_are_written_over(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.csv").write_bytes(content)
    write(tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text() == "new"


def test_a_damaged_run_is_still_a_run(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE x (y)")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InvalidInput, match="not written over"):
        write(path)


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    write(pipe)
    reader.join(10)
    assert read == ["new"]
    assert pipe.is_fifo()


@pytest.mark.parametrize("name", ["", "x" * 300])
def test_what_cannot_be_a_file_is_said(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match=r"^Cannot write .*: (Is a directory|File name too long)\.$"):
        write(tmp_path / name)
