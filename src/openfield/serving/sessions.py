"""Keep sessions of several trials, which one foreign agent plays in any order.

For wires whose sessions hold many tests. A session is entered into the journal with its cells; what is said of it
later (when it ended, which tests are finished) are further facts of the journal. There is no second store.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any

import msgspec

from openfield.cell import Cell
from openfield.core import Reply
from openfield.domain import Domain, spec_of
from openfield.errors import AgentFault, RunBusy
from openfield.journal.reader import RESUMABLE, Run
from openfield.journal.recorder import Emit, Recorder
from openfield.journal.schema import LOOSE_FACT
from openfield.journal.writer import Journal
from openfield.record import Step
from openfield.runner.plan import check_agent_name, facts_of
from openfield.runner.player import open_rollout
from openfield.serving.dispatch import RecordingDispatcher
from openfield.serving.remote import RemoteRollout
from openfield.trial import Trial

KEPT = 32
"""How many finished trials are kept in memory; others are replayed when asked for."""


class Session(msgspec.Struct):
    """A session: who plays which trials, and what was said of it."""

    id: str
    agent: str
    repeat: int
    trials: dict[str, str]
    """The session's own name of a trial -> its id."""
    facts: dict[str, Any]


class Recorded(msgspec.Struct, frozen=True):
    """The steps an attempt had at some time: read anew whenever asked for, and never all in memory."""

    path: Path
    cell: str
    attempt: int
    count: int

    def __iter__(self) -> Iterator[Step]:
        with Run(self.path) as run:
            yield from islice(run.steps(self.cell, self.attempt), self.count)


