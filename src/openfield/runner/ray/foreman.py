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
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from openfield import __version__
from openfield.errors import InvalidInput, OpenfieldError, describe_error
from openfield.journal.schema import commit, open_to_write
from openfield.record import REPLY_ENCODER, AttemptEnd, Entry
from openfield.registry import check_agent, check_extra, find_domain
from openfield.runner.executors import Processes, hidden_main
from openfield.runner.isolation.agent import check_isolated
from openfield.runner.isolation.bubblewrap import find_obstacle
from openfield.runner.isolation.settings import Isolation
from openfield.runner.player import Job
from openfield.runner.processes import ONE_THREAD
from openfield.runner.ray.shipment import Shipment

BATCH_BYTES = 1 << 20
GATHER_SECONDS = 0.05
"""How long entries wait for company: every batch costs the driver a journey."""
MAX_WAITING, MAX_WAITING_BYTES = 256, 32 << 20
"""Groups of entries that wait for the driver, and the bytes that they hold. Then players wait, too."""
MAX_WORKERS = 1 << 20
RETURN_SECONDS = 1.0
"""Jobs that wait for longer go back to the driver: a cell before them is longer than it expected."""
RETURNED = "returned"
"""The outcome of a job that goes back to the driver. It is no part of a record."""
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
    isolation: Isolation | None = None
    """What isolated agents may see and use."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The environment variables that isolated agents are given."""
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
        self._outbox = Outbox()
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
            os.environ.update(outfit.environment)
            moved = [(self._move(domain), self._move(agent)) for domain, agent in outfit.pairs]
            problem = _try_elsewhere(moved, outfit.isolation)
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
            yield REPLY_ENCODER.encode(self._outbox.take())
            if self._outbox.failure is not None:
                raise self._outbox.failure

    def _loop(self, outfit: Outfit) -> None:
        try:
            _Crews(self._cpus, self._inbox, self._outbox, self._open_past(outfit), self._carry).play()
        except Exception as error:
            self._outbox.failure = error
            self._outbox.put([])

    def _open_past(self, outfit: Outfit) -> sqlite3.Connection:
        db = open_to_write(self._folder / "past.sqlite")
        db.execute("PRAGMA synchronous = OFF")  # it is of no use after a crash
        commit(db, lambda db: db.executemany("INSERT OR IGNORE INTO trials VALUES (?, ?)", outfit.trials))
        return db

    def _carry(self, job: Job) -> Job:
        """Return a job whose files are those of this machine."""
        agent, domain = self._move(str(job.agent)), self._move(job.domain)
        trials = [job.cell.trial, *(() if job.start is None else (job.start[0].trial,))]
        places = {
            key: place for each in trials for key, place in self._shipment.find_places(each, self._folder).items()
        }
        return msgspec.structs.replace(job, agent=agent, domain=domain, run=self._folder / "past.sqlite", places=places)

    def _move(self, source: str) -> str:
        return self._shipment.move(source, self._folder)


class Outbox:
    """Groups of entries that wait for the driver. Those that put more in wait while it is full."""

    def __init__(self, max_groups: int = MAX_WAITING, max_bytes: int = MAX_WAITING_BYTES) -> None:
        self._max_groups, self._max_bytes = max_groups, max_bytes
        self._groups: deque[list[Entry]] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self.failure: Exception | None = None
        """Why no further entries will come."""

    def put(self, group: list[Entry]) -> None:
        """Add a group, as soon as there is room for it. One that is larger than the whole is taken alone."""
        size = measure_group(group)
        with self._changed:
            self._changed.wait_for(lambda: not self._groups or self._has_room(size))
            self._groups.append(group)
            self._bytes += size
            self._changed.notify_all()

    def take(self) -> list[list[Entry]]:
        """Wait for a group, and a moment for others; return about as many as a batch may hold."""
        with self._changed:
            self._changed.wait_for(lambda: self._groups)
        time.sleep(GATHER_SECONDS)
        batch, size = list[list[Entry]](), 0
        with self._changed:
            while self._groups and size < BATCH_BYTES:
                batch.append(self._groups.popleft())
                size += measure_group(batch[-1])
            self._bytes -= size
            self._changed.notify_all()
        return batch

    def _has_room(self, size: int) -> bool:
        return len(self._groups) < self._max_groups and self._bytes + size <= self._max_bytes


def measure_group(group: Iterable[Entry]) -> int:
    """Return the bytes of the steps and states in a group of entries."""
    return sum(len(getattr(entry, "data", b"")) for entry in group)


class _Crews:
    """Worker processes, those with the same environment together."""

    def __init__(self, cpus: float, inbox: Any, outbox: Any, past: sqlite3.Connection, carry: Any) -> None:
        self._cpus, self._inbox, self._outbox, self._past, self._carry = cpus, inbox, outbox, past, carry
        self._crews: dict[tuple[tuple[str, str], ...], Processes] = {}
        self._waiting: deque[tuple[ShippedJob, float]] = deque()  # jobs, and when they came in
        self._running: dict[str, ShippedJob] = {}
        self._stopping = False

    def play(self) -> None:
        """Play what comes in, forever."""
        while True:
            self._take_in()
            while self._waiting and self._has_room(self._waiting[0][0]):
                self._start(self._waiting.popleft()[0])
            while self._waiting and time.monotonic() - self._waiting[0][1] > RETURN_SECONDS:
                self._leave(self._waiting.popleft()[0].job, RETURNED)
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
                while self._waiting:
                    self._leave(self._waiting.popleft()[0].job, "cancelled")
            elif self._stopping:
                self._leave(task.job, "cancelled")
            else:
                self._unpack(task.past)
                self._waiting.append((task, time.monotonic()))

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

    def _leave(self, job: Job, outcome: str) -> None:
        """Say of a job that it will not be played here."""
        self._outbox.put([AttemptEnd(job.cell.id, job.attempt, outcome, "", 0.0)])

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


def _try_elsewhere(pairs: list[tuple[str, str]], isolation: Isolation | None) -> str:
    """Look for domains and agents in a process of its own; return what is missing. Agents may do anything there."""
    with hidden_main(), ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(find_problem, pairs, isolation).result(CHECK_SECONDS)
        except TimeoutError:
            return f"its agents and domains could not be imported within {CHECK_SECONDS:.0f} s"


def find_problem(pairs: list[tuple[str, str]], isolation: Isolation | None = None) -> str:
    """Return why a domain or an agent cannot be used in this process; empty if they all can.

    Args:
        pairs: Each domain with each of its agents.
        isolation: What the agents may see and use in a process of their own.
    """
    try:
        if isolation is not None:
            _check_isolation(isolation)
        for source, agent in pairs:
            domain = find_domain(source)
            check_extra(domain)
            if isolation is None:
                check_agent(agent, domain)
            else:
                check_isolated(agent, domain, isolation)
    except OpenfieldError as error:
        return str(error)
    return ""


def _check_isolation(isolation: Isolation) -> None:
    """Check that agents are isolated on this machine as on the one where the run was begun."""
    if isolation.bubblewrap and (obstacle := find_obstacle()):
        raise InvalidInput(f"its agents could not be isolated: {obstacle}")
    for path, _ in isolation.grants:
        if not path.exists():
            raise InvalidInput(f"it has no {path}, which isolated agents are granted")
