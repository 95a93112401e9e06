"""Where one driver saturates: a simulation of up to 1,000 machines in virtual time, with costs measured here.

What a cell lasts, and what it records, is taken from run files; what the driver spends on it is measured by passing
that record through the real scheduler and journal; what Ray spends on waiting, fetching and sending is measured on a
cluster of this machine. The simulation lets machines of 16 slots play such cells and counts how many play.

`python bench/bench_cluster_simulation.py [RUN.sqlite ...]` prints one JSON line per run and number of machines; without
run files it plays a trial of each domain first.
"""

from __future__ import annotations

import heapq
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import openfield as of
from openfield.journal.reader import CellRecord, Run
from openfield.journal.recorder import Emit, digest_chunk
from openfield.journal.schema import open_to_read
from openfield.journal.writer import Journal
from openfield.record import REPLY_ENCODER, AttemptEnd, Chunk, Entry, EpisodeEnd
from openfield.registry import find_domain
from openfield.runner.plan import facts_of, make_plan
from openfield.runner.player import Job
from openfield.runner.ray.executor import GATHER_SECONDS, MAX_TOGETHER, SLOT_SECONDS, TOGETHER_SECONDS
from openfield.runner.scheduler import CellScheduler

HERE = Path(__file__).resolve().parent
MACHINES = (1, 10, 100, 300, 1_000)
PROCESSORS = 16
"""Of each machine; each has a slot, which plays one cell at a time."""
ROUNDS = 8
"""How many cells every processor plays in a simulation, about."""
OTHER_SECONDS = (10.0, 60.0)
"""Cells of these lengths are simulated, too, with the record of the first run: agents may think."""
WAITED = 1_000
"""Slots that are waited for, to measure what one adds."""
REPLAYED = 300
"""Cells whose record is passed through the scheduler and the journal, to measure what one costs."""


class RayCosts(NamedTuple):
    """Processor seconds of the driver."""

    wait: float
    """A look at what has come in, without slots."""
    wait_slot: float
    """What each slot adds to a look."""
    fetch: float
    """A batch."""
    send: float
    """A message with jobs."""


class CellCosts(NamedTuple):
    """What a kind of cells takes."""

    name: str
    seconds: tuple[float, ...]
    """What cells lasted."""
    driver: float
    """Processor seconds of the driver for each."""
    record: int
    """Bytes that one records."""
    groups: int
    """In how many pieces it is recorded: an episode is one."""


def main(paths: list[Path]) -> None:
    with tempfile.TemporaryDirectory() as name:
        runs = paths or list(play_domains(Path(name)))
        kinds = [measure_cells(path, Path(name)) for path in runs]
        ray = measure_ray(kinds[0].record)
    print(json.dumps({"subject": "cluster", "figure": "seconds of the driver", **ray._asdict()}), flush=True)
    others = [kinds[0]._replace(name=f"{kinds[0].name}, {each:g} s", seconds=(each,)) for each in OTHER_SECONDS]
    for kind in (*kinds, *others):
        for machines in MACHINES:
            report(kind, machines, Simulation(kind, ray, machines).run())


def play_domains(folder: Path) -> Iterator[Path]:
    """Play a trial of each domain with the random agent, and yield the run files."""
    for domain in ("birds", "commai", "doom", "ond"):
        path = folder / f"{domain}.sqlite"
        words = ["run", domain, "--trials", "1", "--set", "unchanged=0", "--workers", "1", "-o", str(path)]
        subprocess.run([sys.executable, "-m", "openfield", *words], check=True, stdout=subprocess.DEVNULL)
        yield path


