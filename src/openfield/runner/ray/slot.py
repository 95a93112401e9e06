"""Play cells one after the other on a machine of a cluster, and send their entries to the driver.

An actor of Ray for each slot, that is for what one cell needs of a machine. Cells are played in a worker process, so
that deadlines, hung agents and dead workers are those of `Processes`, on the machine where they happen. No disk is
shared between machines: the slots of a machine share a folder there with the files of agents and domains, and a run
file with the trials that domains prepare for and the recorded past of jobs that go on.
"""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from openfield import __version__
from openfield.errors import OpenfieldError, describe_error
from openfield.isolation import Isolation
from openfield.journal.schema import commit, open_to_write
from openfield.processes.child import ONE_THREAD, Caller, Hung
from openfield.record import REPLY_ENCODER, AttemptEnd, Entry
from openfield.registry import check_agent_source, check_extra, find_domain
from openfield.runner.executors import Processes
from openfield.runner.isolation.agent import check_isolated
from openfield.runner.isolation.bubblewrap import find_obstacle
from openfield.runner.player import Job
from openfield.runner.ray.shipment import Shipment

BATCH_BYTES = 1 << 20
CHECK_SECONDS = 300.0
"""How long agents and domains may take to be imported."""
PAST = {
    "chunks": ("cell", "attempt", "first", "count", "crc", "data", "chain"),
    "states": ("cell", "attempt", "step", "data"),
}
"""The columns of the record that a job which goes on is read from."""
Rows = Mapping[str, list[tuple[Any, ...]]]


class ShippedJob(NamedTuple):
    """A job as it travels to a slot."""

    job: Job
    past: Rows
    """The rows that it goes on from, by table."""


@dataclass(frozen=True)
class SlotSetup:
    """What every slot gets of a run."""

    run: str
    """The name of the folder on each machine."""
    shipment: Shipment
    """Without the contents of files: these travel once to a machine, not to each of its slots."""
    pairs: tuple[tuple[str, str], ...]
    """Each domain with each of its agents, both as text."""
    isolation: Isolation | None = None
    """What isolated agents may see and use."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The environment variables of agents."""
    version: str = __version__


@dataclass(frozen=True)
class MachineFiles:
    """The files that a machine is sent once."""

    shipment: Shipment
    trials: list[tuple[str, str]]
    """Trials of domains that prepare for them, each with its id."""


class SlotReport(NamedTuple):
    """A slot's report on its machine."""

    node: str
    machine: str
    problem: str = ""
    """Why its machine cannot play; empty if it can."""


