"""Who plays what: the people of a study, their trials, and what is recorded of both.

All people are one agent, `human`; a person is a repeat of it. So a table has one column for them, and the record says
them apart. A single player is a study with one person.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec

from openfield.cell import Cell
from openfield.domain import Domain, spec_of
from openfield.errors import InvalidInput, JournalError, OpenfieldError, ReplayMismatch
from openfield.journal.reader import Run
from openfield.journal.writer import Journal
from openfield.provenance.people import person_fact
from openfield.record import AttemptEnd
from openfield.registry import domain_source
from openfield.runner.plan import facts_of
from openfield.runner.player import explain_failure
from openfield.serving.assignments import Assignments
from openfield.trial import Trial
from openfield.view.play.browser_channel import BrowserChannel
from openfield.view.play.open_trial import find_page
from openfield.view.play.people import People, deal_trials
from openfield.view.play.play_process import PlayProcess, ProcessLost, preload
from openfield.view.play.worker_messages import OpenOrder, PlayOrder

WORKERS = 16
"""Threads in which the record is read and written, and processes are started."""
MAX_LOSSES = 3
"""How often the process of a person may be lost in one trial; each time the trial goes on from the record."""
Reveals = Callable[[Cell], Iterable[Mapping[str, Any]]]
"""What a page shows after a trial, and again when more is known."""
T = TypeVar("T")


class TrialUnderWay(NamedTuple):
    """A trial that a person plays."""

    cell: Cell
    attempt: int | None
    """None if nothing is recorded."""
    place: int
    """Its place among the trials of the person."""


class Person:
    """One person: the secret of their link, their cells, and the trial they are playing."""

    def __init__(self, number: int, secret: str, agent: str, trials: Iterable[Trial]) -> None:
        self.number, self.secret = number, secret
        self.cells = [Cell(agent, trial, number) for trial in trials]
        self.trial: TrialUnderWay | None = None
        self.process: PlayProcess | None = None
        """Where the person's worlds run."""
        self.losses = 0
        """How often that was lost in this trial."""
        self.entered = self.done = False
        self.visit: asyncio.Task[None] | None = None
        """The visit under way; one that comes later ends it."""
        self.arriving, self.opening = asyncio.Lock(), asyncio.Lock()

    @property
    def name(self) -> str:
        """What the record calls the person."""
        return f"p{self.number + 1:02d}"


