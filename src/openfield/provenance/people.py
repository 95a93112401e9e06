"""Which cells of a run people played, and how long they took: facts of a run file name each person.

All people of a study are one agent, such as `human`, and each is a repeat of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from openfield.journal.reader import CellRecord, Run

PERSON = "person "
"""How facts about people begin: `person AGENT NUMBER`, and `person AGENT NUMBER KEY` for what they did or said."""


def person_fact(agent: str, number: int) -> str:
    """Return the key of the fact that names a person."""
    return f"{PERSON}{agent} {number}"


def list_people(run: Run) -> list[str]:
    """Return the agents of a run that are people."""
    return [agent for agent in run.agents if any(key.startswith(f"{PERSON}{agent} ") for key in run.facts)]


def read_person_answers(run: Run, agent: str, person: str) -> dict[str, str]:
    """Return a person's answers to the questions of a study, by the name of the question; empty if nothing.

    Args:
        run: The run file.
        agent: What all people are called together.
        person: What the record calls the person.
    """
    start = f"{PERSON}{agent} "
    key = next((key for key, name in run.facts.items() if name == person and key.startswith(start)), "")
    try:
        return msgspec.json.decode(run.facts[f"{key} answers"], type=_Answers).value
    except (LookupError, msgspec.DecodeError):
        return {}


class _Answers(msgspec.Struct):
    value: dict[str, str]


def name_people(cells: Iterable[CellRecord], facts: Mapping[str, str]) -> Iterator[CellRecord]:
    """Yield cells, those of people with the name of the person."""
    for cell in cells:
        name = facts.get(person_fact(cell.agent, cell.repeat), "")
        yield msgspec.structs.replace(cell, person=name) if name else cell


def measure_responses(run: Run, cell: CellRecord) -> list[float | None]:
    """Return the mean seconds of a person's actions in each episode; None for episodes without actions."""
    times = [
        (step.reply.action is not None, step.took / 1e9)
        for step in run.raw_steps(cell.id, cell.attempt)
        if step.reply is not None
    ]
    found, first = [], 0
    for episode in cell.episodes:
        acted = [seconds for acts, seconds in times[first : first + episode.turns] if acts]
        found.append(sum(acted) / len(acted) if acted else None)
        first += episode.turns
    return found