def measure_cells(path: Path, folder: Path) -> CellCosts:
    """Return what the cells of a run lasted, and what one costs the driver."""
    with Run(path) as run:
        cells = [cell for cell in run.cells() if cell.outcome == "done"]
    groups = read_groups(path, cells[0])
    batch = REPLY_ENCODER.encode(groups)
    domain = find_domain(f"{HERE / 'tiny_domain.py'}:DOMAIN")
    plan = make_plan({"tiny": f"{HERE / 'tiny_domain.py'}:say_nothing"}, of.trials(domain, REPLAYED))
    with Journal(folder / f"{path.stem}-replayed.sqlite") as record, Run(record.path) as reader:
        record.enter(plan.cells, plan.sources, facts_of(plan.cells))
        scheduler = CellScheduler(record, reader, plan)
        began = time.process_time()
        scheduler.run(ReplayExecutor(scheduler.emit, batch))
        record.flush()
        taken = time.process_time() - began
    return CellCosts(path.stem, tuple(cell.seconds for cell in cells), taken / len(plan.cells), len(batch), len(groups))


def read_groups(path: Path, cell: CellRecord) -> list[list[Entry]]:
    """Return what was recorded of a cell in groups as it is emitted: an episode with its steps."""
    db = open_to_read(path)
    query = "SELECT cell, attempt, first, count, crc, data FROM chunks WHERE cell = ? AND attempt = ? ORDER BY first"
    rows = [Chunk(*row) for row in db.execute(query, (cell.id, cell.attempt))]
    chunks = [msgspec.structs.replace(chunk, digest=digest_chunk(chunk)) for chunk in rows]
    db.close()
    fields = ("number", "phase", "novel", "turns", "performance", "belief", "ended", "detail")
    ends = [
        EpisodeEnd(cell=cell.id, attempt=cell.attempt, **{name: getattr(each, name) for name in fields})
        for each in cell.episodes
    ]
    pairs = itertools.zip_longest(chunks, ends)
    groups: list[list[Entry]] = [[entry for entry in pair if entry is not None] for pair in pairs]
    return [*groups, [AttemptEnd(cell.id, cell.attempt, "done", "", cell.seconds)]]


class ReplayExecutor:
    """Plays every job in no time: what comes of it is the record of another cell."""

    def __init__(self, emit: Emit, batch: bytes) -> None:
        self._emit, self._batch = emit, batch
        self._jobs: deque[Job] = deque()

    @property
    def free(self) -> int:
        """How many more jobs may be started now."""
        return PROCESSORS - len(self._jobs)

    def start(self, job: Job) -> None:
        self._jobs.append(job)

    def poll(self) -> None:
        while self._jobs:
            job = self._jobs.popleft()
            for group in _BATCH.decode(self._batch):
                renamed = (msgspec.structs.replace(each, cell=job.cell.id, attempt=job.attempt) for each in group)
                self._emit(*renamed)

    def stop(self) -> None:
        pass

    def close(self) -> None:
        pass


def measure_ray(record: int) -> RayCosts:
    """Return what Ray costs the driver: looking, fetching batches of this many bytes, and sending."""
    with local_ray() as ray:

        class Peer:
            def wait(self, seconds: float) -> None:
                time.sleep(seconds)

            def stream(self, size: int) -> Iterator[bytes]:
                while True:
                    yield bytes(size)

            def start(self, *jobs: object) -> None:
                pass

        peer = ray.remote(max_concurrency=4)(Peer).remote()
        ray.get(peer.start.remote())
        pending = [peer.wait.remote(600.0) for _ in range(WAITED)]
        few = processor_time(lambda: ray.wait(pending[:1], timeout=0, fetch_local=False), 50)
        many = processor_time(lambda: ray.wait(pending, timeout=0, fetch_local=False), 50)
        other = ray.remote(max_concurrency=2)(Peer).remote()
        options = {"num_returns": "streaming", "_generator_backpressure_num_objects": 8}
        stream = other.stream.options(**options).remote(record)
        fetch = processor_time(lambda: ray.get(next(stream)), 200)
        send = processor_time(lambda: other.start.remote(b"x" * 2_000), 200)
    return RayCosts(few, (many - few) / WAITED, fetch, send)


