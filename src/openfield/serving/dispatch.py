"""Give foreign agents their trials: a dispatcher opens rollouts, a wire talks to the agents.

A wire is to a foreign agent what `drive` is to one that lives here; both go through the same rollout and journal.
"""

from __future__ import annotations

import asyncio
import hmac
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

from openfield.capabilities import HasDispatcher, HasWire, PreparesTrials
from openfield.cell import Cell, CellStatus
from openfield.console import escape_controls, say_count
from openfield.core import Reply
from openfield.domain import Domain, spec_of
from openfield.errors import AgentFault, OpenfieldError, WorldFault
from openfield.journal.reader import CellRecord, Run
from openfield.journal.receipt import Receipt
from openfield.journal.recorder import Recorder
from openfield.journal.writer import Journal
from openfield.record import Entry, RawStep
from openfield.registry import known_domain
from openfield.runner.plan import check_agent_name
from openfield.runner.player import explain_failure, open_rollout
from openfield.serving.assignments import AGAIN, Assignments
from openfield.serving.jsonlines import JsonLinesWire
from openfield.serving.listen import FORGET_SECONDS, check_port
from openfield.serving.remote import RemoteRollout
from openfield.serving.wire import Dispatcher, Serving, Wire
from openfield.trial import Trial

MAX_FORGOTTEN = 10_000
"""How many sessions of forgotten agents are remembered by their ids."""


