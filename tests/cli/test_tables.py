"""Tables and bars on a terminal of 80 columns: nothing is written letter by letter, and names are not markup."""

from __future__ import annotations

from typing import Any

import pytest

from openfield.console import print_table
from openfield.registry import installed_domains
from support.places import MAZE

SMALL = ("--set", "training=0", "--set", "before=1", "--set", "after=1", "--set", "patience=3", "--trials", "1")


@pytest.fixture
def narrow(openfield: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("COLUMNS", "80")
    return openfield


def test_domains_are_listed_in_words(narrow: Any) -> None:
    said = narrow("list", "domains")
    assert max(map(len, said.out.splitlines())) <= 80
    assert len(said.out.splitlines()) < 30
    agents = {name for domain in installed_domains() for name in domain.agents}
    assert all(name in said.out for name in agents)


def test_in_a_pipe_a_row_is_a_line(openfield: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS")
    said = openfield("list", "novelties", "doom").out.splitlines()
    assert len(said) == 1 + 31
    assert said[1].split() == [
        "doom",
        "slim:easy",
        "1",
        "objects",
        "the",
        "enemy's",
        "radius",
        "is",
        "15",
        "instead",
        "of",
        "20",
    ]


def test_why_a_cell_failed_is_said_in_one_line(narrow: Any) -> None:
    narrow("run", MAZE, "--agent", "some-rather-long-name=wire:/nonexist", *SMALL, "-o", "q.sqlite")
    said = narrow("show", "q.sqlite")
    assert "    '/nonexist' cannot be started: No such file or directory.\n" in _stripped(said.out)
    assert "agent_gone  0         1" in said.out


def test_columns_share_what_room_there_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_table(("name", "meaning"), [("one", "a few words " * 5), ("東京", "[bold]")])
    lines = _stripped(capsys.readouterr().out).splitlines()
    assert lines[:2] == ["name  meaning", "one   a few words a few words a few"]
    assert lines[-1] == "東京  [bold]"  # each of the two takes the room of two letters


def test_the_last_column_goes_below_where_it_has_no_room(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    print_table(("first", "second", "note"), [("a" * 12, "b" * 12, "why it failed"), ("c", "d", "")])
    lines = _stripped(capsys.readouterr().out).splitlines()
    assert lines == [
        "first         second",
        "    note",
        "aaaaaaaaaaaa  bbbbbbbbbbbb",
        "    why it failed",
        "c             d",
    ]


@pytest.mark.parametrize("name", ["[/x]", "[bold]y"])
def test_brackets_in_a_name_mean_nothing(narrow: Any, name: str) -> None:
    said = narrow("run", MAZE, "--agent", f"process:true {name}", "--agent", "random", *SMALL, "-o", "q.sqlite")
    assert said.status == 0
    assert f"process:true {name}" in said.err
    assert name in said.out


def _stripped(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())
