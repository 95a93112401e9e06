"""Decide which cell is played next, and what follows from how each ended.

Starting or finishing a cell costs the same in a plan of a hundred cells and of a million: cells that are left form a
heap, cells that wait for another one are found by it, and only requested records are read.
"""

from __future__ import annotations

import heapq
import os
import signal
import threading
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

from openfield.cell import Cell, CellStatus
from openfield.clock import noticing_stops
from openfield.console import say_count
from openfield.errors import AgentAway, Cancelled, InvalidInput, ReplayMismatch
from openfield.journal.reader import MAX_RETRIES, OUR_FAILURES, RESUMABLE, SCORED, Run
from openfield.journal.receipt import Receipt
from openfield.journal.schema import DROPPED_FACT
from openfield.journal.writer import Journal
from openfield.parameters import is_control
from openfield.provenance.provenance import latest_versions, read_provenance
from openfield.provenance.usage import TokenBudget
from openfield.record import AttemptEnd, AttemptPlayer, Chunk, Entry
from openfield.registry import domain_source
from openfield.runner.executors import Executor
from openfield.runner.plan import Plan
from openfield.runner.player import AWAY, Job
from openfield.runner.stopping.batches import Batches, Dropped, Look

Watch = Callable[[Entry], None]
LOOK_SECONDS = 1.0
"""How often a runner that waits looks whether another process has left or finished a cell."""
AHEAD_SECONDS = 0.25
"""Cells that will be started within this time are leased together: each commit waits for the disk."""
MAX_AHEAD = 256
NOT_BEGUN = CellStatus()


class RunWarning(UserWarning):
    """A run does something that its user may not expect: cells are played again, or wait for another process."""