class SlotActor:
    """Plays one cell at a time. The driver makes it an actor: a class that is one could not be sent by its name."""

    def __init__(self, cpus: float = 1.0, environment: Mapping[str, str] | None = None) -> None:
        threads = {name: f"{int(cpus)}" for name in ONE_THREAD} if cpus >= 2 else {}
        os.environ |= {**threads, **(environment or {})}
        self._processes = Processes(self._emit, 1)
        self._turn = threading.Lock()
        self._groups: list[list[Entry]] = []
        self._bytes, self._since = 0, 0.0
        self._cell = ""  # that is played now
        self._stopping = False
        self._folder: MachineFolder | None = None

    def prepare(self, setup: SlotSetup, files: list[Any]) -> SlotReport:
        """See to it that the files are there and that everything can be played here.

        Args:
            setup: What this slot must know.
            files: A reference to the files, which are fetched once for all slots of the machine.
        """
        import ray

        report = SlotReport(ray.get_runtime_context().get_node_id(), socket.gethostname())
        if setup.version != __version__:
            return report._replace(problem=f"it has openfield {__version__}, not {setup.version}")
        self._shipment = setup.shipment
        try:
            os.environ |= setup.environment
            self._folder = MachineFolder(setup.run)
            self._place = self._folder.path
            problem = self._folder.fill(lambda: self._fill(setup, ray.get(files[0])))
            self._shipment.enter(self._place)
            self._past = open_past(self._place)
        except (OpenfieldError, OSError) as error:
            problem = describe_error(error)
        if problem:
            self.close()
        return report._replace(problem=problem)

    def _fill(self, setup: SlotSetup, files: MachineFiles) -> str:
        files.shipment.unpack(self._place)
        setup.shipment.enter(self._place)
        past = open_past(self._place)
        commit(past, lambda db: db.executemany("INSERT OR IGNORE INTO trials VALUES (?, ?)", files.trials))
        past.close()
        return _import_in_child(
            [(self._move(domain), self._move(agent)) for domain, agent in setup.pairs], setup.isolation
        )

    def play(self, gather: float, *jobs: ShippedJob) -> Iterator[bytes]:
        """Play jobs, those of an earlier call first, and yield batches of what is emitted.

        Args:
            gather: For how many seconds entries wait for others while a cell is played.
            jobs: The jobs to play.
        """
        with self._turn:
            for job, past in jobs:
                if self._stopping:
                    self._emit(AttemptEnd(job.cell.id, job.attempt, "cancelled", "", 0.0))
                    continue
                self._write_past(past)
                self._cell = job.cell.id
                self._processes.start(self._move_job(job))
                while self._cell:
                    if self._stopping:
                        self._processes.stop()
                    self._processes.poll()
                    if self._bytes >= BATCH_BYTES or (self._groups and time.monotonic() - self._since > gather):
                        yield self._take()
            if self._groups:
                yield self._take()

    def stop(self) -> None:
        """End every job after its current turn."""
        self._stopping = True

    def close(self) -> None:
        """Leave the folder of the machine."""
        os.chdir("/")
        if self._folder is not None:
            self._folder.leave()

    def _emit(self, *entries: Entry) -> None:
        self._since = self._since if self._groups else time.monotonic()
        self._groups.append(list(entries))
        self._bytes += measure_group(entries)
        if any(isinstance(entry, AttemptEnd) for entry in entries):
            self._cell = ""

    def _take(self) -> bytes:
        batch, self._groups, self._bytes = self._groups, [], 0
        return REPLY_ENCODER.encode(batch)

    def _write_past(self, past: Rows) -> None:
        def write(db: sqlite3.Connection) -> None:
            for table, rows in past.items():
                names, marks = ", ".join(PAST[table]), ", ".join("?" * len(PAST[table]))
                db.executemany(f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({marks})", rows)  # noqa: S608

        if any(past.values()):
            commit(self._past, write)

    def _move_job(self, job: Job) -> Job:
        """Return a job whose files are those of this machine. They are the plan's version: they were sent with it."""
        trials = [job.cell.trial, *(() if job.start is None else (job.start[0].trial,))]
        moved = [self._shipment.find_places(trial, self._place) for trial in trials]
        return msgspec.structs.replace(
            job,
            agent=self._move(str(job.agent)),
            domain=self._move(job.domain),
            run=self._place / "past.sqlite",
            fingerprint=None,
            places={name: place for places in moved for name, place in places.items()},
        )

    def _move(self, source: str) -> str:
        return self._shipment.move(source, self._place)


def open_past(folder: Path) -> sqlite3.Connection:
    """Open the run file of a machine. It cannot be used after a crash."""
    db = open_to_write(folder / "past.sqlite")
    db.execute("PRAGMA synchronous = OFF")
    return db


class MachineFolder:
    """A folder that the slots of a machine share. The first one fills it, the last one that leaves removes it.

    Each slot holds a lock, which the system takes back from one that is killed.
    """

    def __init__(self, name: str) -> None:
        """Enter the folder, and make it if it is not there."""
        import fcntl  # not on Windows: a driver may be there, a slot is not

        self.path = Path(tempfile.gettempdir()) / name
        while True:
            self.path.mkdir(mode=0o700, exist_ok=True)
            with suppress(FileNotFoundError):  # it is being removed
                self._users: IO[str] = (self.path / "users").open("w")
                fcntl.flock(self._users, fcntl.LOCK_SH)
                if os.fstat(self._users.fileno()).st_nlink:
                    return
                self._users.close()

    def fill(self, fill: Callable[[], str]) -> str:
        """Call a function unless another slot has, and return its result: why the machine cannot play."""
        import fcntl

        known = self.path / "problem"
        with (self.path / "filling").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not known.exists():
                known.write_text(fill())
            return known.read_text()

    def leave(self) -> None:
        """Leave the folder, and remove it if no other slot is in it."""
        import fcntl

        fcntl.flock(self._users, fcntl.LOCK_UN)
        with suppress(BlockingIOError):
            fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(self.path, ignore_errors=True)
        self._users.close()


def measure_group(group: Iterable[Entry]) -> int:
    """Return the bytes of the steps and states in a group of entries."""
    return sum(len(getattr(entry, "data", b"")) for entry in group)


def _import_in_child(pairs: list[tuple[str, str]], isolation: Isolation | None) -> str:
    """Import domains and agents in a process of its own; return the problem, if any. Agents may do anything there."""
    with closing(Caller(CHECK_SECONDS)) as caller:
        try:
            return caller.call(str, find_problem, pairs, isolation)
        except Hung:
            return f"its agents and domains could not be imported within {CHECK_SECONDS:.0f} s"


def find_problem(pairs: list[tuple[str, str]], isolation: Isolation | None = None) -> str:
    """Return why a domain or an agent cannot be used in this process; empty if they all can.

    Args:
        pairs: Each domain with each of its agents.
        isolation: What the agents may see and use in a process of their own.
    """
    if isolation is not None and isolation.bubblewrap and (obstacle := find_obstacle()):
        return f"its agents could not be isolated: {obstacle}"
    for path, _ in () if isolation is None else isolation.grants:
        if not path.exists():
            return f"it has no {path}, which isolated agents are granted"
    try:
        for source, agent in pairs:
            domain = find_domain(source)
            check_extra(domain)
            if isolation is None:
                check_agent_source(agent, domain)
            else:
                check_isolated(agent, domain, isolation)
    except OpenfieldError as error:
        return str(error)
    return ""
