"""Choose the next trial for a remote agent.

Stands between the dispatchers, which open rollouts, and the journal, which knows how every attempt ended.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping

from openfield.cell import Cell, CellStatus
from openfield.journal.reader import MAX_RETRIES, OUR_FAILURES, RESUMABLE, CellRecord, Run
from openfield.journal.writer import Journal
from openfield.runner.plan import facts_of, make_cells
from openfield.trial import Trial

AGAIN = (*RESUMABLE, *OUR_FAILURES, "agent_gone")
"""Outcomes of trials that are offered again, from their beginning, where a protocol has no way to go on."""

MAX_KEPT = 256
"""Agents whose own trials are kept in memory."""


class Assignments:
    """The trials of remote agents: those every agent gets, or those an agent was enrolled with."""

    def __init__(self, journal: Journal, trials: Iterable[Trial], hand_over: Callable[[], None] = lambda: None) -> None:
        """Assign trials to the agents of a journal; `hand_over` gives it what agents have written and it lacks yet."""
        self.trials = list(trials)
        """The trials of agents that have none of their own."""
        self._journal, self._hand_over = journal, hand_over
        self._own: OrderedDict[str, list[Cell]] = OrderedDict()  # of the agents that enrolled last
        self._has_dropped = False

    def enroll(self, name: str, trials: Iterable[Trial], facts: Mapping[str, str]) -> None:
        """Give an agent trials of its own, and record the facts it states about itself."""
        cells = self._own[name] = make_cells([name], trials)
        self._enter(name, cells, facts)
        if len(self._own) > MAX_KEPT:  # the record has them too, and strangers may enroll under any number of names
            self._own.popitem(last=False)
            self._has_dropped = True

    def enter(self, name: str) -> list[Cell]:
        """Record the cells of an agent and return them."""
        own = self._own.get(name) or (self.find(name) if self._has_dropped else [])
        cells = own or make_cells([name], self.trials)
        self._enter(name, cells, {})
        return cells

    def find(self, name: str) -> list[Cell]:
        """Return the cells of an agent that enrolled, also before a restart."""
        return self._own.get(name) or [record.cell for record in self.records() if record.agent == name]

    def records(self, only: str | None = None) -> list[CellRecord]:
        """Return the recorded cells of all agents, or only one, also from before a restart."""
        self._hand_over()
        self._journal.flush()
        with Run(self._journal.path) as run:
            return run.cells(with_episodes=False, only=only)

    def attempt(self, cell: Cell, taken: Container[str]) -> CellStatus | None:
        """Return the attempt in which to play a cell, new or resumed; None if it cannot be played now."""
        if cell.id in taken:
            return None
        self._hand_over()
        leased, status = self._journal.take([cell.id], lambda _, found: _is_new(found) or found.outcome in RESUMABLE)[
            cell.id
        ]
        if not leased:
            return None
        return CellStatus(self._journal.begin(cell.id)) if _is_new(status) else status

    def begin(self, cells: Iterable[Cell], taken: Container[str]) -> Iterator[tuple[Cell, int]]:
        """Begin a new attempt at each of these cells that is neither being played nor finished, one by one."""
        outcomes = {record.id: record.outcome for record in self.records()}  # also of one booked a moment ago
        for cell in cells:
            if outcomes[cell.id] in AGAIN and cell.id not in taken and self._journal.lease(cell.id):
                yield cell, self._journal.begin(cell.id)

    def _enter(self, name: str, cells: list[Cell], facts: Mapping[str, str]) -> None:
        self._journal.enter(cells, {name: None}, {**facts_of(cells), **facts})


def _is_new(status: CellStatus) -> bool:
    """Return whether a cell needs an attempt: the first, or another after a failure that was not the agent's."""
    return not status.attempt or (status.outcome in OUR_FAILURES and status.attempt <= MAX_RETRIES)
