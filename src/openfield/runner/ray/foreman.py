"""Play the jobs of one machine in worker processes, and send what comes of them to the driver.

An actor of Ray. Deadlines, hung agents and dead workers are those of `Processes`, on the machine where they happen. No
disk is shared: a run file of the foreman's own holds the trials that domains prepare for, and the recorded past of jobs
that go on.
"""

from __future__ import annotations

import os
import queue
import shutil
import socket
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from openfield import __version__
from openfield.errors import OpenfieldError, describe_error
from openfield.journal.schema import commit, open_to_write
from openfield.record import REPLY_ENCODER, AttemptEnd, Entry
from openfield.registry import check_agent, check_extra, find_domain
from openfield.runner.executors import Processes, hidden_main
from openfield.runner.player import Job
from openfield.runner.processes import ONE_THREAD
from openfield.runner.ray.shipment import Shipment

BATCH_BYTES = 1 << 20
GATHER_SECONDS = 0.05
"""How long entries wait for company: every batch costs the driver a journey."""
MAX_WAITING = 256
"""Groups of entries that wait for the driver. Then players wait, too."""
MAX_WORKERS = 1 << 20
CHECK_SECONDS = 300.0
"""How long agents and domains may take to be imported."""
PAST = {
    "chunks": ("cell", "attempt", "first", "count", "crc", "data"),
    "states": ("cell", "attempt", "step", "data"),
}
"""The columns of the record that a job which goes on is read from."""
Rows = Mapping[str, list[tuple[Any, ...]]]
VISIBLE_GPUS = "CUDA_VISIBLE_DEVICES"


class ShippedJob(NamedTuple):
    """A job as it travels to a machine."""

    job: Job
    past: Rows
    """The rows that it goes on from, by table."""
    cpus: float = 1.0
    gpus: tuple[int, ...] | None = None
    """The numbers of its graphics cards among those of the machine; None if the run gives out none."""

    @property
    def environment(self) -> dict[str, str]:
        """What its worker process is told of processors and graphics cards."""
        threads = {name: f"{int(self.cpus)}" for name in ONE_THREAD} if self.cpus >= 2 else {}
        return threads if self.gpus is None else threads | {VISIBLE_GPUS: _name_cards(self.gpus)}


@dataclass(frozen=True)
class Outfit:
    """What every machine gets once: files, trials, and what is to be checked there."""

    shipment: Shipment
    trials: tuple[tuple[str, str], ...]
    """Trials of domains that prepare for them, each with its id."""
    pairs: tuple[tuple[str, str], ...]
    """Each domain with each of its agents, both as text."""
    version: str = __version__


class Greeting(NamedTuple):
    """What a machine says of itself."""

    name: str
    problem: str = ""
    """Why it cannot play; empty if it can."""


class Foreman:
    """Plays jobs on one machine. The driver makes it an actor: a class that is one could not be sent by its name."""

    def __init__(self, cpus: float) -> None:
        self._cpus = cpus
        self._inbox: queue.SimpleQueue[ShippedJob | None] = queue.SimpleQueue()
        self._outbox: queue.Queue[list[Entry] | Exception] = queue.Queue(MAX_WAITING)
        self._folder = Path(tempfile.mkdtemp(prefix="openfield-"))
        self._shipment = Shipment({}, "/", ())

    def greet(self, outfit: Outfit) -> Greeting:
        """Unpack the files, check that everything can be played here, and begin to."""
        name = socket.gethostname()
        if outfit.version != __version__:
            return Greeting(name, f"it has openfield {__version__}, not {outfit.version}")
        try:
            self._shipment = outfit.shipment
            outfit.shipment.unpack(self._folder)
            moved = [(self._move(domain), self._move(agent)) for domain, agent in outfit.pairs]
            problem = _try_elsewhere(moved)
        except (OpenfieldError, OSError) as error:
            problem = describe_error(error)
        if not problem:
            threading.Thread(target=self._loop, args=(outfit,), name="foreman", daemon=True).start()
        return Greeting(name, problem)

    def start(self, *tasks: ShippedJob) -> None:
        """Play jobs as soon as there is room for them."""
        for task in tasks:
            self._inbox.put(task)

    def stop(self) -> None:
        """End every job after its current turn."""
        self._inbox.put(None)

    def clean_up(self) -> None:
        """Remove all files."""
        os.chdir("/")
        shutil.rmtree(self._folder, ignore_errors=True)

    def stream(self) -> Iterator[bytes]:
        """Yield batches of what was emitted, for as long as the driver listens."""
        while True:
            batch = [self._outbox.get()]
            time.sleep(GATHER_SECONDS)
            size = 0
            while size < BATCH_BYTES and not isinstance(batch[-1], Exception):
                size += sum(len(getattr(entry, "data", b"")) for entry in batch[-1])
                try:
                    batch.append(self._outbox.get_nowait())
                except queue.Empty:
                    break
            yield REPLY_ENCODER.encode([each for each in batch if not isinstance(each, Exception)])
            if isinstance(batch[-1], Exception):
                raise batch[-1]

    def _loop(self, outfit: Outfit) -> None:
        try:
            _Crews(self._cpus, self._inbox, self._outbox, self._open_past(outfit), self._carry).play()
        except Exception as error:
            self._outbox.put(error)

    def _open_past(self, outfit: Outfit) -> sqlite3.Connection:
        db = open_to_write(self._folder / "past.sqlite")
        db.execute("PRAGMA synchronous = OFF")  # it is of no use after a crash
        commit(db, lambda db: db.executemany("INSERT OR IGNORE INTO trials VALUES (?, ?)", outfit.trials))
        return db

    def _carry(self, job: Job) -> Job:
        """Return a job whose files are those of this machine."""
        agent, domain = self._move(str(job.agent)), self._move(job.domain)
        return msgspec.structs.replace(job, agent=agent, domain=domain, run=self._folder / "past.sqlite")

    def _move(self, source: str) -> str:
        return self._shipment.move(source, self._folder)


