"""The record of a run: one SQLite file that one thread writes, many may read, and a crash cannot tear.

Stands between rollout and metrics: entries go in here, `reader` reads them back.
"""

from __future__ import annotations

import copy
import math
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from openfield.cell import Cell, CellStatus
from openfield.errors import JournalError, OpenfieldError, RunBusy
from openfield.journal.fingerprint import write_trial
from openfield.journal.leases import LEASE_SECONDS, Leases, find_strange_lease
from openfield.journal.receipt import Receipt
from openfield.journal.schema import (
    LATER_FACT,
    PLAN_FACT,
    SCHEMA_VERSION,
    SourceText,
    close_written,
    commit,
    explain_error,
    explaining,
    open_to_write,
    uses_log,
)
from openfield.journal.steps import LAST, EntryWriter, Place, Tail, has_tails
from openfield.record import RECORD_FACT, Chunk, Entry

FULL_SECONDS = 0.5
"""How long full chunks may wait for company; committed one by one they cost 0.5 calls a turn more."""
ENDED_SECONDS = 0.01
"""How long the ends of episodes and attempts may wait: a commit costs as much as a hundred turns of a quick world."""
BUSY_SECONDS = 30.0
"""How long the journal's thread waits for another process that writes the file."""
Durability = Literal["episode", "turn"]
"""How often the disk is waited for: at the end of every episode, or with every turn that is waited for."""
T = TypeVar("T")


