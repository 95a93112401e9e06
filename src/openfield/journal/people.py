"""Which cells of a run were played by people: facts that name each person of an agent such as `human`."""

from __future__ import annotations

from collections.abc import Mapping

PERSON = "person "
"""How facts about people begin: `person AGENT NUMBER`, and `person AGENT NUMBER KEY` for what they did or said."""


def person_fact(agent: str, number: int) -> str:
    """Return the key of the fact that names a person."""
    return f"{PERSON}{agent} {number}"


def name_person(facts: Mapping[str, str], agent: str, repeat: int) -> str:
    """Return what a run file calls the person who played as an agent; empty if that was no person of a study."""
    return facts.get(person_fact(agent, repeat), "")
