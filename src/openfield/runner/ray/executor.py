"""Play jobs on a Ray cluster: one actor for each slot, which Ray places where there is room for it.

The driver's side. Jobs that wait are the demand: for each an actor is requested with the resources of its agent, so
that Ray uses what is free and an autoscaler adds machines. Jobs whose slot is lost go on where their record ends; that
does not count as a failure.
"""

from __future__ import annotations

import math
import os
import secrets
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from shlex import quote
from typing import Any

import msgspec

from openfield.capabilities import PreparesTrials
from openfield.errors import InvalidInput
from openfield.journal.fingerprint import write_trial
from openfield.journal.receipt import Receipt
from openfield.journal.recorder import Emit
from openfield.journal.schema import open_to_read
from openfield.record import AttemptEnd, Entry
from openfield.registry import domain_source
from openfield.runner.cluster import read_needs
from openfield.runner.executors import POLL_SECONDS
from openfield.runner.plan import Plan
from openfield.runner.player import Job
from openfield.runner.ray.connection import RayConnection, listens
from openfield.runner.ray.shipment import pack_shipment, write_agent, write_domain
from openfield.runner.ray.slot import (
    PAST,
    MachineFiles,
    Rows,
    ShippedJob,
    SlotActor,
    SlotReport,
    SlotSetup,
    measure_group,
)

LOOK_SECONDS = 1.0
"""How often the driver looks at the cluster as a whole."""
MAX_WAITING = 256
"""Jobs that wait for a slot; while there are fewer, jobs of agents with other needs can be started past them."""
MIN_REQUESTED = 32
"""Slots that are requested at a time, if as many jobs wait. Where more play already, as many as play."""
TOGETHER_SECONDS, MAX_TOGETHER = 0.5, 64
"""Jobs are sent to a slot together if they last for less than this: a message costs more than a short cell."""
MAX_UNWRITTEN, MAX_UNWRITTEN_BYTES = 64, 32 << 20
"""Groups of entries that wait for the disk, and their bytes; beyond that no more are fetched, and the players wait."""
GATHER_SECONDS, SLOT_SECONDS = 0.2, 0.001
"""How long entries wait for others on their slot, at least and for each slot: a batch costs the driver 0.3 ms."""
MAX_STREAMED = 8
"""Batches of a slot that wait for the driver."""
MAX_LOST = 10
"""How many slots may be lost under a cell before that counts as a failure of the cell, or in a row before they play."""
CLEAN_SECONDS = 5.0
IDLE_SECONDS = 30.0
"""After this time without a job a slot is given back, and without a slot the run says why it waits."""
LOST_SECONDS = 15.0
"""How long the head of a cluster may not answer before the run ends. After a minute Ray would end this process."""
NO_GPUS = {"CUDA_VISIBLE_DEVICES": ""}


class ClusterWarning(UserWarning):
    """A machine of a cluster was lost, or a run cannot use it."""


class _Slot:
    """An actor as the driver sees it."""

    def __init__(self, kind: str, actor: Any, report: Any) -> None:
        self.kind, self.actor = kind, actor
        self.awaited = report
        """Its report, then the stream of its entries; None if it is idle."""
        self.is_ready = False
        self.node = self.machine = ""
        self.jobs: dict[str, Job] = {}
        self.idle_since = 0.0

    @property
    def is_idle(self) -> bool:
        """Whether it can play."""
        return self.is_ready and self.awaited is None

    def play(self, gather: float, *jobs: ShippedJob) -> None:
        """Send jobs to it. It collects entries for some seconds before it sends them."""
        self.jobs = {each.job.cell.id: each.job for each in jobs}
        options = {"num_returns": "streaming", "_generator_backpressure_num_objects": MAX_STREAMED}
        self.awaited = self.actor.play.options(**options).remote(gather, *jobs)

    def rest(self) -> None:
        """Take note that it is idle."""
        self.awaited, self.idle_since = None, time.monotonic()