class _Crews:
    """Worker processes, those with the same environment together."""

    def __init__(self, cpus: float, inbox: Any, outbox: Any, past: sqlite3.Connection, carry: Any) -> None:
        self._cpus, self._inbox, self._outbox, self._past, self._carry = cpus, inbox, outbox, past, carry
        self._crews: dict[tuple[tuple[str, str], ...], Processes] = {}
        self._waiting: list[ShippedJob] = []
        self._running: dict[str, ShippedJob] = {}
        self._stopping = False

    def play(self) -> None:
        """Play what comes in, forever."""
        while True:
            self._take_in()
            while self._waiting and self._has_room(self._waiting[0]):
                self._start(self._waiting.pop(0))
            for crew in self._crews.values():
                if crew.free < MAX_WORKERS:
                    crew.poll()

    def _take_in(self) -> None:
        """Read what the driver sent; wait for it if there is nothing to do."""
        while True:
            try:
                task = self._inbox.get(block=not self._waiting and not self._running)
            except queue.Empty:
                return
            if task is None:
                self._stopping = True
                for crew in self._crews.values():
                    crew.stop()
                self._waiting, left = [], self._waiting
                for each in left:
                    self._cancel(each.job)
            elif self._stopping:
                self._cancel(task.job)
            else:
                self._unpack(task.past)
                self._waiting.append(task)

    def _has_room(self, task: ShippedJob) -> bool:
        used = sum(each.cpus for each in self._running.values())
        return not self._running or used + task.cpus <= self._cpus + 1e-6

    def _start(self, task: ShippedJob) -> None:
        environment = tuple(sorted(task.environment.items()))
        if environment not in self._crews:
            self._crews[environment] = Processes(self._emit, MAX_WORKERS)  # how many play is decided here
        self._running[task.job.cell.id] = task
        with _environment(dict(environment)):
            self._crews[environment].start(self._carry(task.job))

    def _emit(self, *entries: Entry) -> None:
        for entry in entries:
            if isinstance(entry, AttemptEnd):
                self._running.pop(entry.cell, None)
        self._outbox.put(list(entries))

    def _cancel(self, job: Job) -> None:
        self._outbox.put([AttemptEnd(job.cell.id, job.attempt, "cancelled", "", 0.0)])

    def _unpack(self, past: Rows) -> None:
        def write(db: sqlite3.Connection) -> None:
            for table, rows in past.items():
                names, marks = ", ".join(PAST[table]), ", ".join("?" * len(PAST[table]))
                db.executemany(f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({marks})", rows)  # noqa: S608

        if any(past.values()):
            commit(self._past, write)


def _name_cards(cards: tuple[int, ...]) -> str:
    """Return graphics cards of this machine as its programs name them; Ray may have given only some of them."""
    given = [name for name in os.environ.get(VISIBLE_GPUS, "").split(",") if name]
    return ",".join(given[card] if card < len(given) else str(card) for card in cards)


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Change the environment for processes that are started meanwhile."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _try_elsewhere(pairs: list[tuple[str, str]]) -> str:
    """Look for domains and agents in a process of its own; return what is missing. Agents may do anything there."""
    with hidden_main(), ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(find_problem, pairs).result(CHECK_SECONDS)
        except TimeoutError:
            return f"its agents and domains could not be imported within {CHECK_SECONDS:.0f} s"


def find_problem(pairs: list[tuple[str, str]]) -> str:
    """Return why a domain or an agent cannot be used in this process; empty if they all can."""
    try:
        for source, agent in pairs:
            domain = find_domain(source)
            check_extra(domain)
            check_agent(agent, domain)
    except OpenfieldError as error:
        return str(error)
    return ""