class Journal:
    """The writer of a run file. All its methods may be called from any thread.

    A commit outlasts the process, even one that is killed. A power cut takes back commits that have not reached the
    disk: so the disk is waited for where an episode or attempt ends, a reply was costly, or cells are entered or taken.
    """

    def __init__(self, path: str | os.PathLike[str], durable: Durability = "episode") -> None:
        """Open a run file, or make one.

        Args:
            path: The file.
            durable: How often the disk is waited for.
        """
        self.path = Path(path)
        self.durable = durable
        self._db = open_to_write(self.path)
        self._logged = uses_log(self._db)
        self._mode = _Mode()
        self._begun = False  # whether the last commit got as far as its work
        self._unsynced = False  # whether the last commits may not have reached the disk
        self._leases = Leases()
        self._entries = EntryWriter(self._leases)
        self._take_over_dead()
        self._queue: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._pending = 0  # tasks the thread has still to do; while it is 0, others may use the file
        self._turn = threading.Lock()  # held while that number changes, and by others while they use the file
        self._failure: OpenfieldError | None = None
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name=f"journal of {self.path.name}", daemon=True)
        self._thread.start()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def failed(self) -> bool:
        """Whether something could not be written; nothing will be, from then on."""
        return self._failure is not None

    def add(self, *entries: Entry) -> Receipt[None]:
        """Write entries that belong together.

        Chunks alone are committed and reach the disk later, unless a reply was costly. What nothing waits for may wait
        a moment itself, to be committed with later entries.

        Returns:
            A receipt that is settled when they are committed, and those that must be on disk are there.
        """
        chunks = [entry for entry in entries if isinstance(entry, Chunk)]
        ended, costly = len(chunks) < len(entries), any(chunk.costly for chunk in chunks)
        durable = ended or costly or self.durable == "turn"
        patience = 0.0
        if entries and not costly:
            patience = ENDED_SECONDS if ended else FULL_SECONDS if all(chunk.full for chunk in chunks) else 0.0
        receipt = Receipt[None](self._commit_soon if patience else None)
        task = _Task(lambda db: self._entries.write(db, entries), receipt, patience, durable)
        if patience or durable or not self._do_here(task):
            self._submit(task)
        return receipt

    def add_anew(self, cell: str, attempt: int, *entries: Entry, fingerprint: str | None = None) -> Receipt[None]:
        """Start a new attempt at a cell with its first entries: both will be on disk, or neither.

        Args:
            cell: The id of the cell.
            attempt: The number that the attempt must get.
            entries: The entries it begins with.
            fingerprint: That of the agent that plays it; None if it is not known.
        """

        def write(db: sqlite3.Connection) -> None:
            if self._entries.begin(db, cell, fingerprint) != attempt:
                raise RunBusy(f"Another process has started cell {cell} again.")
            self._entries.write(db, entries)

        return self._ask(write, patience=0.0 if entries else FULL_SECONDS, durable=bool(entries))

    def flush(self) -> None:
        """Wait until everything added so far is committed, so that readers see it."""
        self.add().result()

    def close(self) -> None:
        """Write the rest, give up all leases and close the file. Then everything is on disk."""
        with self._turn:
            self._closing = True
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()
        self._failure = self._failure or self._closed()
        self._refuse_rest()
        self._leases.retire()
        close_written(self._db)

    def enter(
        self,
        cells: Iterable[Cell],
        agents: Mapping[str, str | None],
        facts: Mapping[str, str],
        sources: Iterable[SourceText] = (),
    ) -> None:
        """Enter the plan. Entries that are already there stay as they are.

        Args:
            cells: The cells to play.
            agents: Where the agents of the cells come from; None if only a Python program knows.
            facts: Facts of the run as a whole.
            sources: The texts of the files that play.
        """
        self.submit(cells, agents, facts, sources).result()

    def submit(
        self,
        cells: Iterable[Cell],
        agents: Mapping[str, str | None],
        facts: Mapping[str, str],
        sources: Iterable[SourceText] = (),
    ) -> Receipt[None]:
        """Enter the plan, as `enter` does, and return a receipt that is settled when it is on disk."""
        rows, texts = list(cells), list(sources)
        return self._ask(lambda db: _enter(db, rows, agents, facts, texts, self._entries.find_played(db)))

    @property
    def keeps_arrays(self) -> bool:
        """Whether the run was begun with large arrays kept, and not only their digests."""
        query = "SELECT value FROM facts WHERE key = ?"
        kept: object = self._ask(lambda db: db.execute(query, (RECORD_FACT,)).fetchone(), durable=False).result()
        return kept == ("full",)

    def take(self, cells: Iterable[str], wanted: Callable[[str, CellStatus], bool]) -> dict[str, Taken]:
        """Lease those of some cells that are wanted, with one commit. One that another journal has is not leased.

        Args:
            cells: Their ids.
            wanted: Says of a cell, from how far it is now, whether it is to be played.
        """
        asked = list(cells)

        def take_all(db: sqlite3.Connection) -> dict[str, Taken]:
            foreign = self._entries.tails.read_foreign(db, set(asked))
            return {cell: take_one(db, cell, foreign) for cell in asked}

        def take_one(db: sqlite3.Connection, cell: str, foreign: dict[Place, Tail]) -> Taken:
            status = _read_status(db, cell)
            place = cell, status.attempt
            tail = foreign.get(place) or self._entries.tails.read_own(db, [place]).get(place)
            status = status if tail is None else status._replace(steps=tail.end)
            leased = wanted(cell, status) and self._leases.take(db, cell)
            if leased and tail is not None:
                self._entries.settle_cell(db, cell)
            return Taken(leased, status)

        return self._ask(take_all, durable=False).result()

    def lease(self, cell: str) -> bool:
        """Take a cell for this journal; return False if another living one has it."""

        def take(db: sqlite3.Connection) -> bool:
            leased = self._leases.take(db, cell)
            if leased:
                self._entries.settle_cell(db, cell)
            return leased

        return self._ask(take).result()

    def find_strange_lease(self) -> str:
        """Return a sentence about a lease that ends later than any can; empty if there is none."""
        return self._ask(lambda db: find_strange_lease(db, self.path), durable=False).result()

    def release(self, cell: str) -> None:
        """End the lease of a cell that this journal does not play after all."""
        self._ask(lambda db: self._leases.end(db, cell)).result()

    def begin(self, cell: str, fingerprint: str | None = None) -> int:
        """Start a new attempt at a cell and return its number. An earlier one is superseded.

        Args:
            cell: The id of the cell.
            fingerprint: That of the agent that plays it; None if it is not known.
        """
        return self._ask(lambda db: self._entries.begin(db, cell, fingerprint)).result()

    def _take_over_dead(self) -> None:
        try:
            with explaining(self.path):
                if has_tails(self._db):
                    commit(self._db, self._entries.take_over_dead)
        except BaseException:
            self._leases.retire()
            self._db.close()
            raise

    def _ask(self, work: Callable[[sqlite3.Connection], T], patience: float = 0.0, durable: bool = True) -> Receipt[T]:
        """Let the thread do some work.

        Args:
            work: What to do.
            patience: How many seconds it may wait for company, unless something waits for it.
            durable: Whether it must be on disk. A lease need not be: it ends with its process.
        """
        receipt = Receipt[T](self._commit_soon if patience else None)
        self._submit(_Task(work, receipt, patience, durable))
        return receipt

    def _submit(self, task: _Task) -> None:
        if self._failure is not None:
            raise copy.copy(self._failure)  # one raised again and again keeps all it went through in memory
        self._reserve()
        self._queue.put(task)
        if not self._thread.is_alive():  # it was closed in between
            self._refuse_rest()

    def _commit_soon(self) -> None:
        """Let the thread commit its entries at once, because something waits for them."""
        self._reserve()
        self._queue.put(_Task(lambda _: None, Receipt()))

    def _reserve(self) -> None:
        """Keep the file for the thread, which has one more task to do."""
        with self._turn:
            self._pending += 1

    def _do_here(self, task: _Task) -> bool:
        """Commit at once if that waits for nothing, and return whether it was done.

        Handing a turn to the thread and hearing of it takes longer than to commit it without the disk.
        """
        if not self._logged or not self._turn.acquire(blocking=False):
            return False
        results: list[Any] = []
        try:
            if self._pending or self._closing or self._failure is not None:
                return False
            results = self._write_all([task], _Mode(durable=False, patient=False))
        except BaseException as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY and not self._begun:
                return False  # another process writes
            self._fail(error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._turn.release()
        self._settle([task], results)
        return True

    def _closed(self) -> JournalError:
        return JournalError(f"{self.path} is closed.")

    def _refuse_rest(self) -> None:
        """Refuse the work that came while the journal was being closed."""
        with suppress(queue.Empty):
            while True:
                task = self._queue.get_nowait()
                if task is not None:
                    task.receipt.settle(None, self._closed())

    def _serve(self) -> None:
        """Do all waiting work in one commit, again and again: the slower the disk, the larger the groups."""
        renew_at = time.monotonic() + LEASE_SECONDS / 4
        going_on = True
        while going_on:
            tasks, going_on = self._gather(renew_at - time.monotonic())
            if not going_on:
                self._reserve()
                tasks.append(_Task(self._give_up, Receipt()))
            elif time.monotonic() >= renew_at:
                self._reserve()
                tasks.append(_Task(self._leases.renew, Receipt()))
                renew_at = time.monotonic() + LEASE_SECONDS / 4
            self._commit(tasks)

    def _give_up(self, db: sqlite3.Connection) -> None:
        """Leave nothing behind that a later journal would have to see to."""
        self._entries.settle_all(db)
        self._leases.give_up(db)

    def _gather(self, patience: float) -> tuple[list[_Task], bool]:
        """Return all waiting work, and whether more may come. Without any it returns when patience runs out."""
        tasks: list[_Task] = []
        try:
            task = self._queue.get(timeout=max(patience, 0.0))
            until = math.inf
            while task is not None:
                tasks.append(task)
                until = min(until, time.monotonic() + task.patience)
                task = self._queue.get(timeout=max(until - time.monotonic(), 0.0))
        except queue.Empty:
            return tasks, True
        return tasks, False

    def _commit(self, tasks: list[_Task]) -> None:
        """Do some work of the thread in one commit."""
        results: list[Any] = []
        if tasks and self._failure is None:
            try:
                results = self._write_all(tasks, _Mode(any(task.durable for task in tasks)))
            except Exception as error:
                self._fail(error)
        with self._turn:  # before the receipts: those who wait may have the next work already
            self._pending -= len(tasks)
        self._settle(tasks, results)

    def _write_all(self, tasks: list[_Task], mode: _Mode) -> list[Any]:
        """Do some work in one commit, and return its results."""
        self._set_mode(mode)
        touch, self._begun = mode.durable and self._unsynced, False

        def write(db: sqlite3.Connection) -> list[Any]:
            self._begun = True
            self._entries.look(db)
            if touch:  # the work may have nothing to write, and only a commit that writes waits for the disk
                db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            return [task.work(db) for task in tasks]

        results = commit(self._db, write)
        self._unsynced = not mode.durable
        return results

    def _set_mode(self, mode: _Mode) -> None:
        if mode != self._mode:
            self._db.execute(f"PRAGMA synchronous = {'FULL' if mode.durable else 'NORMAL'}")
            self._db.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000 if mode.patient else 0:.0f}")
            self._mode = mode

    def _fail(self, error: BaseException) -> None:
        """Write nothing more after the first failure: the record has no gaps."""
        if isinstance(error, OpenfieldError):
            self._failure = error
        elif isinstance(error, sqlite3.Error):
            self._failure = explain_error(error, self.path)
        else:  # the one that waits for this work must hear of it
            self._failure = JournalError(f"{self.path}: {type(error).__name__}: {error}.")

    def _settle(self, tasks: list[_Task], results: list[Any]) -> None:
        for number, task in enumerate(tasks):
            task.receipt.settle(None if self._failure else results[number], copy.copy(self._failure))


