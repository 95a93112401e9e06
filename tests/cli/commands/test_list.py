"""`openfield list`: what there is to choose from, as tables and as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from openfield.registry import describe_agent, installed_domains
from support.places import MAZE


def test_lists_name_everything_of_a_domain(openfield: Any) -> None:
    assert "A small maze in which left and right may be swapped" in openfield("list", "domains", MAZE).out
    assert {"random", "compass", "counter", "enumerator"} <= set(openfield("list", "agents", MAZE).out.split())
    assert {"swapped", "slip:easy", "slip:hard"} <= set(openfield("list", "novelties", MAZE).out.split())
    assert "integer >= 3 <= 20  6        Cells along each side." in openfield("list", "settings", MAZE).out
    assert {"performance", "detection", "adaptation"} <= set(openfield("list", "metrics").out.split())


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        *(["list", what, MAZE] for what in ("domains", "agents", "novelties", "metrics", "settings", "flags")),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_json_of_lists_parses(openfield: Any, words: list[str]) -> None:
    said = openfield(*words, "--json")
    assert said.status == 0
    assert isinstance(json.loads(said.out), list | dict)


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


def test_agents_of_a_domain_come_first_each_with_its_meaning(narrow: Any) -> None:
    rows = json.loads(narrow("list", "agents", "birds", "--json").out)
    assert [row["agent"] for row in rows[:3]] == ["random", "naive", "planner"]
    assert {row["domain"] for row in rows[:3]} == {"birds"}
    assert rows[2]["meaning"] == "Simulates shots in a copy of the level and takes the best one."
    assert all(row["meaning"] for row in rows)
    lines = narrow("list", "agents", "birds").out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1].startswith("random ")


@pytest.mark.parametrize("domain", installed_domains(), ids=lambda domain: domain.name)
def test_every_agent_says_what_it_does(domain: Any) -> None:
    for source in domain.agents.values():
        meaning = describe_agent(source)
        assert meaning.endswith("."), source
        assert len(meaning) < 120, source
