"""Run a plan: hand cells to an executor, keep the record, retry failures of our own, resume what was begun."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any, TypedDict

import msgspec

from openfield.cell import Cell
from openfield.errors import Cancelled, DamagedRun, InvalidInput, ReplayMismatch
from openfield.journal.reader import MAX_RETRIES, OUR_FAILURES, RESUMABLE, SCORED, CellRecord, Run
from openfield.journal.trust import admit_code, list_code, sign_code, trusted_domain
from openfield.journal.writer import Journal
from openfield.record import AttemptEnd, Entry
from openfield.registry import domain_source
from openfield.runner.executors import Executor, Inline, Processes
from openfield.runner.isolation.settings import Isolation, make_isolation
from openfield.runner.plan import Plan, check_plan, facts_of
from openfield.runner.player import Job
from openfield.runner.provenance import Remarks, RunOrigin, latest_versions, read_provenance

Watch = Callable[[Entry], None]
ISOLATION = "isolation"
"""The fact of a run file that says how its agents are isolated."""
LOOK_SECONDS = 1.0
"""How often a runner that waits looks whether another process has left or finished a cell."""


class RunOptions(TypedDict, total=False):
    """What `run` and `resume` take beside their parameters."""

    keep: bool
    """Keep cells that an earlier version of an agent played, and mark them, instead of playing them again."""
    note: str
    """What the record should say about this call."""
    tags: Sequence[str]
    """Words to find it by."""
    trust: bool
    """Run code that a run file names even if you did not sign it; only for `resume`."""


class RunWarning(UserWarning):
    """A run does something that its user may not expect: cells are played again, or wait for another process."""


def run_plan(
    plan: Plan,
    journal: str | Path,
    workers: int = 0,
    retry: bool = False,
    watch: Watch | None = None,
    keep: bool = False,
    remarks: Remarks | None = None,
) -> None:
    """Play all cells of a plan that a run file does not hold yet.

    Args:
        plan: What to play.
        journal: The run file.
        workers: How many processes play; 0 plays here.
        retry: Play cells again that an agent failed.
        watch: Called with every entry of the record, to show progress.
        keep: Keep cells that an earlier version of an agent played.
        remarks: What the user says about this command.
    """
    with Journal(journal) as record:
        _check_isolation(record.path, plan.isolation)
        facts = {**facts_of(plan.cells), **plan.facts, **_isolation_facts(plan.isolation)}
        facts |= sign_code(plan.sources.values())
        record.enter(plan.cells, plan.sources, facts)
        scheduler = CellScheduler(record, plan, retry, watch, keep)
        remarks = remarks or Remarks()
        if scheduler.brings_news or remarks.note or remarks.tags:
            origin = RunOrigin(plan.codes, plan.domains.values(), remarks)
            record.enter((), {}, origin.facts(), origin.sources())
        scheduler.run(workers)


def read_plan(
    journal: str | Path,
    retry: bool = False,
    isolation: Mapping[str, Any] | None = None,
    trust: bool = False,
    keep: bool = False,
) -> Plan:
    """Return the plan of a run file, to go on with it. The file is all it needs.

    Args:
        journal: The run file.
        retry: Play cells again that an agent failed.
        isolation: What changes in what its isolated agents may see and use, as keys of `Isolation`.
        trust: Run code that the file names even if this user did not sign it.
        keep: Keep cells that an earlier version of an agent played.

    Raises:
        InvalidInput: The file names code that may not run here, or has nothing to play.
    """
    with Run(journal) as run:
        facts, sources = run.facts, run.agents
        records = run.cells(with_episodes=False)
        _check_records(journal, records, sources)
        admit_code(run, list_code(run), trust)
        cells = [record.cell for record in records]
        domains = {name: trusted_domain(run, name, trust) for name in {cell.trial.domain for cell in cells}}
    agents = {name: source for name, source in sources.items() if source is not None}
    plan = Plan(tuple(cells), agents, domains)
    left = [record.cell for record in records if _is_left(record, retry) or (is_outdated(record, plan) and not keep)]
    for name in {cell.agent for cell in left} - agents.keys():
        raise InvalidInput(f"The agent '{name}' is not one openfield starts; start its own program again to resume.")
    kept = _read_isolation(facts)
    if kept is None and isolation:
        raise InvalidInput(f"{journal} was begun without --isolate. Leave it out, or use another run file.")
    if kept is not None:
        changes = {key: value for key, value in (isolation or {}).items() if key != "isolate"}
        kept = make_isolation(**{**msgspec.to_builtins(kept), **changes})
    checked = check_plan(left, agents, kept)
    return replace(checked, cells=tuple(cells), domains=domains)


def _read_isolation(facts: Mapping[str, str]) -> Isolation | None:
    """Return how the agents of a run file are isolated; None if they are not."""
    try:
        return msgspec.json.decode(facts[ISOLATION], type=Isolation) if ISOLATION in facts else None
    except msgspec.DecodeError as error:
        raise DamagedRun(f"The run file is damaged: what it says of isolation cannot be read: {error}.") from None


def _isolation_facts(isolation: Isolation | None) -> dict[str, str]:
    return {} if isolation is None else {ISOLATION: msgspec.json.encode(isolation).decode()}


def _check_isolation(path: Path, isolation: Isolation | None) -> None:
    """Check that a run goes on as it was begun: what its numbers are worth is said of it as a whole."""
    with Run(path) as run:
        facts = run.facts
    kept = _read_isolation(facts)
    if facts and (kept is None) is not (isolation is None):
        begun, now = ("without", "Leave it out") if kept is None else ("with", "Add it")
        raise InvalidInput(f"{path} was begun {begun} --isolate. {now}, or use another run file.")
    if kept is not None and isolation is not None and kept.bubblewrap and not isolation.bubblewrap:
        raise InvalidInput(f"{path} was begun inside bubblewrap, which does not work here. Use another run file.")


class CellScheduler:
    """Decides which cell is played next, and what follows from how each ended."""

    def __init__(
        self, journal: Journal, plan: Plan, retry: bool = False, watch: Watch | None = None, keep: bool = False
    ) -> None:
        self._journal = journal
        self._plan = plan
        self._watch = watch
        self._retry, self._keep = retry, keep
        self._cells = {cell.id: cell for cell in plan.cells}
        self._reader = Run(journal.path)
        records = {record.id: record for record in self._read() if record.id in self._cells}
        self._attempts = {cell: record.attempt for cell, record in records.items()}  # before this run
        self._outcomes = {cell: record.outcome for cell, record in records.items()}
        self._left = [cell for cell in self._cells if self._is_left(records[cell])]
        self._running: set[str] = set()
        self._elsewhere: list[str] = []  # cells that another process plays
        self._rounds = 0  # how often these were looked at again
        self._failures: Counter[str] = Counter()
        self._torn: set[str] = set()  # cells whose worker died
        self._anew: set[str] = set()  # cells to be played again from the start
        self._changed = ""  # how a world differs from its record
        self._stopping = False
        self._say_outdated(records.values())

    @property
    def brings_news(self) -> bool:
        """Whether there is something to play, or an agent is not the one that the run file knows."""
        known = latest_versions(read_provenance(self._reader.facts, self._journal.path))
        return bool(self._left) or any(known.get(pair) != code.version for pair, code in self._plan.codes.items())

    def run(self, workers: int) -> None:
        """Play all cells that are left, and wait for those that another process plays."""
        if workers < 0:
            raise InvalidInput(f"There cannot be {workers} workers; 0 plays in this process.")
        executor: Executor = Processes(self._emit, workers) if workers else Inline(self._emit)
        try:
            with _on_signals(lambda: self._stop(executor)):
                while self._running or ((self._left or self._elsewhere) and not self._stopping):
                    self._start_some(executor)
                    if self._running:
                        executor.poll()
                    elif self._elsewhere and not self._stopping:
                        self._wait()
                    if self._changed:
                        executor.stop()
        finally:
            executor.close()
            self._reader.close()
        self._journal.flush()
        self._conclude()

    def _conclude(self) -> None:
        """Say why cells are left, if any are."""
        path = self._journal.path
        if self._changed:
            raise ReplayMismatch(
                f"{self._changed} The earlier record is unchanged. Restore the world or its data to go on, "
                "use another run file, or play such cells again with --retry."
            )
        if self._stopping:
            raise Cancelled(f"Stopped; all that was recorded is safe. To go on: openfield resume {quote(str(path))}")

    def _wait(self) -> None:
        """Wait a moment for cells that another process plays, and put them back in line: it may leave some."""
        records = {record.id: record for record in self._read()}
        for cell in [each for each in self._elsewhere if not self._is_left(records[each])]:
            self._elsewhere.remove(cell)
            self._take_as_played(records[cell])
        if self._elsewhere and self._rounds:  # in the first round it may have left them since they were asked for
            self._sleep()
        self._rounds += 1
        self._left, self._elsewhere = [*self._left, *self._elsewhere], []

    def _sleep(self) -> None:
        """Wait a moment, and say the first time what for."""
        if self._rounds == 1:
            text = f"Waiting for {count_cells(self._elsewhere)} that another process plays. Ctrl-C leaves them to it."
            warnings.warn(text, RunWarning, stacklevel=5)
        until = time.monotonic() + LOOK_SECONDS
        while time.monotonic() < until and not self._stopping:
            time.sleep(LOOK_SECONDS / 10)

    def _take_as_played(self, record: CellRecord) -> None:
        """Take note of a cell that another process has played."""
        self._outcomes[record.id] = record.outcome
        if self._watch is not None and record.outcome is not None:
            self._watch(AttemptEnd(record.id, record.attempt, record.outcome, record.note, record.seconds))

    def _say_outdated(self, records: Iterable[CellRecord]) -> None:
        """Say which cells an earlier version of an agent played, and what becomes of them."""
        told = read_provenance(self._reader.facts, self._journal.path)
        known = {each.fingerprint: each for one in told for agents in one.agents.values() for each in agents.values()}
        found: dict[tuple[str, str], list[str]] = {}
        for record in records:
            if record.player is not None and is_outdated(record, self._plan):
                found.setdefault((record.trial.domain, record.agent), []).append(record.player)
        for pair, players in found.items():
            before, now = known.get(players[-1]), self._plan.codes[pair].version
            why = "" if before is None else f" ({', '.join(before.differences(now))} changed)"
            then = "kept and marked." if self._keep else "played again; --keep keeps them."
            text = f"An earlier version of {pair[1]} played {count_cells(players)}{why}. They are {then}"
            warnings.warn(text, RunWarning, stacklevel=4)

    def _is_left(self, record: CellRecord) -> bool:
        """Return whether a cell is to be played: another process may have tried a failed one again meanwhile."""
        if not self._keep and is_outdated(record, self._plan):
            return True
        return _is_left(record, self._retry and record.attempt <= self._attempts.get(record.id, 0))

    def _start_some(self, executor: Executor) -> None:
        while executor.free and not self._stopping and (ready := next(filter(self._is_ready, self._left), None)):
            self._left.remove(ready)
            if self._cells[ready].after in self._elsewhere or not self._journal.lease(ready):
                self._elsewhere.append(ready)
            else:
                self._start(self._cells[ready], executor)
        if self._left and not self._running and not self._stopping and not self._elsewhere:
            raise InvalidInput("The trials that are left wait for each other (`after`).")

    def _start(self, cell: Cell, executor: Executor) -> None:
        (record,) = self._read(cell.id)
        if not self._is_left(record):  # another process was faster
            self._journal.release(cell.id)
            self._take_as_played(record)
            return
        self._running.add(cell.id)
        attempt, steps = record.attempt, record.steps
        anew = cell.id in self._anew or (not self._keep and is_outdated(record, self._plan))
        if not attempt or anew or not (record.outcome in RESUMABLE or cell.id in self._torn):
            fingerprint = self._plan.fingerprints.get((cell.trial.domain, cell.agent))
            attempt, steps = self._journal.begin(cell.id, fingerprint), 0
        before = None if cell.after is None else self._cells[cell.after]
        if before is not None and self._outcomes[before.id] not in SCORED:
            (failed,) = self._read(before.id)
            note = f"The trial it comes after ended as {failed.outcome}: {failed.note or 'nothing more is known.'}"
            self._emit(AttemptEnd(cell.id, attempt, str(self._outcomes[before.id]), note, 0.0))
            return
        start = None if before is None else (before, self._read(before.id)[0].attempt)
        source, path = domain_source(cell.trial.domain), self._journal.path.absolute()  # an agent may change folders
        agent, domain = self._plan.agents[cell.agent], source or cell.trial.domain
        executor.start(Job(cell, attempt, agent, domain, path, steps, start, self._plan.isolation))

    def _emit(self, *entries: Entry) -> None:
        self._journal.add(*entries)
        for entry in entries:
            if isinstance(entry, AttemptEnd):
                self._finish(entry)
            if self._watch is not None:
                self._watch(entry)

    def _finish(self, entry: AttemptEnd) -> None:
        """Take note of an outcome. Failures of our own and superseded attempts put the cell back in line."""
        self._running.discard(entry.cell)
        self._outcomes[entry.cell] = entry.outcome
        self._failures[entry.cell] += entry.outcome in OUR_FAILURES
        (self._torn.add if entry.torn else self._torn.discard)(entry.cell)
        again = entry.outcome in OUR_FAILURES and self._failures[entry.cell] <= MAX_RETRIES
        differs = entry.outcome == "cancelled" and bool(entry.note)
        if differs and self._retry:
            self._anew.add(entry.cell)
        elif differs:
            self._changed = f"Cell {entry.cell}: {entry.note}"
        if entry.outcome == "superseded":
            told = f"{self._cells[entry.cell].agent}, cell {entry.cell}: {entry.note}"
            warnings.warn(told, RunWarning, stacklevel=4)
        if again or entry.outcome == "superseded" or (differs and self._retry):
            self._left.insert(0, entry.cell)
        else:
            self._stopping |= entry.outcome == "cancelled"  # a player who leaves is not asked to play the next trial

    def _stop(self, executor: Executor) -> None:
        self._stopping = True
        executor.stop()

    def _is_ready(self, cell: str) -> bool:
        after = self._cells[cell].after
        return after is None or not (after in self._left or after in self._running)

    def _read(self, cell: str | None = None) -> list[CellRecord]:
        self._journal.flush()
        return self._reader.cells(with_episodes=False, only=cell)


def _is_left(record: CellRecord, retry: bool) -> bool:
    """Return whether a cell is still to be played. Failures of an agent are tried again only on request."""
    outcome = record.outcome
    return outcome not in SCORED and (retry or outcome is None or not outcome.startswith("agent_"))


def is_outdated(record: CellRecord, plan: Plan) -> bool:
    """Return whether an earlier version of the agent played a cell; without fingerprints nothing is known."""
    current = plan.fingerprints.get((record.trial.domain, record.agent))
    return None not in (record.player, current) and record.player != current


def count_cells(cells: Collection[object]) -> str:
    """Return how many cells there are, in words."""
    return "1 cell" if len(cells) == 1 else f"{len(cells)} cells"


@contextmanager
def _on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Stop gently on the first Ctrl-C or request to terminate, and at once on a second Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        stop()
        os.write(2, b"Stopping after the turn under way. Ctrl-C again stops at once.\n")  # safe in a handler

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _check_records(journal: str | Path, records: Iterable[CellRecord], sources: Mapping[str, str | None]) -> None:
    """Check that a run file has cells, that their ids fit their content, and that their agents are entered."""
    if not records:
        raise InvalidInput(
            f"{journal} has no cells yet: it was stopped before it began. The command that made it begins anew."
        )
    for record in records:
        if record.cell.id != record.id:
            raise DamagedRun(f"{journal} is damaged: agent, trial or repeat of cell {record.id} is not what it was.")
        if record.agent not in sources:
            raise DamagedRun(f"{journal} is damaged: its agent '{record.agent}' is not entered.")