class RayExecutor:
    """Plays jobs on the machines of a cluster."""

    def __init__(
        self, emit: Emit, put_back: Callable[[str], None], plan: Plan, run: Any, connection: RayConnection
    ) -> None:
        """Prepare for a cluster. The first `poll` sends files to its machines.

        Args:
            emit: Called with the entries of the jobs.
            put_back: Called with a cell whose slot is lost, to play on where its record ends.
            plan: The plan to play.
            run: The run file.
            connection: Leads to the cluster. The first `poll` opens it if it is not open; who made it closes it.
        """
        self._connection, self._run = connection, run
        self._db: Any = None  # open while connected
        self._emit_entries, self._put_back, self._plan = emit, put_back, plan
        needs = {name: read_needs(name, plan.resources.get(name, {})) for name in plan.agents}
        self._kinds = {name: str(each) for name, each in needs.items()}
        self._needs = {str(each): each for each in needs.values()}
        self._sources = {name: write_agent(name, source) for name, source in plan.agents.items()}
        self._domains = {name: write_domain(name, domain_source(name)) for name in plan.domains}
        self._slots: list[_Slot] = []
        self._waiting: dict[str, deque[Job]] = {kind: deque() for kind in self._needs}
        self._left_out: set[str] = set()  # machines that cannot play
        self._lost: Counter[str] = Counter()  # slots lost under a cell
        self._failed, self._failed_at = 0, 0.0  # how often slots ended before they were ready since one was
        self._unwritten: deque[tuple[Receipt[None], int]] = deque()  # what waits for the disk, with its bytes
        self._stopping = self._is_stop_sent = False
        self._seconds: dict[tuple[str, str], float] = {}  # how long cells last, by domain and agent
        self._until = time.monotonic() + plan.options.seconds
        self._looked = self._checked = self._ready_at = 0.0
        self._silent_since: float | None = None  # when the head of the cluster was first found not to answer
        self._said: set[str] = set()  # and machines that were said to be lost

    @property
    def free(self) -> int:
        """How many more jobs may be started now. They wait here for a slot: that is the demand Ray sees."""
        return max(MAX_WAITING - sum(map(len, self._waiting.values())), 0)

    def start(self, job: Job) -> None:
        """Let a job wait for a slot."""
        agent, domain = self._sources[job.cell.agent], self._domains[job.cell.trial.domain]
        self._waiting[self._kinds[job.cell.agent]].append(msgspec.structs.replace(job, agent=agent, domain=domain))

    def poll(self) -> None:
        """Emit new entries, look after lost slots, and send out waiting jobs."""
        if self._db is None:
            self._open()
        if not self._is_head_there():  # a call of Ray would not come back
            time.sleep(POLL_SECONDS)
            return
        if self._stopping:
            self._send_stop()
        else:
            self._place()
            self._request_slots()
            self._look()
        self._receive()

    def stop(self) -> None:
        """End every job after its current turn. A signal handler may call this, so that no message is sent here."""
        self._stopping = True

    def close(self) -> None:
        """End all slots with their workers."""
        slots = self._slots if self._silent_since is None else []
        with suppress(Exception):  # the cluster may be gone
            closed = [slot.actor.close.remote() for slot in slots if slot.is_ready]
            if closed:
                self._ray.wait(closed, num_returns=len(closed), timeout=CLEAN_SECONDS)
            for slot in slots:
                self._ray.kill(slot.actor)
        if self._db is not None:
            self._db.close()

    @property
    def _ray(self) -> Any:
        return self._connection.ray

    def _open(self) -> None:
        prepared = {name for name, domain in self._plan.domains.items() if isinstance(domain, PreparesTrials)}
        trials = {cell.trial.id: cell.trial for cell in self._plan.cells if cell.trial.domain in prepared}
        played = sorted({(cell.trial.domain, cell.agent) for cell in self._plan.cells})
        pairs = tuple((self._domains[domain], self._sources[agent]) for domain, agent in played)
        isolation = self._plan.isolation
        names = () if isolation is None else isolation.env
        environment = {name: os.environ[name] for name in names if name in os.environ}
        shipment = pack_shipment(self._plan, self._domains.values())
        bare = replace(shipment, files=dict.fromkeys(shipment.files, b""))
        setup = SlotSetup(f"openfield-{secrets.token_hex(8)}", bare, pairs, isolation, environment)
        files = MachineFiles(shipment, [(key, write_trial(trial)) for key, trial in trials.items()])
        self._connection.open()
        try:
            self._setup = self._ray.put(setup), [self._ray.put(files)]
        except self._ray.exceptions.ObjectStoreFullError:
            size = sum(map(len, shipment.files.values()))
            raise InvalidInput(
                f"The object store of Ray has no room for the files of agents and domains ({size >> 20} MB)."
            ) from None
        self._db = open_to_read(self._run)
        self._ready_at = time.monotonic()

    def _is_head_there(self) -> bool:
        """Return whether the head of the cluster answers; raise if it has not for long.

        Raises:
            InvalidInput: It is gone.
        """
        now = time.monotonic()
        if now - self._checked < LOOK_SECONDS:
            return self._silent_since is None
        self._checked = now
        if self._connection.answers():
            self._silent_since = None
            return True
        self._silent_since = since = now if self._silent_since is None else self._silent_since
        if self._stopping or now - since >= LOST_SECONDS:
            raise InvalidInput(
                f"The head of the cluster at {self._connection.head} does not answer any more. All recorded turns are "
                f"safe. When a cluster runs again: openfield resume {quote(str(self._run))} --executor ray=HOST:PORT"
            )
        return False

    def _place(self) -> None:
        """Send jobs to slots that are idle. After the end of the run's budget they are left for another run."""
        if time.monotonic() >= self._until:
            self._release_waiting()
        gather = max(GATHER_SECONDS, SLOT_SECONDS * len(self._slots))
        for slot in self._slots:
            if slot.is_idle and self._waiting[slot.kind]:
                jobs = self._take(self._waiting[slot.kind])
                slot.play(gather, *(ShippedJob(job, self._read_past(job)) for job in jobs))

    def _take(self, waiting: deque[Job]) -> Iterator[Job]:
        """Take the next job, and those after it if all of them are known to be short."""
        yield (first := waiting.popleft())
        seconds, count = self._seconds.get(_key(first), math.inf), 1
        while waiting and count < MAX_TOGETHER:
            seconds += self._seconds.get(_key(waiting[0]), math.inf)
            if seconds > TOGETHER_SECONDS:
                return
            yield waiting.popleft()
            count += 1

    def _read_past(self, job: Job) -> Rows:
        """Return the record that a job goes on from: its own, and that of the trial it comes after."""
        places = [(job.cell.id, job.attempt)] if job.steps else []
        places += [(job.start[0].id, job.start[1])] if job.start is not None else []
        return {
            table: [row for place in places for row in self._db.execute(_SELECT[table], place).fetchall()]
            for table in PAST
        }

    def _request_slots(self) -> None:
        """Request as many slots as jobs wait, within limits. Ray starts each as soon as there is room for it."""
        for kind, waiting in self._waiting.items():
            slots = [slot for slot in self._slots if slot.kind == kind]
            requested = [slot for slot in slots if not slot.is_ready]
            count = min(len(waiting), max(len(slots) - len(requested), MIN_REQUESTED))
            for slot in requested[count:]:
                self._remove(slot)
            self._slots += [self._request(kind) for _ in range(count - len(requested))]

    def _request(self, kind: str) -> _Slot:
        needs = self._needs[kind]
        options = needs.options
        if self._left_out:
            options["label_selector"] = {"ray.io/node-id": f"!in({','.join(sorted(self._left_out))})"}
        hides_gpus = not needs.gpus and any(each.gpus for each in self._needs.values())
        remote = self._ray.remote(max_concurrency=4, max_restarts=0)(SlotActor)
        actor = remote.options(**options).remote(needs.cpus, NO_GPUS if hides_gpus else {})
        return _Slot(kind, actor, actor.prepare.remote(*self._setup))

    def _remove(self, slot: _Slot) -> None:
        self._slots.remove(slot)
        self._ray.kill(slot.actor)

    def _look(self) -> None:
        """Give slots back that have nothing to do, and say what jobs wait for."""
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        patience = LOOK_SECONDS if any(self._waiting.values()) else IDLE_SECONDS  # agents with other needs may wait
        for slot in [each for each in self._slots if each.is_idle and now - each.idle_since > patience]:
            slot.actor.close.remote()
            self._slots.remove(slot)  # Ray ends an actor that nothing refers to after its last call
        if any(slot.is_ready for slot in self._slots):
            self._ready_at = now
        nodes = self._list_nodes()
        for job in [waiting[0] for waiting in self._waiting.values() if waiting]:
            needs = self._needs[self._kinds[job.cell.agent]]
            if not any(needs.fit(node["Resources"]) for node in nodes):
                text = f"No machine has what the agent '{job.cell.agent}' needs: {needs}."
                if self._connection.is_local:  # and none will join
                    raise InvalidInput(text)
                self._say(f"{text} Its cells wait for one that joins. Ctrl-C ends the waiting.")
            elif now - self._ready_at > IDLE_SECONDS and not self._connection.is_local:
                text = "Nothing can be played yet: other programs may hold the cluster, or agents take long to import."
                self._say(f"{text} The run waits. Ctrl-C ends the waiting.")

    def _list_nodes(self) -> list[Mapping[str, Any]]:
        return [node for node in self._ray.nodes() if node["Alive"] and node["NodeID"] not in self._left_out]

    def _say(self, text: str) -> None:
        """Say something once."""
        if text not in self._said:
            self._said.add(text)
            warnings.warn(text, ClusterWarning, stacklevel=5)

    def _receive(self) -> None:
        """Wait a moment, and take in what slots say."""
        awaited = {slot.awaited: slot for slot in self._slots if slot.awaited is not None}
        if not awaited:
            time.sleep(POLL_SECONDS)
            return
        self._ray.wait(list(awaited), num_returns=1, timeout=POLL_SECONDS, fetch_local=False)
        for found in self._ray.wait(list(awaited), num_returns=len(awaited), timeout=0, fetch_local=False)[0]:
            slot = awaited[found]
            try:
                if slot.is_ready:
                    self._record(slot, _BATCH.decode(self._ray.get(next(found))))
                else:
                    self._admit(slot, self._ray.get(found))
            except (self._ray.exceptions.RayError, StopIteration) as error:
                self._lose(slot, error)

    def _admit(self, slot: _Slot, report: SlotReport) -> None:
        if report.problem:
            self._remove(slot)
            self._leave_out({report.node}, report.machine, report.problem)
            return
        slot.is_ready, slot.node, slot.machine = True, report.node, report.machine
        slot.rest()
        self._failed = 0

    def _leave_out(self, nodes: set[str], machine: str, problem: str) -> None:
        """Use a machine no more. If no other is left, the run cannot go on."""
        if nodes <= self._left_out:  # the slot was requested before that was known
            return
        self._left_out |= nodes
        if not any(node["Resources"].get("CPU", 0) >= 1 for node in self._list_nodes()):
            raise InvalidInput(f"Machine {machine} is the last of the cluster, and it cannot play: {problem}")
        self._say(f"Machine {machine} is left out: it cannot play: {problem}")

    def _record(self, slot: _Slot, batch: list[list[Entry]]) -> None:
        """Hand entries to the writer, and take note of cells that have ended."""
        for entries in batch:
            for end in (entry for entry in entries if isinstance(entry, AttemptEnd)):
                self._learn(_key(slot.jobs.pop(end.cell)), end.seconds)
            self._emit(*entries)
        if not slot.jobs:
            slot.rest()

    def _learn(self, key: tuple[str, str], seconds: float) -> None:
        """Note how long a cell took. One that is longer than expected counts at once, shorter ones gradually."""
        before = self._seconds.pop(key, seconds)
        if seconds:  # else its agent or its worker was ended, and nothing is known
            self._seconds[key] = max(seconds, before + (seconds - before) / 8)

    def _emit(self, *entries: Entry) -> None:
        """Hand entries to the writer, and wait for it if it is far behind."""
        receipt = self._emit_entries(*entries)
        if receipt is not None:
            self._unwritten.append((receipt, measure_group(entries)))
        while len(self._unwritten) > MAX_UNWRITTEN or sum(size for _, size in self._unwritten) > MAX_UNWRITTEN_BYTES:
            self._unwritten.popleft()[0].result()

    def _lose(self, slot: _Slot, error: Exception) -> None:
        """Put back the jobs of a slot that is lost, and see to it that it does not play on out of reach."""
        self._checked = 0.0
        if not self._is_head_there():
            return
        self._remove(slot)
        why = (str(getattr(error, "cause", None) or error).strip().splitlines() or [type(error).__name__])[-1][:300]
        if slot.is_ready:
            self._say_lost(slot)
        else:
            self._fail(getattr(error, "ip", ""), why)
        for job in slot.jobs.values():
            self._lost[job.cell.id] += 1
            if self._lost[job.cell.id] > MAX_LOST and not self._stopping:
                note = f"{MAX_LOST + 1} machines or processes were lost while they played it: {why}"
                self._emit(AttemptEnd(job.cell.id, job.attempt, "harness_error", note, 0.0, torn=True))
            else:
                self._release(job)

    def _say_lost(self, slot: _Slot) -> None:
        """Say once of a machine that it is lost. One that answers has lost a process only."""
        nodes = [node for node in self._list_nodes() if node["NodeID"] == slot.node]
        if slot.node not in self._said and not any(listens(_locate(node)) for node in nodes):
            self._said.add(slot.node)
            self._say(f"Machine {slot.machine} is lost. Its cells go on elsewhere, where their record ends.")

    def _fail(self, address: str, why: str) -> None:
        """Take note of a slot that ended before it was ready. Where that was is known if its Python said so."""
        nodes = {node["NodeID"] for node in self._list_nodes() if node["NodeManagerAddress"] == address}
        if nodes:
            self._leave_out(nodes, address, why)
        elif time.monotonic() - self._failed_at > LOOK_SECONDS:  # a lost machine may end many at once
            self._failed, self._failed_at = self._failed + 1, time.monotonic()
        if self._failed > MAX_LOST and not any(slot.is_ready for slot in self._slots):
            raise InvalidInput(f"Nothing can be played on the cluster: slots end before they are ready: {why}")

    def _release(self, job: Job) -> None:
        """Let a job be played elsewhere, unless the run stops."""
        if self._stopping:
            self._emit(AttemptEnd(job.cell.id, job.attempt, "cancelled", "", 0.0))
        else:
            self._put_back(job.cell.id)

    def _release_waiting(self) -> None:
        for waiting in self._waiting.values():
            while waiting:
                self._release(waiting.popleft())

    def _send_stop(self) -> None:
        self._release_waiting()
        if not self._is_stop_sent:
            self._is_stop_sent = True
            for slot in self._slots:
                slot.actor.stop.remote()


def _key(job: Job) -> tuple[str, str]:
    return job.cell.trial.domain, job.cell.agent


def _locate(node: Mapping[str, Any]) -> str:
    return f"{node['NodeManagerAddress']}:{node['NodeManagerPort']}"


_BATCH = msgspec.msgpack.Decoder(list[list[Entry]])
_SELECT = {
    table: f"SELECT {', '.join(columns)} FROM {table} WHERE cell = ? AND attempt = ?"  # noqa: S608
    for table, columns in PAST.items()
}