@contextmanager
def local_ray() -> Iterator[Any]:
    """Start Ray on this machine, and stop it in the end."""
    os.environ |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    import ray

    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        yield ray
    finally:
        ray.shutdown()


def processor_time(call: Any, times: int) -> float:
    """Return the processor seconds that a call costs this process."""
    call()
    began = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - began) / times


@dataclass
class Played:
    """What a simulation found."""

    busy: float
    """The share of processors that play."""
    driver: float
    """The share of the time in which the driver works."""
    cells_per_second: float


class Simulation:
    """Slots that play, and one driver that serves them one after the other, in virtual time."""

    def __init__(self, kind: CellCosts, ray: RayCosts, machines: int) -> None:
        self._kind, self._ray = kind, ray
        self._slots = machines * PROCESSORS
        self._rng, self._now, self._worked, self._played = random.Random(20), 0.0, 0.0, 0.0
        self._ends: list[tuple[float, float]] = []  # when slots have played what they were sent, and for how long
        mean = sum(kind.seconds) / len(kind.seconds)
        self._gather = max(GATHER_SECONDS, SLOT_SECONDS * self._slots)
        self._together = min(max(int(TOGETHER_SECONDS / mean), 1), MAX_TOGETHER)
        self._heard = 0

    def run(self) -> Played:
        """Play until every slot has played some cells, and return what the second half was like."""
        for _ in range(self._slots):
            self._send()
        wanted = self._slots * max(ROUNDS, 4 * self._together)
        half = (0.0, 0.0, 0.0, 0)
        while self._heard < wanted:
            if half[3] == 0 and self._heard >= wanted // 2:
                half = self._now, self._worked, self._played, self._heard
            self._look()
        seconds = self._now - half[0]
        busy = (self._played - half[2]) / seconds / self._slots
        return Played(min(busy, 1.0), (self._worked - half[1]) / seconds, (self._heard - half[3]) / seconds)

    def _look(self) -> None:
        """Take in what slots have played by now, and send them more."""
        self._work(2 * (self._ray.wait + self._ray.wait_slot * self._slots))
        self._now = max(self._now, self._ends[0][0])
        ended = []
        while self._ends and self._ends[0][0] <= self._now:
            ended.append(heapq.heappop(self._ends)[1])
        for seconds in ended:
            batches = 1 + min(seconds / self._gather, self._kind.groups * self._together)
            self._work(batches * self._ray.fetch + self._together * self._kind.driver + self._ray.send)
            self._heard += self._together
            self._send()

    def _work(self, seconds: float) -> None:
        self._now += seconds
        self._worked += seconds

    def _send(self) -> None:
        lasting = (self._rng.choice(self._kind.seconds) for _ in range(self._together))
        seconds = sum(each * self._rng.uniform(0.5, 1.5) for each in lasting)  # or all would end together
        self._played += seconds
        heapq.heappush(self._ends, (self._now + seconds, seconds))


def report(kind: CellCosts, machines: int, found: Played) -> None:
    """Print what a simulation found as a JSON line."""
    line: dict[str, Any] = {
        "subject": "cluster",
        "figure": f"share of processors that play, {machines:,} machines",
        "cells": kind.name,
    }
    line |= {
        "value": round(found.busy, 3),
        "driver": round(found.driver, 3),
        "bar": None,
        "better": "higher",
        "ok": True,
    }
    line |= {
        "cells_per_second": round(found.cells_per_second, 1),
        "cell_seconds": round(sum(kind.seconds) / len(kind.seconds), 2),
    }
    line |= {"driver_ms": round(kind.driver * 1e3, 2), "record_kb": round(kind.record / 1e3, 1)}
    print(json.dumps(line), flush=True)


_BATCH = msgspec.msgpack.Decoder(list[list[Entry]])

if __name__ == "__main__":
    main([Path(word) for word in sys.argv[1:]])
