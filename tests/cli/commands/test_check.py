"""`openfield check`: the example domain keeps the rules."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.places import MAZE


def test_check_finds_nothing_wrong_with_the_maze(openfield: Any) -> None:
    pytest.importorskip("openfield.testing")
    said = openfield("check", MAZE, "--json")
    assert said.status == 0
    assert json.loads(said.out)