class _Mode(NamedTuple):
    """How a commit is done."""

    durable: bool = True
    """Wait for the disk."""
    patient: bool = True
    """Wait for another process that writes."""


class Taken(NamedTuple):
    """A cell that was asked for."""

    leased: bool
    """Whether this journal has it now."""
    status: CellStatus


class _Task(NamedTuple):
    """Something to be written, and the receipt for it."""

    work: Callable[[sqlite3.Connection], Any]
    receipt: Receipt[Any]
    patience: float = 0.0
    """How many seconds it may wait for company."""
    durable: bool = True


def _enter(
    db: sqlite3.Connection,
    cells: list[Cell],
    agents: Mapping[str, str | None],
    facts: Mapping[str, str],
    sources: list[SourceText],
    played: Container[str],
) -> None:
    trials = {cell.trial.id: cell.trial for cell in cells}
    texts = ((key, write_trial(trial)) for key, trial in trials.items())
    db.executemany("INSERT OR IGNORE INTO trials VALUES (?, ?)", texts)
    insert = "INSERT OR IGNORE INTO cells (id, agent, trial, repeat) VALUES (?, ?, ?, ?)"
    rows = ((cell.id, cell.agent, cell.trial.id, cell.repeat) for cell in cells)
    if new := [row for row in rows if db.execute(insert, row).rowcount]:
        later = [row[0] for row in new if row[1] in played]
        for start, entered in ((PLAN_FACT, [row[0] for row in new]), (LATER_FACT, later)):
            if entered:
                db.execute("INSERT INTO facts VALUES (?, ?)", (f"{start}{entered[0]}", " ".join(entered)))
    db.executemany("INSERT OR REPLACE INTO agents VALUES (?, ?)", agents.items())
    db.executemany("INSERT OR IGNORE INTO facts VALUES (?, ?)", facts.items())
    db.executemany("INSERT OR IGNORE INTO sources VALUES (?, ?, ?)", sources)


def _read_status(db: sqlite3.Connection, cell: str) -> CellStatus:
    latest = "SELECT number, outcome FROM attempts WHERE cell = ? ORDER BY number DESC LIMIT 1"
    attempt, outcome = db.execute(latest, (cell,)).fetchone() or (0, None)
    if not attempt:
        return CellStatus()
    place = cell, attempt
    known = "SELECT fingerprint FROM players WHERE cell = ? AND attempt = ?"
    (player,) = db.execute(known, place).fetchone() or (None,)
    (steps, _) = db.execute(LAST, place).fetchone() or (0, b"")
    return CellStatus(attempt, outcome, player, steps)