class GroupedWrites:
    """Hands over what many agents have written in one turn of the event loop to the journal as one write.

    A write of its own for every reply would cost more than the reply.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal, self._lock = journal, threading.Lock()
        self._entries: list[Entry] = []
        self._receipt: Receipt[None] | None = None

    def add(self, *entries: Entry) -> Receipt[None]:
        """Write entries in the order in which they are added. Any thread may call this."""
        with self._lock:
            self._entries += entries
            begins, receipt = self._receipt is None, self._receipt or Receipt[None]()
            self._receipt = receipt
        if begins:
            try:
                asyncio.get_running_loop().call_soon(self.hand_over)
            except RuntimeError:  # there is no event loop in this thread
                self.hand_over()
        return receipt

    def hand_over(self) -> None:
        """Let the journal write all that was added."""
        with self._lock:
            entries, receipt = self._entries, self._receipt
            self._entries, self._receipt = [], None
            if receipt is None:
                return
            try:
                written = self._journal.add(*entries)
            except OpenfieldError as error:
                receipt.settle(None, error)
                return
        written.then(lambda: receipt.settle(None, written.failure))


class RecordingDispatcher(ABC):
    """A dispatcher whose rollouts are recorded in a journal."""

    def __init__(self, journal: Journal, token: str | None) -> None:
        self._journal = journal
        self.full = journal.keeps_arrays
        """Whether large arrays of turns are kept, and not only their digests."""
        self._token = token
        self._lock = asyncio.Lock()
        self._reopened = False

    @property
    def needs_token(self) -> bool:
        """Whether clients must show a token."""
        return self._token is not None

    def check(self, token: str | None) -> None:
        """Refuse a wrong token, if one is needed."""
        if self._token is not None and not hmac.compare_digest(self._token.encode(), (token or "").encode()):
            raise AgentFault("The token is wrong.")

    async def recover(self) -> None:
        """Go on from the record on disk after the journal has failed, as on a full disk; do nothing otherwise.

        What could not be written was never acknowledged, and is forgotten.

        Raises:
            JournalError: It still cannot be written.
        """
        if self._journal.failed:
            async with self._lock:
                if self._journal.failed:  # otherwise another request was faster
                    await asyncio.to_thread(self._start_over)

    async def forget_idle(self) -> None:
        """Forget clients that were not seen for an hour, again and again."""
        while True:
            await asyncio.sleep(FORGET_SECONDS / 60)
            await self.forget(time.monotonic() - FORGET_SECONDS)

    @abstractmethod
    async def forget(self, before: float) -> None:
        """Free what clients hold that were not seen since a moment of the monotonic clock. Their trials can go on."""

    @abstractmethod
    def _start_over(self) -> None:
        """Forget the state in memory, and read it again from the journal that `_reopen` opens."""

    def _reopen(self) -> None:
        self._journal.close()
        self._journal, self._reopened = Journal(self._journal.path, self._journal.durable), True

    def _close_reopened(self) -> None:
        """Close the journal if it was opened here. The one that was given is closed by its owner."""
        if self._reopened:
            self._journal.close()


class TrialDispatcher(RecordingDispatcher):
    """Gives the trials of a run to every agent that connects, each under its own name."""

    def __init__(
        self, journal: Journal, domain: Domain[Any], trials: Iterable[Trial], agent: str, token: str | None
    ) -> None:
        super().__init__(journal, token)
        self._domain, self._writes = domain, GroupedWrites(journal)
        self._assignments = Assignments(journal, trials, self._writes.hand_over)
        self._announce(self._assignments.trials)
        self._agent = agent
        self._remotes: dict[str, tuple[Cell, RemoteRollout]] = {}
        self.notice: Callable[[str], None] = lambda text: None
        """Receives a line when an agent begins a trial, and when the trial ends."""
        self._forgotten: OrderedDict[str, Cell] = OrderedDict()
        self._joining: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # as long as one has it

    async def join(
        self, name: str | None = None, token: str | None = None, session: str | None = None
    ) -> RemoteRollout:
        """Return the rollout of an agent: the one it had, or one it has left, or the next of its trials.

        A trial that was left comes before others: an agent gains nothing by leaving those that go badly.
        """
        self.check(token)
        check_agent_name(name or "")
        await self.recover()
        if session is not None:
            async with self._lock:
                self._book()
                return await self._return(session)
        who = name or self._agent
        lock = self._joining.setdefault(who, asyncio.Lock())
        async with lock:  # agents of other names need not wait
            async with self._lock:
                self._book()
                if (left := self._find_left(who)) is not None:
                    return await self._return(left)
            return await asyncio.to_thread(self._open, who)

    async def _return(self, session: str) -> RemoteRollout:
        """Return the rollout of an agent that comes back."""
        if session in self._forgotten:
            return await asyncio.to_thread(self._recall, session)
        if session not in self._remotes:
            raise AgentFault("There is no trial under way for this session.")
        cell, remote = self._remotes[session]
        self._remotes[session] = cell, (heir := await remote.hand_over())
        return heir

    def _find_left(self, name: str) -> str | None:
        """Return the session of a trial that an agent has left without being free to stop, or None."""
        for session, (cell, remote) in self._remotes.items():
            if cell.agent == name and remote.was_left and not remote.hung_up:
                return session
        return None

    @property
    def trials(self) -> list[Trial]:
        """The trials of agents that have none of their own."""
        return list(self._assignments.trials)

    async def enroll(self, name: str, trials: Iterable[Trial], facts: Mapping[str, str] | None = None) -> None:
        """Give an agent trials of its own, and record the facts it states about itself."""
        check_agent_name(name)
        own = list(trials)
        self.notice(f"{name} registered for {say_count(len(own), 'trial')}.")
        self._announce(own)
        await asyncio.to_thread(self._assignments.enroll, name, own, facts or {})

    async def enrolled(self, name: str) -> list[CellRecord]:
        """Return the recorded cells of an agent, also from before a restart; none if it never enrolled."""
        return [record for record in await asyncio.to_thread(self._assignments.records) if record.agent == name]

    async def agents(self) -> list[str]:
        """Return the names of all recorded agents."""
        return sorted({record.agent for record in await asyncio.to_thread(self._assignments.records)})

    async def count_left(self, name: str) -> int:
        """Count the test trials of an agent that are neither finished nor being played."""
        async with self._lock:
            self._book()
            taken, known = self._taken(), await self.enrolled(name)
        tests = (record for record in known if not record.trial.is_training)
        return sum(record.outcome in AGAIN and record.id not in taken for record in tests)

    async def start(self, name: str, training: bool = False) -> RemoteRollout | None:
        """Start the next test (or training) trial of an agent from its beginning; return None if none is left."""
        async with self._lock:
            self._book()
            cells = await asyncio.to_thread(self._assignments.find, name)
            wanted = [cell for cell in cells if cell.trial.is_training is training]
            return await asyncio.to_thread(self._start, wanted)

    async def settle(self) -> None:
        """Record how every finished trial ended, now rather than with the next request."""
        async with self._lock:
            self._book()

    async def leave(self, session: str, fault: OpenfieldError) -> None:
        """Record that an agent failed or went away. If it went away, its trial is offered again."""
        async with self._lock:
            if session in self._remotes:
                self._remotes[session][1].fault = fault
                self._book()

    async def forget(self, before: float) -> None:
        """End the rollouts of agents that left before a moment; those that come back with their session resume them."""
        async with self._lock:
            for session, (cell, remote) in list(self._remotes.items()):
                if remote.is_idle(before):
                    del self._remotes[session]
                    await asyncio.to_thread(remote.settle)
                    if remote.hung_up and remote.leave():
                        remote.rollout.close(remote.rollout.outcome)
                        continue
                    remote.rollout.close("cancelled")
                    self._forgotten[session] = cell
            while len(self._forgotten) > MAX_FORGOTTEN:
                self._forgotten.popitem(last=False)

    def close(self) -> None:
        """Record how every rollout ended. Trials that are not over can be resumed."""
        try:
            self._book(closing=True)
            self._writes.hand_over()
        finally:
            self._close_reopened()

    def _start_over(self) -> None:
        """Offer the trials under way again."""
        for _, remote in self._remotes.values():
            remote.settle()
            remote.rollout.world.close()
        self._remotes.clear()
        self._reopen()
        self._writes = GroupedWrites(self._journal)
        self._assignments = Assignments(self._journal, self._assignments.trials, self._writes.hand_over)
        said = {f"went on {uuid.uuid4().hex[:8]}": "Something could not be written before."}
        self._journal.enter([], {}, said)  # finds out whether there is room

    def _open(self, name: str) -> RemoteRollout:
        """Open, or resume, the first of an agent's trials that is not being played."""
        for cell in self._assignments.enter(name):
            while (status := self._assignments.attempt(cell, self._taken())) is not None:
                remote = self._open_remote(cell, status)
                if remote is not None and not remote.rollout.over:
                    return remote
                self._book()
        raise AgentFault(f"There is no trial left for '{name}'.")

    def _recall(self, session: str) -> RemoteRollout:
        """Resume the trial of an agent that was forgotten."""
        cell = self._forgotten.pop(session)
        status = self._assignments.attempt(cell, self._taken())
        remote = None if status is None else self._open_remote(cell, status, session)
        if remote is None:
            raise AgentFault("The trial of this session has ended.")
        return remote

    def _start(self, cells: list[Cell]) -> RemoteRollout | None:
        """Begin the first of these cells that is neither being played nor finished."""
        broken = ""
        for cell, attempt in self._assignments.begin(cells, self._taken()):
            remote = self._open_remote(cell, CellStatus(attempt))
            if remote is not None:
                return remote
            broken = cell.trial.id
        if broken:  # an agent that hears that none is left would think all were played
            raise WorldFault(f"Trial {broken} cannot be opened.")
        return None

    def _announce(self, trials: Sequence[Trial]) -> None:
        """Let domains know which of their trials agents may ask for."""
        for trial in {trial.domain: trial for trial in trials}.values():
            domain = self._domain_of(trial)
            if isinstance(domain, PreparesTrials):
                domain.expect(each for each in trials if each.domain == trial.domain)

    def _domain_of(self, trial: Trial) -> Domain[Any]:
        return self._domain if trial.domain == self._domain.name else known_domain(trial.domain)

    def _taken(self) -> set[str]:
        """Return the cells that are being played."""
        return {cell.id for cell, _ in list(self._remotes.values())}

    def _open_remote(self, cell: Cell, status: CellStatus, session: str = "") -> RemoteRollout | None:
        """Open a rollout in an attempt; return None if that fails, which is recorded."""
        past: list[RawStep] = []
        if status.steps:
            with Run(self._journal.path) as run:
                past = list(run.raw_steps(cell.id, status.attempt))
        recorder = Recorder(cell.id, status.attempt, self._writes.add, len(past), self.full)
        domain = self._domain_of(cell.trial)
        try:
            rollout = open_rollout(domain, cell, recorder, past)
        except OpenfieldError as error:
            recorder.end(*explain_failure(error), 0.0)
            return None
        session = session or uuid.uuid4().hex
        remote = RemoteRollout(rollout, spec_of(domain, cell.trial), cell.seed, session, self._book)
        self._remotes[remote.session] = cell, remote
        self.notice(f"{cell.agent} {'goes on with' if status.steps else 'begins'} trial {cell.trial.id}.")
        return remote

    def _book(self, closing: bool = False) -> None:
        """Record the outcome of every rollout whose trial is over or whose agent failed."""
        for session, (cell, remote) in list(self._remotes.items()):
            if not (closing or remote.rollout.over or remote.fault is not None):
                continue
            if self._remotes.pop(session, None) is None:
                continue  # another thread was faster
            remote.settle()
            if closing and remote.rollout.turn.last is not None and not remote.rollout.over:
                remote.rollout.reply(Reply())  # no agent will say anything more of the episode that has ended
            if closing and remote.hung_up and remote.fault is None:
                remote.leave()
            outcome, note = remote.rollout.outcome if remote.rollout.over else "cancelled", ""
            if remote.fault is not None:
                outcome, note = explain_failure(remote.fault)
            remote.rollout.close(outcome, note)
            why = f" ({note.strip().splitlines()[0].rstrip('.'):.300})" if note.strip() else ""
            self.notice(escape_controls(f"{cell.agent} ended trial {cell.trial.id}: {outcome}{why}."))