class PeopleStudy:
    """A study while it is open. It is closed once, and trials that are not over are cancelled then."""

    def __init__(
        self,
        journal: Journal,
        domain: Domain[Any],
        trials: Sequence[Trial],
        people: People,
        secrets: Sequence[str],
        agent: str = "human",
        practice: Trial | None = None,
    ) -> None:
        """Open a study.

        Args:
            journal: Where it is recorded.
            domain: What is played.
            trials: All trials.
            people: What people are shown and asked.
            secrets: The secret of each person's link.
            agent: What all people are called together.
            practice: The trial that people play before.
        """
        self.people, self.domain, self.practice = people, domain, practice
        self._journal, self._agent = journal, agent
        self._assignments = Assignments(journal, trials)
        dealt = ((number, secret, deal_trials(trials, number, people.trials)) for number, secret in enumerate(secrets))
        self.persons = [Person(number, secret, agent, own) for number, secret, own in dealt]
        self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="play")
        self.closing = False
        """Whether no visit may begin any more."""
        self.reveal: Reveals | None = None
        """Says after each trial what was true of it: at once, and again when more is known."""
        self.on_done: Callable[[], None] = lambda: None
        """Called when the last person is done."""
        check_moment(domain, trials)
        self._source = domain_source(domain.name)
        if not self._source:
            raise InvalidInput(f"{domain.name} cannot be played in another process: define it in a module or a file.")
        preload(domain)

    def find(self, secret: str) -> Person | None:
        """Return the person whose link has this secret."""
        given = secret.encode()
        matches = [each for each in self.persons if hmac.compare_digest(each.secret.encode(), given)]
        return matches[0] if matches else None

    async def work(self, task: Callable[[], T]) -> T:
        """Do something that takes time in a thread, to its end even if the one who waits is gone."""
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._workers, task))

    def facts_about(self, person: Person) -> dict[str, Any]:
        """Return what was recorded about a person, also before a restart."""
        prefix = person_fact(self._agent, person.number) + " "
        with Run(self._journal.path) as run:
            found = {key.removeprefix(prefix): text for key, text in run.facts.items() if key.startswith(prefix)}
        return {key: msgspec.json.decode(text) for key, text in found.items()}

    def enter(self, person: Person) -> None:
        """Record that a person has come, with their cells. Links that are never opened leave no trace."""
        if not person.entered:
            fact = {person_fact(self._agent, person.number): person.name}
            self._journal.enter(person.cells, {self._agent: None}, {**facts_of(person.cells), **fact})
            person.entered = True

    def note(self, person: Person, key: str, value: Any) -> None:
        """Record something about a person, with the time. What was recorded first stays."""
        text = msgspec.json.encode({"at": round(time.time(), 3), "value": value}).decode()
        self._journal.enter([], {}, {f"{person_fact(self._agent, person.number)} {key}": text})

    async def open_next(self, person: Person) -> TrialUnderWay | None:
        """Return the trial that a person plays now, opened or resumed; None if all are over.

        Raises:
            JournalError: The record cannot be written.
            ReplayMismatch: The trial is not the recorded one any more.
        """
        if person.trial is not None:
            return person.trial
        for place, cell in enumerate(person.cells):
            while (status := await self.work(partial(self._assignments.attempt, cell, ()))) is not None:
                trial = TrialUnderWay(cell, status.attempt, place)
                try:
                    if await self._open(person, trial):
                        person.trial, person.losses = trial, 0
                        return trial
                except (JournalError, ReplayMismatch):
                    raise
                except OpenfieldError as error:
                    await self.work(partial(self._record_end, trial, *explain_failure(error)))
        return None

    async def open_practice(self, person: Person) -> bool:
        """Open the practice trial, which is not recorded; return False if the study has no practice."""
        if self.practice is None:
            return False
        return await self._open(person, TrialUnderWay(Cell("practice", self.practice), None, 0))

    async def play(self, person: Person, channel: BrowserChannel, practice: bool = False) -> None:
        """Let a person go on with the trial that is open, to its end.

        Raises:
            Gone: The connection is; the trial stays open.
            OpenfieldError: The trial has failed, which is recorded.
            ProcessLost: The process is gone, and the trial is still under way.
        """
        place, count = (0, 1) if practice or person.trial is None else (person.trial.place, len(person.cells))
        process = await self._find_process(person)
        try:
            await process.play(channel, PlayOrder(place=place, count=count, practice=practice))
        except ProcessLost:
            person.process = None
            await process.end()
            raise
        except OpenfieldError:
            person.trial = None
            raise
        person.trial = None

    async def recover(self, person: Person, lost: ProcessLost) -> bool:
        """Go on with a trial from the record in a new process; return False if it was given up, which is recorded."""
        trial = person.trial
        if trial is None:
            return False
        person.losses += 1
        with suppress(ProcessLost):
            if person.losses <= MAX_LOSSES and await self._open(person, trial):
                return True
        person.trial = None
        await self.work(partial(self._record_end, trial, *explain_failure(lost)))
        return False

    def flush(self) -> None:
        """Wait until all that was played is on disk."""
        self._journal.flush()

    def finish(self, person: Person) -> None:
        """Take note that a person has done everything."""
        person.done = True
        if all(each.done for each in self.persons):
            self.on_done()

    async def end_trials(self) -> None:
        """Cancel the trials under way, which can be resumed when the study is opened again, and end all processes."""
        self.closing = True
        await asyncio.gather(*map(self._end_person, self.persons))

    def close(self) -> None:
        """Close the study when nothing is played any more."""
        self._workers.shutdown(wait=True)

    async def _end_person(self, person: Person) -> None:
        async with person.opening:
            trial, person.trial = person.trial, None
            process, person.process = person.process, None
        try:
            if trial is not None and not self._journal.failed:
                await self._cancel(trial, process)
        finally:
            if process is not None:
                await process.end()

    async def _cancel(self, trial: TrialUnderWay, process: PlayProcess | None) -> None:
        """Record that a trial was cancelled, in its process if that is still there."""
        with suppress(ProcessLost):
            if process is not None:
                await process.finish("cancelled")
                return
        await self.work(partial(self._record_end, trial, "cancelled"))

    async def _find_process(self, person: Person) -> PlayProcess:
        if person.process is None:
            start = partial(PlayProcess, self._journal, asyncio.get_running_loop())
            person.process = await self.work(start)
        return person.process

    async def _open(self, person: Person, trial: TrialUnderWay) -> bool:
        """Open a trial; return False if it is over."""
        return await asyncio.shield(asyncio.ensure_future(self._open_alone(person, trial)))

    async def _open_alone(self, person: Person, trial: TrialUnderWay) -> bool:
        """Open a trial after those that are being opened for pages that are gone."""
        async with person.opening:
            process = await self._find_process(person)
            order = OpenOrder(cell=trial.cell, domain=self._source, run=self._journal.path, attempt=trial.attempt)
            try:
                return await process.open(order)
            except ProcessLost:
                person.process = None
                await process.end()
                raise

    def _record_end(self, trial: TrialUnderWay, outcome: str, note: str = "") -> None:
        """Record how a trial ended whose process did not."""
        if trial.attempt is not None:
            self._journal.add(AttemptEnd(trial.cell.id, trial.attempt, outcome, note, 0.0)).result()


def check_moment(domain: Domain[Any], trials: Sequence[Trial]) -> None:
    """Refuse to ask for a belief with every turn where time runs: a person cannot answer 35 times a second."""
    for trial in trials[-1:]:
        page, spec = find_page(domain, trial), spec_of(domain, trial)
        if spec.ask == "turn" and getattr(page, "milliseconds", None):
            raise InvalidInput(f"{domain.name} does not wait for its player. Ask after episodes: --set ask=episode")
