"""Play jobs on the machines of a Ray cluster, those that join later included.

The driver's side: which machine gets which job, what comes back from where, and what becomes of jobs whose machine is
lost. These go on where their record ends, and are no failure of theirs.
"""

from __future__ import annotations

import math
import os
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from shlex import quote
from typing import Any

import msgspec

from openfield.capabilities import PreparesTrials
from openfield.errors import InvalidInput
from openfield.journal.fingerprint import write_trial
from openfield.journal.reader import MAX_RETRIES
from openfield.journal.receipt import Receipt
from openfield.journal.recorder import Emit
from openfield.journal.schema import open_to_read
from openfield.record import AttemptEnd, Entry
from openfield.registry import domain_source
from openfield.runner.executors import POLL_SECONDS
from openfield.runner.plan import Plan
from openfield.runner.player import Job
from openfield.runner.ray.connection import RayConnection
from openfield.runner.ray.foreman import PAST, RETURNED, Foreman, Greeting, Outfit, Rows, ShippedJob, measure_group
from openfield.runner.ray.needs import Account, Needs, read_needs
from openfield.runner.ray.shipment import pack, write_agent, write_domain

LOOK_SECONDS = 1.0
"""How often the cluster is asked which machines it has."""
AHEAD_SECONDS = 0.5
"""Short cells that will be started within this time wait on their machine: the end of one then costs no journey."""
MAX_AHEAD = 64
"""How many cells wait for a processor at most."""
SHORT_SECONDS = 0.2
"""Only cells that are known to be shorter wait on a machine. Others would wait there while another one is idle."""
MAX_WAITING = 256
"""Jobs that wait for a machine with what they need, while jobs with other needs are started."""
MAX_UNWRITTEN, MAX_UNWRITTEN_BYTES = 64, 32 << 20
"""Groups of entries that wait for the disk, and what they hold; then no more are fetched, and the players wait."""
MAX_STREAMED = 8
"""Batches of a machine that wait for the driver."""
MAX_LOST = 10
"""How many machines may be lost under a cell before that counts as a failure of the cell."""
CLEAN_SECONDS = 5.0
IDLE_SECONDS = 10.0
"""After this time without a machine that plays, the run says what it waits for."""
LOST_SECONDS = 15.0
"""How long the head of a cluster may not answer before the run ends. After a minute Ray would end this process."""
ARRIVE_SECONDS = 1.0
"""How long foremen are given to say that they are there."""


class ClusterWarning(UserWarning):
    """A machine of a cluster was lost, or is of no use to a run."""


