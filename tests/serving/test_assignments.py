"""Who is left with which trial, by the record alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from openfield.cell import Cell, CellStatus
from openfield.journal.reader import MAX_RETRIES
from openfield.journal.writer import Journal
from openfield.record import AttemptEnd
from openfield.serving.assignments import Assignments
from support.worlds import tiny_trials


@pytest.fixture
def journal(path: Path) -> Iterator[Journal]:
    with Journal(path) as record:
        yield record


def end(journal: Journal, cell: Cell, attempt: int, outcome: str) -> None:
    journal.add(AttemptEnd(cell.id, attempt, outcome, "", 0.0))


def test_an_agent_gets_everybodys_trials_or_those_it_was_enrolled_with(journal: Journal) -> None:
    assignments = Assignments(journal, tiny_trials(2))
    assignments.enroll("own", tiny_trials(3), {"session own": "x"})
    assert [len(assignments.enter(name)) for name in ("own", "guest")] == [3, 2]
    assert {record.agent for record in assignments.records()} == {"own", "guest"}


def test_who_enrolled_before_a_restart_is_found_again(journal: Journal) -> None:
    Assignments(journal, tiny_trials(1)).enroll("own", tiny_trials(3), {})
    again = Assignments(journal, tiny_trials(1))
    assert [cell.trial for cell in again.find("own")] == tiny_trials(3)
    assert again.find("stranger") == []


def test_strangers_cost_no_memory_for_ever(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that enroll and never come back are dropped from memory; the record still knows what they were given."""
    monkeypatch.setattr("openfield.serving.assignments.MAX_KEPT", 2)
    assignments = Assignments(journal, tiny_trials(1))
    for number in range(5):
        assignments.enroll(f"stranger {number}", tiny_trials(3), {})
    assert len(assignments._own) == 2
    assert [len(assignments.enter(name)) for name in ("stranger 0", "stranger 4", "guest")] == [3, 3, 1]


@pytest.mark.parametrize(
    ("outcome", "attempt"),
    [("cancelled", 1), ("world_error", 2), ("done", None), ("truncated", None), ("agent_error", None)],
)
def test_a_trial_goes_on_is_tried_again_or_is_over(journal: Journal, outcome: str, attempt: int | None) -> None:
    assignments = Assignments(journal, tiny_trials(1))
    (cell,) = assignments.enter("ada")
    assert assignments.attempt(cell, {cell.id}) is None
    assert assignments.attempt(cell, ()) == CellStatus(1)
    end(journal, cell, 1, outcome)
    found = assignments.attempt(cell, ())
    assert (None if found is None else found.attempt) == attempt


def test_our_own_failures_are_not_tried_for_ever(journal: Journal) -> None:
    assignments = Assignments(journal, tiny_trials(1))
    (cell,) = assignments.enter("ada")
    tried = 0
    while (status := assignments.attempt(cell, ())) is not None:
        tried += 1
        end(journal, cell, status.attempt, "harness_error")
    assert tried == 1 + MAX_RETRIES


def test_only_trials_that_nobody_plays_or_finished_are_begun(journal: Journal) -> None:
    assignments = Assignments(journal, tiny_trials(4))
    done, gone, taken, fresh = cells = assignments.enter("ada")
    end(journal, done, journal.begin(done.id), "done")
    end(journal, gone, journal.begin(gone.id), "agent_gone")
    assert list(assignments.begin(cells, {taken.id})) == [(gone, 2), (fresh, 1)]
