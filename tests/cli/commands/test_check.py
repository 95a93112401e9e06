"""`openfield check`: the example domain keeps the rules."""

from __future__ import annotations

import json
from typing import Any

import pytest

from openfield.testing import Finding, Report
from support.places import MAZE


def test_check_finds_nothing_wrong_with_the_maze(openfield: Any) -> None:
    pytest.importorskip("openfield.testing")
    said = openfield("check", MAZE, "--json")
    assert said.status == 0
    assert json.loads(said.out)


def test_check_with_controls_names_those_that_did_not_fail(openfield: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Finding("control counter", "chance", False, "concordance 0.90, p = 0.0001")
    monkeypatch.setattr("openfield.testing.check_controls", lambda domain, novelty: Report((found,)))
    said = openfield("check", MAZE, "--controls")
    assert said.status == 2
    assert "FAILED  control counter  chance  concordance 0.90, p = 0.0001" in said.out
    assert json.loads(openfield("check", MAZE, "--controls", "--json").out)["findings"][0]["passed"] is False
