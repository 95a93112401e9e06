"""Tables on a narrow terminal: columns share the room, and the last one may go below its row."""

from __future__ import annotations

import pytest

from openfield.console import print_table


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


def _stripped(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())
