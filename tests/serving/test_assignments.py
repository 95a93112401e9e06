"""Who is left with which trial, by the record alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from openfield.journal.reader import MOST_RETRIES
from openfield.journal.steps import AttemptEnd
from openfield.journal.writer import Journal
from openfield.runner.plan import Cell
from openfield.serving.assignments import Docket
from support.worlds import tiny_trials


@pytest.fixture
def journal(path: Path) -> Iterator[Journal]:
    with Journal(path) as record:
        yield record


def free(cell: Cell) -> bool:
    return False


def end(journal: Journal, cell: Cell, attempt: int, outcome: str) -> None:
    journal.add(AttemptEnd(cell.id, attempt, outcome, "", 0.0))


def test_an_agent_gets_everybodys_trials_or_those_it_was_enrolled_with(journal: Journal) -> None:
    docket = Docket(journal, tiny_trials(2))
    docket.enroll("own", tiny_trials(3), {"session own": "x"})
    assert [len(docket.enter(name)) for name in ("own", "guest")] == [3, 2]
    assert {record.agent for record in docket.records()} == {"own", "guest"}


def test_who_enrolled_before_a_restart_is_found_again(journal: Journal) -> None:
    Docket(journal, tiny_trials(1)).enroll("own", tiny_trials(3), {})
    again = Docket(journal, tiny_trials(1))
    assert [cell.trial for cell in again.find("own")] == tiny_trials(3)
    assert again.find("stranger") == []


@pytest.mark.parametrize(
    ("outcome", "attempt"),
    [("cancelled", 1), ("world_error", 2), ("done", None), ("truncated", None), ("agent_error", None)],
)
def test_a_trial_goes_on_is_tried_again_or_is_over(journal: Journal, outcome: str, attempt: int | None) -> None:
    docket = Docket(journal, tiny_trials(1))
    (cell,) = docket.enter("ada")
    assert docket.attempt(cell, lambda _: True) is None
    assert docket.attempt(cell, free) == 1
    end(journal, cell, 1, outcome)
    assert docket.attempt(cell, free) == attempt


def test_our_own_failures_are_not_tried_for_ever(journal: Journal) -> None:
    docket = Docket(journal, tiny_trials(1))
    (cell,) = docket.enter("ada")
    tried = 0
    while (attempt := docket.attempt(cell, free)) is not None:
        tried += 1
        end(journal, cell, attempt, "harness_error")
    assert tried == 1 + MOST_RETRIES


def test_only_trials_that_nobody_plays_or_finished_are_begun(journal: Journal) -> None:
    docket = Docket(journal, tiny_trials(4))
    done, gone, taken, fresh = cells = docket.enter("ada")
    end(journal, done, journal.begin(done.id), "done")
    end(journal, gone, journal.begin(gone.id), "agent_gone")
    assert list(docket.begin(cells, {taken.id})) == [(gone, 2), (fresh, 1)]
