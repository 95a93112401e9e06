"""Tables on a narrow terminal: columns share the room, and the last one may go below its row."""

from __future__ import annotations

import json
import warnings

import pytest
from rich.console import Console
from rich.text import Text

from openfield.cli.main import run_command
from openfield.console import Escaped, escape_controls, print_json, print_table


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


HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\r\u202e"
SHOWN = r"\x1b]0;title\x07\x1b[2J\x9b31m\r\u202e"


def test_what_others_wrote_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("note",), [(HOSTILE,)])
    assert capsys.readouterr().out.splitlines()[1].rstrip() == SHOWN
    Console().print(Escaped(Text(HOSTILE)))
    printed = capsys.readouterr().out
    assert r"\x1b]0;title" in printed
    assert escape_controls(printed) == printed
    assert escape_controls("tab\tline\n東京") == "tab\tline\n東京"


def test_json_for_a_terminal_holds_the_same_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"note": HOSTILE})
    text = capsys.readouterr().out
    assert json.loads(text) == {"note": HOSTILE}
    assert escape_controls(text) == text


def test_messages_and_warnings_are_escaped_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["report", f"{HOSTILE}.sqlite"]) == 2
    assert "\x1b" not in capsys.readouterr().err
    warnings.showwarning(HOSTILE, UserWarning, "", 0)
    assert capsys.readouterr().err == f"openfield: {SHOWN}\n"


def _stripped(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())