class SessionDispatcher(RecordingDispatcher):
    """Keeps sessions, and the rollouts of their trials."""

    def __init__(self, journal: Journal, domain: Domain[Any], token: str | None = None) -> None:
        super().__init__(journal, token)
        self.groups: dict[str, Session] = {}
        self._repeats: Counter[str] = Counter()
        self._domain = domain
        self._trials: dict[str, Trial] = {}
        self._remotes: dict[tuple[str, str], RemoteRollout] = {}
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}
        self._finished: OrderedDict[tuple[str, str], RemoteRollout] = OrderedDict()
        self._seen: dict[str, float] = {}
        self.told: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """How often a wire gave results of a trial, by its name for the trial and the receiver; the wire fills it."""
        self._load()

    async def open(
        self, name: str, agent: str, trials: Mapping[str, Trial], facts: Mapping[str, Any], caution: str = ""
    ) -> Session:
        """Enter a session, and return when it is safely on disk.

        Args:
            name: The id of the session.
            agent: Who plays.
            trials: What is played, by the session's own names.
            facts: What is known of the session.
            caution: A sentence that reports of the run print, because it bears on what the numbers mean.
        """
        check_agent_name(agent)
        repeat = self._repeats[agent]
        self._repeats[agent] += 1
        ids = {known: trial.id for known, trial in trials.items()}
        group = Session(name, agent, repeat, ids, dict(facts))
        self.groups[name] = group
        new = {trial.id: trial for trial in trials.values() if trial.id not in self._trials}
        self._trials.update(new)
        cells = [Cell(agent, trial, repeat) for trial in trials.values()]
        said = facts_of(cells) if new else {}  # said once of each trial
        said[f"session {name}"] = msgspec.json.encode(group).decode()
        if caution:
            said[f"caution {name} opened"] = caution
        await self._journal.submit(cells, {agent: None}, said)
        return group

    async def note(self, group: Session, key: str, value: Any) -> None:
        """Add a fact about a session, and return when it is safely on disk."""
        group.facts[key] = value
        text = msgspec.json.encode(value).decode()
        await self._journal.submit([], {}, {f"session {group.id} {key}": text})

    async def join(
        self, name: str | None = None, token: str | None = None, session: str | None = None
    ) -> RemoteRollout:
        """Refuse: a session here holds several trials, and wires ask `take` for one of them."""
        raise AgentFault("Here a session holds several trials; this wire cannot play them.")

    def find_trial(self, group: Session, trial: str) -> Trial:
        """Return a trial of a session by the session's own name of it."""
        return self._trials[group.trials[trial]]

    def at_hand(self, group: Session, trial: str) -> RemoteRollout | None:
        """Return the rollout of a trial if it is open or was finished lately."""
        self._seen[group.id] = time.monotonic()
        return self.peek(group, trial)

    def peek(self, group: Session, trial: str) -> RemoteRollout | None:
        """Return the same for a look that does not keep the session in memory."""
        return self._remotes.get((group.id, trial)) or self._finished.get((group.id, trial))

    async def begun(self, group: Session) -> list[str]:
        """Return the trials of a session that are under way or over."""
        return await asyncio.to_thread(self._begun, group)

    async def take(self, group: Session, trial: str) -> RemoteRollout:
        """Return the rollout of a trial, which is opened or resumed if it is not at hand."""
        found = self.at_hand(group, trial)
        if found is None:
            async with self._lock_of(group, trial):
                found = await self._find_or_open(group, trial)
        return found

    async def restart(self, group: Session, trial: str, carry: Callable[[RemoteRollout], Reply]) -> RemoteRollout:
        """Start a new attempt at a trial. The old one stays on record as superseded.

        A request that comes meanwhile waits for the new attempt: what it did in the old one would not be carried over.
        `carry` returns the first reply of the new attempt, from the rollout of the old one.
        """
        async with self._lock_of(group, trial):
            first = carry(await self._find_or_open(group, trial))
            self._finished.pop((group.id, trial), None)
            self._remotes.pop((group.id, trial), None)
            remote = await asyncio.to_thread(self._open_remote, group, trial, True)
            _, written = remote.take(first)
            self._remotes[group.id, trial] = remote
        if written is not None:
            await written
        return remote

    def finish(self, group: Session, trial: str, remote: RemoteRollout) -> None:
        """Record a trial that is over."""
        if self._remotes.pop((group.id, trial), None) is not None:
            remote.rollout.close(remote.rollout.outcome)
        self._keep((group.id, trial), remote)

    async def leave(self, group: Session) -> None:
        """Record the trials of a session that are not over, and free what they hold. A later request replays one."""
        for trial in group.trials:
            async with self._lock_of(group, trial):
                remote = self._remotes.pop((group.id, trial), None)
                if remote is not None:
                    await asyncio.to_thread(remote.settle)
                    remote.rollout.close("cancelled")

    async def caution(self, group: Session, key: str, text: str) -> None:
        """Add a sentence that reports of the run print, because it bears on what the numbers mean."""
        await self._journal.submit([], {}, {f"caution {group.id} {key}": text})

    async def loosen(self, group: Session, trial: str, why: str) -> None:
        """Record that a trial may score without doing anything for it: reports show it below a line."""
        await self._journal.submit([], {}, {f"{LOOSE_FACT}{self._cell(group, trial).id}": why})

    async def forget(self, before: float) -> None:
        """Free what sessions hold that were not asked about since a moment. A later request replays a trial."""
        for name in [name for name, seen in self._seen.items() if seen < before]:
            del self._seen[name]
            if name in self.groups:
                await self.leave(self.groups[name])
            for kept in (self._finished, self._locks):
                for key in [key for key in kept if key[0] == name]:
                    del kept[key]

    def steps(self, group: Session, trial: str) -> Recorded:
        """Return all recorded steps of a trial's latest attempt."""
        cell = self._cell(group, trial)
        with Run(self._journal.path) as run:
            (record,) = run.cells(with_episodes=False, only=cell.id)
        return Recorded(self._journal.path, cell.id, record.attempt, record.steps)

    def close(self) -> None:
        """Record how every rollout ended. Trials that are not over can be resumed."""
        if not self._journal.failed:
            for remote in self._remotes.values():
                remote.rollout.close("cancelled")
        self._remotes.clear()
        self._close_reopened()

    def _load(self) -> None:
        """Find the sessions of earlier servers in the journal."""
        with Run(self._journal.path) as run:
            facts = {key: value for key, value in run.facts.items() if key.startswith("session ")}
            self._trials = {cell.trial.id: cell.trial for cell in run.cells(with_episodes=False)} if facts else {}
        for key, value in facts.items():
            _, name, *rest = key.split(" ", 2)
            if not rest:
                self.groups[name] = msgspec.json.decode(value, type=Session)
            elif name in self.groups:
                self.groups[name].facts[rest[0]] = msgspec.json.decode(value)
        self._repeats = Counter(group.agent for group in self.groups.values())

    def _start_over(self) -> None:
        """Read sessions and trials again."""
        self._reopen()
        self._remotes.clear()
        self._finished.clear()
        self.groups.clear()
        self._load()

    def _begun(self, group: Session) -> list[str]:
        names = {self._cell(group, trial).id: trial for trial in group.trials}
        with Run(self._journal.path) as run:
            found = [record for key in names for record in run.cells(with_episodes=False, only=key)]
        return [names[record.id] for record in found if record.attempt]

    async def _find_or_open(self, group: Session, trial: str) -> RemoteRollout:
        found = self.at_hand(group, trial)
        if found is None:
            found = await asyncio.to_thread(self._open_remote, group, trial)
            self._keep((group.id, trial), found)
        return found

    def _open_remote(self, group: Session, trial: str, again: bool = False) -> RemoteRollout:
        """Open a trial: start a new attempt, or replay what is recorded of the latest one."""
        cell = self._cell(group, trial)
        with Run(self._journal.path) as run:
            (record,) = run.cells(with_episodes=False, only=cell.id)
            live = record.outcome in RESUMABLE or again
            if live and not self._journal.lease(cell.id):
                raise RunBusy(f"Another process plays test {trial} of session {group.id}.")
            begun = bool(record.attempt) and not again
            attempt = record.attempt + 1 if again else record.attempt or self._journal.begin(cell.id)
            emit = self._emit_anew(cell.id, attempt) if again else self._journal.add
            past = run.raw_steps(cell.id, attempt) if begun else ()
            recorder = Recorder(cell.id, attempt, emit, record.steps if begun else 0, self.full) if live else None
            rollout = open_rollout(self._domain, cell, recorder, past)
        if live and rollout.over:  # a crash came between the last reply and the outcome
            rollout.close(rollout.outcome)
        return RemoteRollout(rollout, spec_of(self._domain, cell.trial), cell.seed, group.id)

    def _emit_anew(self, cell: str, attempt: int) -> Emit:
        """Begin an attempt together with what it takes over: a crash in between would lose that."""
        first: Emit = partial(self._journal.add_anew, cell, attempt)
        emits: Iterator[Emit] = chain([first], repeat(self._journal.add))
        return lambda *entries: next(emits)(*entries)

    def _cell(self, group: Session, trial: str) -> Cell:
        return Cell(group.agent, self._trials[group.trials[trial]], group.repeat)

    def _lock_of(self, group: Session, trial: str) -> asyncio.Lock:
        return self._locks.setdefault((group.id, trial), asyncio.Lock())

    def _keep(self, key: tuple[str, str], remote: RemoteRollout) -> None:
        if not remote.rollout.over:
            self._remotes[key] = remote
            return
        self._finished[key] = remote
        while len(self._finished) > KEPT:
            self._finished.popitem(last=False)
