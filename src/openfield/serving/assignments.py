"""Which trials are left for whom: the cells of foreign agents, and which of them the record lets somebody play now.

Stands between serve, whose dispatcher hands out remotes, and the journal, which knows how every attempt ended.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping

from openfield.cell import Cell
from openfield.journal.reader import MAX_RETRIES, OUR_FAILURES, RESUMABLE, CellRecord, Run
from openfield.journal.writer import Journal
from openfield.runner.plan import facts_of, make_cells
from openfield.trial import Trial

AGAIN = (*RESUMABLE, *OUR_FAILURES, "agent_gone")
"""Outcomes of trials that are offered again, from their beginning, where a protocol has no way to go on."""


class Assignments:
    """The trials of whoever comes: those everybody gets, or those an agent was enrolled with."""

    def __init__(self, journal: Journal, trials: Iterable[Trial]) -> None:
        self.trials = list(trials)
        """What agents get that have no trials of their own."""
        self._journal = journal
        self._own: dict[str, list[Cell]] = {}

    def enroll(self, name: str, trials: Iterable[Trial], facts: Mapping[str, str]) -> None:
        """Gives an agent trials of its own, and puts on record what it says of itself."""
        cells = self._own[name] = make_cells([name], trials)
        self._enter(name, cells, facts)

    def enter(self, name: str) -> list[Cell]:
        """The cells of an agent, which are on record from now on."""
        cells = self._own.get(name) or make_cells([name], self.trials)
        self._enter(name, cells, {})
        return cells

    def find(self, name: str) -> list[Cell]:
        """The cells of an agent that enrolled, if only before a restart."""
        return self._own.get(name) or [record.cell for record in self.records() if record.agent == name]

    def records(self) -> list[CellRecord]:
        """What is on record of everybody, also from before a restart."""
        self._journal.flush()
        with Run(self._journal.path) as run:
            return run.cells(with_episodes=False)

    def attempt(self, cell: Cell, is_taken: Callable[[Cell], bool]) -> int | None:
        """The attempt to play a cell in, or to go on with; None if nobody may play it now."""
        self._journal.flush()
        with Run(self._journal.path) as run:
            (record,) = run.cells(with_episodes=False, only=cell.id)
        again = record.outcome in OUR_FAILURES and record.attempt <= MAX_RETRIES
        playable = again or record.outcome in RESUMABLE
        if is_taken(cell) or not playable or not self._journal.lease(cell.id):
            return None
        return self._journal.begin(cell.id) if again or not record.attempt else record.attempt

    def begin(self, cells: Iterable[Cell], taken: Container[str]) -> Iterator[tuple[Cell, int]]:
        """Begins those of these that nobody plays and nobody finished, one by one, each in an attempt of its own."""
        outcomes = {record.id: record.outcome for record in self.records()}  # also of one booked a moment ago
        for cell in cells:
            if outcomes[cell.id] in AGAIN and cell.id not in taken and self._journal.lease(cell.id):
                yield cell, self._journal.begin(cell.id)

    def _enter(self, name: str, cells: list[Cell], facts: Mapping[str, str]) -> None:
        self._journal.enter(cells, {name: None}, {**facts_of(cells), **facts})
