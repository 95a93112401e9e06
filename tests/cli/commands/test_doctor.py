"""`openfield doctor`: every extra is named, and whether agents can be isolated."""

from __future__ import annotations

import json
from typing import Any

import pytest

from openfield.domains.doom.engine import state_source
from openfield.runner.isolation import bubblewrap


def test_doctor_names_every_extra(openfield: Any) -> None:
    parts = json.loads(openfield("doctor", "--json").out)["extras"]
    assert {"data", "gym"} <= parts.keys()
    assert not {"all", "dev"} & parts.keys()
    named = {line.split()[0] for line in openfield("doctor").out.splitlines()[3:] if line.strip()}
    assert named == parts.keys() | {"isolation"}


def test_doctor_says_whether_agents_can_be_isolated(openfield: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "find_obstacle", lambda: "")
    assert json.loads(openfield("doctor", "--json").out)["isolation"] == {"bubblewrap": True, "obstacle": ""}
    monkeypatch.setattr(bubblewrap, "find_obstacle", lambda: "bwrap: No permission")
    assert "isolation  bwrap: No permission" in openfield("doctor").out


def test_doctor_says_what_domains_know_of_what_they_need(openfield: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("vizdoom")
    assert json.loads(openfield("doctor", "--json").out)["notes"] == []
    monkeypatch.setattr(state_source, "KNOWN_VERSIONS", ("0.1",))
    (note,) = json.loads(openfield("doctor", "--json").out)["notes"]  # both tasks of Doom say it
    assert note.startswith("openfield does not know the memory layout of vizdoom ")
    assert note in openfield("doctor").out