class SingleDispatcher:
    """Has one rollout, for the program that plays one cell."""

    def __init__(self, remote: RemoteRollout) -> None:
        self.current = remote

    async def join(
        self, name: str | None = None, token: str | None = None, session: str | None = None
    ) -> RemoteRollout:
        """Return the rollout until its trial is over."""
        if self.current.rollout.over or self.current.fault is not None:
            raise AgentFault("The trial is over.")
        if self.current.taken:
            self.current = await self.current.hand_over()
        return self.current

    def close(self) -> None:
        """Take no further reply. The player of the cell records how it ended."""
        self.current.settle()


def find_wire(domain: Domain[Any]) -> Wire:
    """Return the protocol a domain's agents speak: its own, or JSON lines over TCP."""
    return domain.wire() if isinstance(domain, HasWire) else JsonLinesWire()


def open_dispatcher(
    domain: Domain[Any], journal: Journal, trials: Sequence[Trial], serving: Serving
) -> tuple[Wire, Dispatcher]:
    """Return the wire and the dispatcher that serve a domain."""
    if isinstance(domain, HasDispatcher):
        wire, dispatcher = domain.open_dispatcher(journal, trials, serving)
    else:
        wire = find_wire(domain)
        dispatcher = TrialDispatcher(journal, domain, trials, serving.agent, serving.token)
    if serving.record is not None and isinstance(dispatcher, RecordingDispatcher):
        dispatcher.full = serving.record == "full"
    return wire, dispatcher


async def serve_domain(
    wire: Wire, dispatcher: Dispatcher, host: str, port: int | None, ready: Callable[[int], None]
) -> None:
    """Serve a domain's trials until cancelled, and then record what is left."""
    idle = asyncio.ensure_future(dispatcher.forget_idle()) if isinstance(dispatcher, RecordingDispatcher) else None
    try:
        check_port(port, "--port")
        await wire.serve(dispatcher, host, wire.port if port is None else port, ready)
    finally:
        if idle is not None:
            idle.cancel()
        dispatcher.close()