class CellScheduler:
    """Starts the cells of a plan on an executor until all are played."""

    def __init__(
        self, journal: Journal, reader: Run, plan: Plan, watch: Watch | None = None, look: Look | None = None
    ) -> None:
        """Read how far the cells of a plan are.

        Args:
            journal: The run file. They are entered in it before `run`.
            reader: The same file, open as long as cells are played.
            plan: The plan to play.
            watch: Called with every entry of the record.
            look: Looks between two batches of a run that stops by itself.
        """
        self._journal = journal
        self._plan = plan
        self._watch = watch
        self._retry, self._keep = plan.options.retry, plan.options.keep
        self._cells = {cell.id: cell for cell in plan.cells}
        self._reader = reader
        begun = self._reader.statuses()
        self._statuses = {cell: begun[cell] for cell in self._cells if cell in begun}
        self._attempts = {cell: status.attempt for cell, status in self._statuses.items()}  # before this run
        self._ranks = rank_cells(plan.cells)
        self._ready: list[tuple[int, str]] = []  # a heap of what may be started
        self._followers: dict[str, list[str]] = {}  # what waits, by the cell it waits for
        self._edited: set[str] = set()  # agents whose code is no longer that of the plan
        self._controls = {name for name, source in plan.sources.items() if is_control(source)}
        self._leased: deque[tuple[Cell, CellStatus]] = deque()  # cells to start next
        self._running: set[str] = set()
        self._elsewhere: dict[str, None] = {}  # cells that another process plays
        self._rounds = 0  # how often these were looked at again
        self._failures: Counter[str] = Counter()
        self._torn: set[str] = set()  # cells whose worker died
        self._anew: set[str] = set()  # cells to be played again from the start
        self._changed = ""  # how a world differs from its record
        self._away: dict[str, str] = {}  # agents that do not answer, and why; no further cell of them is started
        self._stopping = False
        self._executor: Executor | None = None
        self._budget = None if (limit := plan.options.run_token_limit) is None else TokenBudget(limit, self._reader)
        self._ended, self._since = 0, time.monotonic()
        self._until = self._since + plan.options.seconds
        self._dropped = self._reader.dropped_cells()
        self._look = look
        self._batches = self._line_up()
        self._say_outdated()

    @property
    def has_changes(self) -> bool:
        """Whether there is something to play, or an agent is not the one that the run file knows."""
        if self._ready:
            return True
        known = latest_versions(read_provenance(self._reader.facts, self._journal.path))
        return any(known.get(pair) != code.version for pair, code in self._plan.codes.items())

    def run(self, executor: Executor) -> None:
        """Play all cells that are left, and wait for those that another process plays.

        Args:
            executor: Plays them, and gives their entries to `emit`. It is closed in the end.
        """
        self._executor = executor
        with _on_signals(lambda: self._stop(executor)):
            try:
                while self._running or (self._is_something_left and not self._is_ending):
                    self._open_batches()
                    self._start_some(executor)
                    if self._running or not executor.free:  # machines may have yet to come
                        executor.poll()
                    elif self._elsewhere and not self._is_ending:
                        self._wait()
                    if self._changed:
                        executor.stop()
            finally:
                executor.close()
        self._journal.flush()
        self._conclude()

    def emit(self, *entries: Entry) -> Receipt[None]:
        """Record the entries of a cell, and take note of its end."""
        receipt = self._journal.add(*entries)
        for entry in entries:
            if self._budget is not None and isinstance(entry, Chunk):
                self._budget.count(entry)
                if self._budget.is_spent and self._executor is not None:
                    self._executor.stop()
            if isinstance(entry, AttemptPlayer):
                self._say_edited(self._cells[entry.cell].agent)
            elif isinstance(entry, AttemptEnd):
                self._finish(entry)
            if self._watch is not None:
                self._watch(entry)
        return receipt

    def put_back(self, cell: str) -> None:
        """Put a cell back in line whose machine is lost.

        It goes on where its record ends, and this does not count as a failure.
        """
        self._running.discard(cell)
        self._put_in_line([cell])

    @property
    def _is_ending(self) -> bool:
        """Whether no further cell is started."""
        return self._stopping or self._is_spent or time.monotonic() >= self._until

    @property
    def _is_spent(self) -> bool:
        return self._budget is not None and self._budget.is_spent

    @property
    def _is_something_left(self) -> bool:
        waiting = self._followers and not self._away  # a cell that an absent agent has left is not waited for
        is_due = self._batches is not None and self._batches.is_due
        return bool(self._leased or self._ready or self._elsewhere or waiting or is_due)

    def _line_up(self) -> Batches | None:
        """Put the cells that are left in line; of a run that stops by itself, those of the batches under way."""
        left = {cell for cell in self._cells if self._is_left(cell, self._statuses.get(cell, NOT_BEGUN))}
        if self._plan.stopping is None or self._look is None:
            self._line_up_cells(left)
            return None
        batches = Batches(self._plan.cells, self._plan.stopping, left)
        self._follow(batches.begin(self._look))
        return batches

    def _line_up_cells(self, cells: Iterable[str]) -> None:
        """Put cells in line, or behind the cells that they come after."""
        for cell in cells:
            after = self._cells[cell].after
            if after is not None and self._is_left(after, self._statuses.get(after, NOT_BEGUN)):
                self._followers.setdefault(after, []).append(cell)
            else:
                self._ready.append((self._ranks[cell], cell))
        heapq.heapify(self._ready)

    def _open_batches(self) -> None:
        """Look at batches that are over, and put those in line that follow them."""
        if self._batches is not None and self._look is not None and self._batches.is_due:
            self._journal.flush()
            self._follow(self._batches.go_on(self._look))

    def _follow(self, found: Iterable[list[str] | Dropped]) -> None:
        """Put the cells of a batch in line, and record which cells are not played, and why."""
        for each in found:
            if isinstance(each, Dropped):
                facts = {f"caution stopped {each.key}": each.why}
                facts |= {f"{DROPPED_FACT}{each.key}": " ".join(each.cells)} if each.cells else {}
                self._journal.enter((), {}, facts)
                self._dropped.update(each.cells)
            else:
                self._line_up_cells(each)

    def _conclude(self) -> None:
        """Say why cells are left, if any are."""
        path = self._journal.path
        if self._changed:
            raise ReplayMismatch(
                f"{self._changed} The earlier record is unchanged. Restore the world or its data to go on, "
                "use another run file, or play such cells again with --retry."
            )
        how = f"To go on: openfield resume {quote(str(path))}"
        if None in self._plan.sources.values():  # `resume` cannot start these agents
            how = "To go on, start the same command or program again."
        if self._stopping:
            raise Cancelled(f"Stopped; all that was recorded is safe. {how}")
        if self._budget is not None and self._budget.is_spent:
            text = f"The run has used {self._budget.used:,} tokens, and {self._budget.limit:,} are allowed"
            warnings.warn(f"{text}; some cells may be left. {how} --run-token-limit N", RunWarning, stacklevel=3)
            return
        for agent, why in self._away.items():
            raise AgentAway(f"{agent}: {why} Nothing is lost. {how}")
        if self._is_something_left:
            warnings.warn(f"The budget is used up; some cells are left. {how}", RunWarning, stacklevel=3)

    def _start_some(self, executor: Executor) -> None:
        while executor.free and not self._is_ending and (self._leased or self._ready):
            if not self._leased:
                self._lease(executor.free)
            if self._leased and self._leased[0][0].agent in self._away:
                self._journal.release(self._leased.popleft()[0].id)
            elif self._leased:
                self._start(*self._leased.popleft(), executor)
        idle = not (self._leased or self._ready or self._running or self._elsewhere or self._is_ending)
        if idle and self._followers and not self._away:
            raise InvalidInput("The trials that are left wait for each other (`after`).")

    def _lease(self, free: int) -> None:
        """Lease the cells that are started next. Others may have played some, or be at it."""
        pace = self._ended / max(time.monotonic() - self._since, AHEAD_SECONDS)
        count = min(len(self._ready), free + min(int(pace * AHEAD_SECONDS), MAX_AHEAD))
        wanted = [heapq.heappop(self._ready)[1] for _ in range(count)]
        wanted = [cell for cell in wanted if self._cells[cell].agent not in self._away]
        for cell, (leased, status) in self._journal.take(wanted, self._is_left).items():
            if leased:
                self._leased.append((self._cells[cell], status))
            elif self._is_left(cell, status):
                self._elsewhere[cell] = None
            else:
                self._take_as_played(cell, status)

    def _start(self, cell: Cell, status: CellStatus, executor: Executor) -> None:
        self._running.add(cell.id)
        attempt, steps = status.attempt, status.steps
        anew = cell.id in self._anew or (not self._keep and is_outdated(cell, status.player, self._plan))
        if not attempt or anew or not (status.outcome in RESUMABLE or cell.id in self._torn):
            attempt, steps = attempt + 1, 0
            fingerprint = self._plan.fingerprints.get((cell.trial.domain, cell.agent))
            self._journal.add_anew(cell.id, attempt, fingerprint=fingerprint)
        start = None
        if cell.after is not None:
            self._journal.flush()  # a worker reads the agent that the other trial left
            before = self._statuses[cell.after]
            if before.outcome not in SCORED:
                self.emit(AttemptEnd(cell.id, attempt, str(before.outcome), self._explain(cell.after), 0.0))
                return
            if cell.agent not in self._controls:  # they learn nothing, and guess anew in every trial
                start = self._cells[cell.after], before.attempt
        source, path = domain_source(cell.trial.domain), self._journal.path.absolute()  # an agent may change folders
        agent, domain = self._plan.agents[cell.agent], source or cell.trial.domain
        isolation, options = self._plan.isolation, self._plan.options
        every, full = options.save_seconds, options.record == "full"
        known = self._plan.fingerprints.get((cell.trial.domain, cell.agent))
        job = Job(cell, attempt, agent, domain, path, steps, start, isolation, every, full, fingerprint=known)
        executor.start(job)

    def _explain(self, failed: str) -> str:
        """Return why a cell that comes after a failed one is not played."""
        (record,) = self._reader.cells(with_episodes=False, only=failed)
        return f"The trial it comes after ended as {record.outcome}: {record.note or 'nothing more is known.'}"

    def _finish(self, entry: AttemptEnd) -> None:
        """Take note of an outcome. Failures of our own and superseded attempts put the cell back in line."""
        self._running.discard(entry.cell)
        self._statuses[entry.cell] = CellStatus(entry.attempt, entry.outcome)
        self._ended += 1
        self._failures[entry.cell] += entry.outcome in OUR_FAILURES
        (self._torn.add if entry.torn else self._torn.discard)(entry.cell)
        again = entry.outcome in OUR_FAILURES and self._failures[entry.cell] <= MAX_RETRIES
        away = entry.outcome == "cancelled" and entry.note.startswith(AWAY)
        if away:
            self._away.setdefault(self._cells[entry.cell].agent, entry.note.removeprefix(AWAY).strip())
        differs = entry.outcome == "cancelled" and bool(entry.note) and not away
        if differs and self._retry:
            self._anew.add(entry.cell)
        elif differs:
            self._changed = f"Cell {entry.cell}: {entry.note}"
        if entry.outcome == "superseded":
            message = f"{self._cells[entry.cell].agent}, cell {entry.cell}: {entry.note}"
            warnings.warn(message, RunWarning, stacklevel=4)
        if again or entry.outcome == "superseded" or (differs and self._retry):
            self._put_in_line([entry.cell])
        else:
            self._put_in_line(() if away else self._followers.pop(entry.cell, ()))
            if self._batches is not None and entry.outcome != "cancelled":
                self._batches.end(entry.cell)
            self._stopping |= (
                entry.outcome == "cancelled" and not away and not self._is_spent
            )  # a player who leaves is not asked to play the next trial

    def _put_in_line(self, cells: Iterable[str]) -> None:
        for cell in cells:
            heapq.heappush(self._ready, (self._ranks[cell], cell))

    def _stop(self, executor: Executor) -> None:
        self._stopping = True
        executor.stop()

    def _wait(self) -> None:
        """Wait a moment for cells that another process plays, and put them back in line: it may leave some."""
        if self._rounds:  # in the first round it may have left them since they were asked for
            self._sleep()
        self._rounds += 1
        waiting, self._elsewhere = self._elsewhere, {}
        self._put_in_line(waiting)

    def _sleep(self) -> None:
        """Wait a moment, and say the first time what for."""
        if self._rounds == 1:
            cells = say_count(len(self._elsewhere), "cell")
            text = f"Waiting for {cells} that another process plays. Ctrl-C ends the waiting."
            strange = self._journal.find_strange_lease()
            warnings.warn(f"{text} {strange}" if strange else text, RunWarning, stacklevel=5)
        until = time.monotonic() + LOOK_SECONDS
        while time.monotonic() < until and not self._is_ending:
            time.sleep(LOOK_SECONDS / 10)

    def _take_as_played(self, cell: str, status: CellStatus) -> None:
        """Take note of a cell that another process has played."""
        self._statuses[cell] = status
        self._put_in_line(self._followers.pop(cell, ()))
        if self._batches is not None:
            self._batches.end(cell)
        if self._watch is not None and status.outcome is not None:
            self._watch(AttemptEnd(cell, status.attempt, status.outcome, "", 0.0))

    def _say_outdated(self) -> None:
        """Say which cells an earlier version of an agent played, and what becomes of them."""
        found: dict[tuple[str, str], list[str]] = {}
        for key, status in self._statuses.items():
            cell = self._cells[key]
            if status.player is not None and is_outdated(cell, status.player, self._plan):
                found.setdefault((cell.trial.domain, cell.agent), []).append(status.player)
        if not found:
            return
        provenance = read_provenance(self._reader.facts, self._journal.path)
        known = {
            each.fingerprint: each for one in provenance for agents in one.agents.values() for each in agents.values()
        }
        for pair, players in found.items():
            before, now = known.get(players[-1]), self._plan.codes[pair].version
            why = "" if before is None else f" ({', '.join(before.differences(now))} changed)"
            then = "kept and marked." if self._keep else "played again; --keep keeps them."
            text = f"An earlier version of {pair[1]} played {say_count(len(players), 'cell')}{why}. They are {then}"
            warnings.warn(text, RunWarning, stacklevel=4)

    def _say_edited(self, agent: str) -> None:
        """Say once that the code of an agent changed while the run goes on."""
        if agent not in self._edited:
            self._edited.add(agent)
            text = f"{agent} was edited while it plays. The cells of each version are counted apart."
            warnings.warn(text, RunWarning, stacklevel=3)

    def _is_left(self, cell: str, status: CellStatus) -> bool:
        """Return whether a cell is to be played: another process may have tried a failed one again meanwhile."""
        retry = self._retry and status.attempt <= self._attempts.get(cell, 0)
        return is_left(self._cells[cell], status, self._plan, self._dropped, retry)


