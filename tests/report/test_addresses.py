"""Addresses: one part for any name, and the same key for a file wherever it is named from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfield.report.addresses import agent_address, escape_name, name_run, novelty_address, read_name


@given(st.text())
def test_any_name_is_one_part_of_an_address_and_comes_back(name: str) -> None:
    part = escape_name(name)
    assert re.fullmatch(r"[\w+:@.~-]*", part, re.ASCII)
    assert not part.startswith(".")
    assert not part.endswith(".json")
    assert read_name(part) == name


def test_names_stay_readable() -> None:
    assert agent_address("maze-1", "gpt-4.1") == "/runs/maze-1/agents/gpt-4.1"
    assert agent_address("maze-1", "../a b") == "/runs/maze-1/agents/~2e~2e~2fa~20b"
    assert (
        novelty_address("maze-1", "birds", ["gravity", "wind:hard"]) == "/runs/maze-1/novelties/birds:gravity+wind:hard"
    )
    assert novelty_address("maze-1", "birds", []) == "/runs/maze-1/novelties/birds:none"


def test_a_run_has_one_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert name_run(Path("a b.sqlite")) == name_run(tmp_path / "x" / ".." / "a b.sqlite")
    assert name_run(Path("a b.sqlite")).startswith("a-b-")
    assert name_run(Path("one/a.sqlite")) != name_run(Path("two/a.sqlite"))