class _Machine:
    """A foreman as the driver sees it."""

    def __init__(self, ray: Any, node: str, resources: dict[str, float], outfit: Any) -> None:
        """Send a foreman to a machine, which takes all of these resources."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        others = {name: amount for name, amount in resources.items() if name not in ("CPU", "GPU")}
        self.node, self.name = node, node[:8]
        self.cpus = resources["CPU"]
        self.account = Account(self.cpus, int(resources.get("GPU", 0)), others)
        self.tasks: dict[str, tuple[Job, Needs, tuple[int, ...] | None]] = {}
        """What it plays, with what that takes up; None if it waits for its turn there."""
        self.outgoing: list[ShippedJob] = []
        """Jobs that are sent to it next, together: every message costs the driver more than a short cell."""
        self.room = 0.0
        """Seconds of short cells that may wait there, beside those that do."""
        self.is_ready = False
        actor = ray.remote(max_concurrency=4, max_restarts=0)(Foreman)
        self.foreman = actor.options(
            num_cpus=self.cpus,
            num_gpus=int(resources.get("GPU", 0)),
            resources=others,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        ).remote(self.cpus)
        self.greeting = self.foreman.greet.remote(outfit)
        self.stream: Any = None

    def listen(self) -> None:
        """Begin to fetch what it emits."""
        options = {"num_returns": "streaming", "_generator_backpressure_num_objects": MAX_STREAMED}
        self.stream = self.foreman.stream.options(**options).remote()
        self.is_ready = True

    def send(self) -> None:
        """Send the jobs that wait for it."""
        if self.outgoing:
            self.foreman.start.remote(*self.outgoing)
            self.outgoing = []

    def finish(self, cell: str) -> Job | None:
        """Free what a cell took up. One that waited takes it over, as it does on the machine."""
        job, needs, cards = self.tasks.pop(cell, (None, None, None))
        if needs is not None and cards is not None:
            self.account.give_back(needs, cards)
            for key, (waiting, its, none) in self.tasks.items():
                if none is None and (given := self.account.take(its)) is not None:
                    self.tasks[key] = waiting, its, given
                    break
        return job


class RayExecutor:
    """Plays jobs on the machines of a cluster."""

    def __init__(
        self, emit: Emit, put_back: Callable[[str], None], plan: Plan, run: Any, connection: RayConnection
    ) -> None:
        """Prepare for a cluster. The first `poll` sends to it what its machines need.

        Args:
            emit: Called with what comes of the jobs.
            put_back: Called with a cell whose machine is lost, to play on where its record ends.
            plan: What is to be played.
            run: The run file.
            connection: Leads to the cluster. The first `poll` opens it if it is not open; who made it closes it.
        """
        self._connection = connection
        self._run = run
        self._db: Any = None  # open while connected
        self._emit_entries, self._put_back, self._plan = emit, put_back, plan
        self._needs = {name: read_needs(name, needs) for name, needs in plan.resources.items()}
        self._sources = {name: write_agent(name, source) for name, source in plan.agents.items()}
        self._domains = {name: write_domain(name, domain_source(name)) for name in plan.domains}
        self._machines: dict[str, _Machine] = {}
        self._unfit: dict[str, str] = {}  # machines that cannot play, and why
        self._failures: Counter[str] = Counter()  # foremen lost since their machine last sent something
        self._lost: Counter[str] = Counter()  # machines lost under a cell
        self._waiting: deque[Job] = deque()
        self._unwritten: deque[tuple[Receipt[None], int]] = deque()  # what waits for the disk, with its bytes
        self._unwritten_bytes = 0
        self._stopping = self._told = False
        self._seconds: dict[tuple[str, str], float] = {}  # how long cells last, by domain and agent
        self._until = time.monotonic() + (math.inf if plan.budget is None else plan.budget)
        self._looked = self._playing_at = self._knocked = 0.0
        self._silent_since: float | None = None  # when the head of the cluster was first found not to answer
        self._is_idleness_told = False
        self._warned: set[str] = set()

    @property
    def free(self) -> int:
        """How many more jobs may be started now."""
        if len(self._waiting) >= MAX_WAITING:
            return 0
        ready = [machine for machine in self._machines.values() if machine.is_ready]
        ahead = 0 if self._is_one_held else sum(each.room > 0 for each in ready)
        return max(sum(int(each.account.cpus) for each in ready) + ahead - len(self._waiting), 0)

    def start(self, job: Job) -> None:
        """Send a job to a machine that has what it needs, or let it wait for one."""
        job = msgspec.structs.replace(
            job, agent=self._sources[job.cell.agent], domain=self._domains[job.cell.trial.domain]
        )
        if not self._place(job):
            self._waiting.append(job)

    def poll(self) -> None:
        """Emit what has come in, look after lost and new machines, and start what waited for one."""
        if self._db is None:
            self._open()
        if not self._is_head_there():  # a call of Ray would not come back
            time.sleep(POLL_SECONDS)
            return
        if self._stopping:
            self._tell_to_stop()
        else:
            self._look()
            self._place_waiting()
            self._explain_waiting()
            self._explain_idleness()
        for machine in self._machines.values():
            machine.send()
        for machine in self._wait():
            self._hear(machine)

    def stop(self) -> None:
        """End every job after its current turn. A signal handler may call this, so that no message is sent here."""
        self._stopping = True

    def close(self) -> None:
        """End all foremen with their workers."""
        machines = self._machines.values() if self._silent_since is None else ()
        with suppress(Exception):  # the cluster may be gone
            cleaned = [machine.foreman.clean_up.remote() for machine in machines if machine.is_ready]
            if cleaned:
                self._ray.wait(cleaned, num_returns=len(cleaned), timeout=CLEAN_SECONDS)
            for machine in machines:
                self._ray.kill(machine.foreman)
        if self._db is not None:
            self._db.close()

    @property
    def _ray(self) -> Any:
        return self._connection.ray

    def _open(self) -> None:
        outfit = self._make_outfit()
        self._connection.open()
        self._outfit = self._put(outfit)
        self._db = open_to_read(self._run)
        self._playing_at = time.monotonic()

    def _is_head_there(self) -> bool:
        """Return whether the head of the cluster answers; raise if it has not for long.

        Raises:
            InvalidInput: It is gone.
        """
        now = time.monotonic()
        if now - self._knocked < LOOK_SECONDS:
            return self._silent_since is None
        self._knocked = now
        if self._connection.answers():
            self._silent_since = None
            return True
        self._silent_since = since = now if self._silent_since is None else self._silent_since
        if self._stopping or now - since >= LOST_SECONDS:
            raise InvalidInput(
                f"The head of the cluster at {self._connection.head} does not answer any more. What was recorded is "
                f"safe. When a cluster runs again: openfield resume {quote(str(self._run))} --executor ray=HOST:PORT"
            )
        return False

    def _make_outfit(self) -> Outfit:
        prepared = {name for name, domain in self._plan.domains.items() if isinstance(domain, PreparesTrials)}
        trials = {cell.trial.id: cell.trial for cell in self._plan.cells if cell.trial.domain in prepared}
        played = sorted({(cell.trial.domain, cell.agent) for cell in self._plan.cells})
        pairs = tuple((self._domains[domain], self._sources[agent]) for domain, agent in played)
        texts = tuple((key, write_trial(trial)) for key, trial in trials.items())
        isolation = self._plan.isolation
        variables = (
            {} if isolation is None else {name: os.environ[name] for name in isolation.env if name in os.environ}
        )
        return Outfit(pack(self._plan, self._domains.values()), texts, pairs, isolation, variables)

    def _put(self, outfit: Outfit) -> Any:
        try:
            return self._ray.put(outfit)
        except self._ray.exceptions.ObjectStoreFullError:
            size = sum(map(len, outfit.shipment.files.values()))
            raise InvalidInput(
                f"The object store of Ray has no room for the files of agents and domains ({size >> 20} MB)."
            ) from None

    def _look(self) -> None:
        """Send a foreman to every machine that has none."""
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        wanted = {"CPU", *(name for needs in self._needs.values() for name in needs.others)}
        wanted |= {"GPU"} if any(needs.gpus for needs in self._needs.values()) else set()
        for node in self._ray.nodes():
            key, resources = node["NodeID"], node["Resources"]
            has = {name: amount for name, amount in resources.items() if name in wanted}
            if node["Alive"] and has.get("CPU", 0) >= 1 and key not in self._machines and key not in self._unfit:
                self._machines[key] = _Machine(self._ray, key, has, self._outfit)

    @property
    def _is_one_held(self) -> bool:
        """Whether a job waits for any processor. No other may then wait on a machine: it would be played before."""
        return any(self._needs_of(job).is_usual for job in self._waiting)

    def _needs_of(self, job: Job) -> Needs:
        return self._needs.get(job.cell.agent, Needs())

    def _place_waiting(self) -> None:
        """Start jobs that wait for a machine. When the budget of the run is used up, they are left for another run."""
        if time.monotonic() < self._until:
            self._waiting = deque(job for job in self._waiting if not self._place(job))
            return
        while self._waiting:
            self._put_back(self._waiting.popleft().cell.id)

    def _place(self, job: Job) -> bool:
        """Send a job to the machine with most free processors. Only a short one may wait on a machine for its turn."""
        needs = self._needs_of(job)
        ready = [machine for machine in self._machines.values() if machine.is_ready]
        for machine in sorted(ready, key=lambda each: -each.account.cpus):
            cards = machine.account.take(needs)
            if cards is not None:
                self._send(machine, job, needs, cards)
                return True
        if ready and needs.is_usual and self._estimate(job) < SHORT_SECONDS and not self._is_one_held:
            roomiest = max(ready, key=lambda each: each.room / each.cpus)
            if roomiest.room > 0:
                self._send(roomiest, job, needs, None)
                return True
        return False

    def _estimate(self, job: Job) -> float:
        """Return how many seconds a cell will last, about; infinity if none of its kind has ended yet."""
        return self._seconds.get((job.cell.trial.domain, job.cell.agent), math.inf)

    def _learn(self, job: Job, seconds: float) -> None:
        """Take note of what a cell lasted. One that is longer than expected counts at once, shorter ones by and by."""
        before = self._estimate(job)
        expected = seconds if before == math.inf else max(seconds, before + (seconds - before) / 8)
        self._seconds[job.cell.trial.domain, job.cell.agent] = expected

    def _take_up(self, job: Job, needs: Needs, cards: tuple[int, ...] | None) -> float:
        """Return how much less may wait on a machine because of a job there: nothing waits behind a long one."""
        seconds = self._estimate(job)
        if cards is None:
            return max(seconds, AHEAD_SECONDS / MAX_AHEAD)
        return needs.cpus * AHEAD_SECONDS if seconds >= SHORT_SECONDS else 0.0

    def _measure_room(self, machine: _Machine) -> float:
        return machine.cpus * AHEAD_SECONDS - sum(self._take_up(*task) for task in machine.tasks.values())

    def _send(self, machine: _Machine, job: Job, needs: Needs, cards: tuple[int, ...] | None) -> None:
        machine.tasks[job.cell.id] = job, needs, cards
        machine.room -= self._take_up(job, needs, cards)
        gives_cards = any(each.gpus for each in self._needs.values())
        task = ShippedJob(job, self._read_past(job), needs.cpus, (cards or ()) if gives_cards else None)
        machine.outgoing.append(task)

    def _read_past(self, job: Job) -> Rows:
        """Return what a job goes on from: its own record, and that of the trial it comes after."""
        places = [(job.cell.id, job.attempt)] if job.steps else []
        places += [(job.start[0].id, job.start[1])] if job.start is not None else []
        return {
            table: [row for place in places for row in self._db.execute(_SELECT[table], place).fetchall()]
            for table in PAST
        }

    def _wait(self) -> list[_Machine]:
        """Wait a moment, and return the machines that have something to say."""
        waited = {each.stream if each.is_ready else each.greeting: each for each in self._machines.values()}
        if not waited:
            time.sleep(POLL_SECONDS)
            return []
        self._ray.wait(list(waited), num_returns=1, timeout=POLL_SECONDS, fetch_local=False)
        ready, _ = self._ray.wait(list(waited), num_returns=len(waited), timeout=0, fetch_local=False)
        return [waited[each] for each in ready]

    def _hear(self, machine: _Machine) -> None:
        try:
            if not machine.is_ready:
                self._welcome(machine, self._ray.get(machine.greeting))
                return
            batch = _BATCH.decode(self._ray.get(next(machine.stream)))
        except (self._ray.exceptions.RayError, StopIteration) as error:  # its node or its foreman is gone
            self._bury(machine, error)
            return
        self._failures[machine.node] = 0
        for entries in batch:
            ends = [entry for entry in entries if isinstance(entry, AttemptEnd)]
            jobs = [(machine.finish(end.cell), end) for end in ends]
            if any(end.outcome == RETURNED for end in ends):
                self._release(*(job for job, _ in jobs if job is not None))
                continue
            for job, end in jobs:
                if job is not None and end.seconds:
                    self._learn(job, end.seconds)
            self._emit(*entries)
        machine.room = self._measure_room(machine)

    def _release(self, *jobs: Job) -> None:
        """Let jobs be played elsewhere, unless the run stops."""
        for job in jobs:
            if self._stopping:
                self._emit(AttemptEnd(job.cell.id, job.attempt, "cancelled", "", 0.0))
            else:
                self._put_back(job.cell.id)

    def _emit(self, *entries: Entry) -> None:
        """Hand entries to the writer, and wait for it if it is far behind."""
        receipt = self._emit_entries(*entries)
        if receipt is not None:
            self._unwritten.append((receipt, size := measure_group(entries)))
            self._unwritten_bytes += size
        while len(self._unwritten) > MAX_UNWRITTEN or self._unwritten_bytes > MAX_UNWRITTEN_BYTES:
            oldest, size = self._unwritten.popleft()
            oldest.result()
            self._unwritten_bytes -= size

    def _welcome(self, machine: _Machine, greeting: Greeting) -> None:
        machine.name = greeting.name
        if not greeting.problem:
            machine.listen()
            return
        self._dismiss(machine, f"it cannot play: {greeting.problem}")

    def _dismiss(self, machine: _Machine, why: str) -> None:
        """Leave a machine out from now on. If no other is left, the run cannot go on."""
        del self._machines[machine.node]
        self._unfit[machine.node] = why
        self._ray.kill(machine.foreman)
        if not self._machines and not any(
            node["Alive"] and node["NodeID"] not in self._unfit and node["Resources"].get("CPU", 0) >= 1
            for node in self._ray.nodes()
        ):
            raise InvalidInput(f"Machine {machine.name} is the last of the cluster, and {why}")
        warnings.warn(f"Machine {machine.name} is left out: {why}", ClusterWarning, stacklevel=5)

    def _bury(self, machine: _Machine, error: Exception) -> None:
        """Put back the jobs of a machine that is lost, and see to it that it does not play on out of reach."""
        self._knocked = 0.0
        if not self._is_head_there():
            return
        self._failures[machine.node] += 1
        why = str(getattr(error, "cause", None) or error).strip().splitlines() or [type(error).__name__]
        if self._failures[machine.node] > MAX_RETRIES:
            self._dismiss(machine, f"its foreman ended {MAX_RETRIES + 1} times: {why[0]:.300}")
        else:
            del self._machines[machine.node]
            self._ray.kill(machine.foreman)
        for job, _, _ in machine.tasks.values():
            self._lost[job.cell.id] += 1
            if self._lost[job.cell.id] > MAX_LOST and not self._stopping:
                note = f"{MAX_LOST + 1} machines were lost while they played it."
                self._emit(AttemptEnd(job.cell.id, job.attempt, "harness_error", note, 0.0, torn=True))
            else:
                self._release(job)

    def _tell_to_stop(self) -> None:
        self._release(*self._waiting)
        self._waiting.clear()
        if not self._told:
            self._told = True
            for machine in self._machines.values():
                machine.foreman.stop.remote()

    def _explain_waiting(self) -> None:
        """Say once of an agent that no machine has what it needs; on this machine alone none ever will."""
        if not self._waiting or not all(machine.is_ready for machine in self._machines.values()):
            return
        for agent in {job.cell.agent for job in self._waiting} - self._warned:
            needs = self._needs.get(agent, Needs())
            if any(machine.account.could_hold(needs) for machine in self._machines.values()):
                continue
            self._warned.add(agent)
            text = f"No machine has what the agent '{agent}' needs: {needs}."
            if self._connection.is_local:
                raise InvalidInput(text)
            warnings.warn(f"{text} Its cells wait for one that joins. Ctrl-C ends the waiting.", ClusterWarning, 5)

    def _explain_idleness(self) -> None:
        """Say once why no machine plays: there is none, or other programs hold their processors."""
        if any(machine.is_ready for machine in self._machines.values()):
            self._playing_at = time.monotonic()
        if self._is_idleness_told or time.monotonic() - self._playing_at < IDLE_SECONDS:
            return
        self._is_idleness_told = True
        if self._connection.is_local:
            return  # its one machine is busy with its start
        arrivals = [machine.foreman.__ray_ready__.remote() for machine in self._machines.values()]
        if not arrivals:
            text = "The cluster has no machine with a processor. The run waits for one that joins."
        elif self._ray.wait(arrivals, timeout=ARRIVE_SECONDS)[0]:
            return  # one is there, and imports its agents
        else:
            text = "No machine of the cluster is free; other programs may hold its processors. The run waits for one."
        warnings.warn(f"{text} Ctrl-C ends the waiting.", ClusterWarning, 4)


_BATCH = msgspec.msgpack.Decoder(list[list[Entry]])
_SELECT = {
    table: f"SELECT {', '.join(columns)} FROM {table} WHERE cell = ? AND attempt = ?"  # noqa: S608
    for table, columns in PAST.items()
}