def rank_cells(cells: Iterable[Cell]) -> dict[str, int]:
    """Return the place of every cell in the order of play: every agent meets the first trial of each scenario first.

    A run that is cut short then has something to say about all agents and all scenarios.
    """
    numbers: Counter[tuple[str, tuple[str, ...], bool]] = Counter()
    places: dict[str, int] = {}  # of trials within their scenario
    planned = list(cells)
    for trial in (cell.trial for cell in planned):
        if trial.id not in places:
            scenario = trial.domain, trial.novelty, trial.is_unchanged_twin
            places[trial.id] = numbers[scenario]
            numbers[scenario] += 1
    planned.sort(key=lambda cell: places[cell.trial.id])
    return {cell.id: rank for rank, cell in enumerate(planned)}


def list_left(plan: Plan, run: Path) -> list[Cell]:
    """Return the cells of a plan that are still to be played, by what the run file holds."""
    if not run.exists() or not run.stat().st_size:
        return list(plan.cells)
    with Run(run) as reader:
        known, dropped = reader.statuses(), reader.dropped_cells()
    retry = plan.options.retry
    return [cell for cell in plan.cells if is_left(cell, known.get(cell.id, NOT_BEGUN), plan, dropped, retry)]


def is_left(cell: Cell, status: CellStatus, plan: Plan, dropped: Container[str], retry: bool) -> bool:
    """Return whether a cell is still to be played.

    Args:
        cell: The planned cell.
        status: How far it is.
        plan: The current plan, which plays again what an earlier version of an agent played, unless that is kept.
        dropped: The cells that are not played, because the run stopped by itself.
        retry: Whether failures of an agent are tried again.
    """
    if cell.id in dropped and not status.attempt:
        return False
    if not plan.options.keep and is_outdated(cell, status.player, plan):
        return True
    outcome = status.outcome
    return outcome not in SCORED and (retry or outcome is None or not outcome.startswith("agent_"))


def is_outdated(cell: Cell, player: str | None, plan: Plan) -> bool:
    """Return whether an earlier version of the agent played a cell; without fingerprints nothing is known.

    Args:
        cell: The planned cell.
        player: The fingerprint of the agent that played it.
        plan: The current plan.
    """
    current = plan.fingerprints.get((cell.trial.domain, cell.agent))
    return None not in (player, current) and player != current


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
        with noticing_stops():
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
