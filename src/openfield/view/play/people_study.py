"""Who plays what: the people of a study, their trials, and what is recorded of both.

All people are one agent, `human`; a person is a repeat of it. So a table has one column for them, and the record tells
them apart. A single player is a study with one person.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import msgspec

from openfield.capabilities import PreparesTrials
from openfield.cell import Cell
from openfield.domain import Domain, spec_of
from openfield.errors import InvalidInput, OpenfieldError, ReplayMismatch
from openfield.journal.people import person_fact
from openfield.journal.reader import Run
from openfield.journal.recorder import Recorder
from openfield.journal.writer import Journal
from openfield.runner.plan import facts_of
from openfield.runner.player import explain
from openfield.serving.assignments import Assignments
from openfield.trial import Trial
from openfield.view.play.open_trial import OpenTrial, find_page
from openfield.view.play.people import People, deal_trials

WORKERS = 16
"""Threads in which worlds step and pictures are painted."""
T = TypeVar("T")


class Person:
    """One person: the secret of their link, their cells, and the trial they are playing."""

    def __init__(self, number: int, secret: str, agent: str, trials: Iterable[Trial]) -> None:
        self.number, self.secret = number, secret
        self.cells = [Cell(agent, trial, number) for trial in trials]
        self.open: OpenTrial | None = None
        self.entered = self.done = False
        self.visit: asyncio.Task[None] | None = None
        """The visit under way; one that comes later ends it."""
        self.arriving = asyncio.Lock()

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
        self.on_done: Callable[[], None] = lambda: None
        """Called when the last person is done."""
        check_moment(domain, trials)
        if isinstance(domain, PreparesTrials):
            domain.expect([*trials, *([] if practice is None else [practice])])

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

    def open_next(self, person: Person) -> tuple[OpenTrial, int] | None:
        """Return the trial that a person plays now, opened or resumed, and its place; None if all are over.

        Raises:
            OpenfieldError: The trial cannot be played here.
        """
        if person.open is not None:
            return person.open, person.cells.index(person.open.cell)
        for place, cell in enumerate(person.cells):
            while (attempt := self._assignments.attempt(cell, ())) is not None:
                opened = self._open(cell, attempt)
                if opened is not None:
                    person.open = opened
                    return opened, place
        return None

    def open_practice(self, person: Person) -> OpenTrial | None:
        """Return the practice trial, which is not recorded."""
        return None if self.practice is None else OpenTrial(self.domain, Cell("practice", self.practice), None)

    def end_trial(self, person: Person, error: Exception | None = None) -> None:
        """Record how the trial of a person ended."""
        opened, person.open = person.open, None
        if opened is not None and error is None:
            opened.finish()
        elif opened is not None and error is not None:
            opened.fail(error)

    def finish(self, person: Person) -> None:
        """Take note that a person has done everything."""
        person.done = True
        if all(each.done for each in self.persons):
            self.on_done()

    def close(self) -> None:
        """Close the study: trials under way are cancelled, and can be resumed when it is opened again."""
        self._workers.shutdown(wait=True)
        for person in self.persons:
            opened, person.open = person.open, None
            if opened is not None and not self._journal.failed:
                opened.finish("cancelled")

    def _open(self, cell: Cell, attempt: int) -> OpenTrial | None:
        """Open a trial in an attempt; return None if it is over or cannot be opened, which is recorded."""
        with Run(self._journal.path) as run:
            past = list(run.raw_steps(cell.id, attempt))
        recorder = Recorder(cell.id, attempt, self._journal.add, len(past))
        try:
            opened = OpenTrial(self.domain, cell, recorder, past)
        except ReplayMismatch:
            raise
        except OpenfieldError as error:
            recorder.end(*explain(error), 0.0)
            self._journal.flush()
            return None
        if opened.over:  # a crash came between the last reply and the outcome
            opened.finish()
            self._journal.flush()
            return None
        return opened


def check_moment(domain: Domain[Any], trials: Sequence[Trial]) -> None:
    """Refuse to ask for a belief with every turn where time runs: a person cannot answer 35 times a second."""
    for trial in trials[-1:]:
        page, spec = find_page(domain, trial), spec_of(domain, trial)
        if spec.ask == "turn" and getattr(page, "milliseconds", None):
            raise InvalidInput(f"{domain.name} does not wait for its player. Ask after episodes: --set ask=episode")
