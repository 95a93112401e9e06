"""Numbers and curves of runs, computed in the background and kept until a file changes.

Between `report.analysis` and the pages. A page must come at once, also of a run with a million turns, and a run that is
being played must not be slowed down by those who watch it: so a page waits a moment, takes what is there, and learns
by an event when there is more (`live.py`).
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Generic, TypeVar

import msgspec

from openfield.errors import InvalidInput, OpenfieldError, describe_error
from openfield.metrics.selection import WITH_CHANGE
from openfield.report.analysis import Analysis, analyse
from openfield.report.matrix import Matrix, make_campaign_matrix, make_matrix
from openfield.result import Result
from openfield.view.library import Library, Signature

T = TypeVar("T")
MAX_SHARE = 0.02
"""The share of time that is spent on a run that goes on."""
WAIT_SECONDS = 0.12
"""How long a page waits for numbers that are not there yet."""
MAX_SCORED = 1_000
"""Runs whose scores are kept for the list."""
MAX_SCORING_SECONDS = 60.0
"""After this time the scores of the next run are begun."""
MAX_KEPT = 8
"""How many analyses are kept."""


class _Job(Generic[T]):
    """The work on one run: its last result, and whether a newer one is being computed."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.signature: Signature | None = None
        self.found: T | OpenfieldError | None = None
        self.busy = False
        self.waits = False
        """Whether it will start again after a pause."""
        self.rest_until = 0.0
        self.version = 0


class BackgroundWork(Generic[T]):
    """Something that is computed from whole runs, by one thread for each, and kept until the file changes."""

    def __init__(self, library: Library, work: Callable[[str, Result], T], most: int = MAX_KEPT) -> None:
        """Take what is done with a run and its key, and how many results are kept."""
        self._library, self._do, self._most = library, work, most
        self._jobs: OrderedDict[str, _Job[T]] = OrderedDict()
        self._lock = threading.Lock()
        self.finished = 0
        """How often any run was worked on."""

    def get(self, key: str, wait: float | None = WAIT_SECONDS) -> T | None:
        """Return what was computed of a run: of the file as it is, or earlier; None if there is nothing yet.

        Args:
            key: The key of the run.
            wait: How many seconds to wait for one of the file as it is; None waits until it is there.

        Raises:
            OpenfieldError: The run cannot be read.
        """
        job = self._begin(key, forced=wait is None)
        job.done.wait(wait)
        if isinstance(job.found, OpenfieldError):
            raise job.found
        return job.found

    def peek(self, key: str) -> tuple[T | OpenfieldError | None, bool]:
        """Return what was computed of a run last, or why it cannot be, and whether the file has not changed since."""
        job = self._jobs.get(key)
        return (None, False) if job is None else (job.found, job.signature == self._library.sign(key))

    def version(self, key: str) -> int:
        """Return how often a run was worked on; it changes when there is something new."""
        job = self._jobs.get(key)
        return 0 if job is None else job.version

    def _begin(self, key: str, forced: bool) -> _Job[T]:
        """Start again if the file has changed, unless work is under way or it is too soon."""
        signature = self._library.sign(key)
        with self._lock:
            job = self._jobs.setdefault(key, _Job())
            self._jobs.move_to_end(key)
            while len(self._jobs) > self._most:
                self._jobs.popitem(last=False)
            rest = 0.0 if forced else job.rest_until - time.monotonic()
            if not job.busy and job.signature != signature and (rest <= 0 or not self._is_live(key)):
                job.busy = True
                job.done.clear()
                threading.Thread(target=self._work, args=(key, job, signature), daemon=True).start()
            elif rest > 0 and job.signature != signature and not job.waits:
                job.waits = True  # its last change may be the one that came too soon
                timer = threading.Timer(rest, self._begin_later, (key, job))
                timer.daemon = True
                timer.start()
        return job

    def _begin_later(self, key: str, job: _Job[T]) -> None:
        job.waits = False
        with suppress(OpenfieldError):  # the file may be gone
            self._begin(key, forced=False)

    def _is_live(self, key: str) -> bool:
        """Return whether a process plays the run, which work on it would slow down."""
        with self._library.open(key) as run:
            return run.is_held(time.time())

    def _work(self, key: str, job: _Job[T], signature: Signature) -> None:
        began = time.monotonic()
        try:
            job.found = self._do(key, self._library.result(key))
        except OpenfieldError as error:
            job.found = error
        except Exception as error:  # a file can hold anything; without an answer its pages would wait for ever
            job.found = InvalidInput(f"The numbers of {key} cannot be computed: {describe_error(error)}.")
        job.signature = signature
        job.rest_until = time.monotonic() + (time.monotonic() - began) / MAX_SHARE
        job.version += 1
        self.finished += 1
        job.busy = False
        job.done.set()


def _analyse_run(key: str, result: Result) -> Analysis:
    homes = {cell.agent: (key, cell.agent) for cell in result.cells}
    return analyse(result.counted(), result.summary(), result.domains, homes, result.cautions)


class Analyses(BackgroundWork[Analysis]):
    """Analyses of the runs of a library, and the numbers of single trials."""

    def __init__(self, library: Library) -> None:
        super().__init__(library, _analyse_run)
        self._values: dict[str, tuple[Signature, dict[str, dict[str, float | None]]]] = {}

    def values(self, key: str) -> dict[str, dict[str, float | None]]:
        """Return the numbers of every cell that counts, by cell."""
        signature = self._library.sign(key)
        known = self._values.get(key)
        if known is None or known[0] != signature:
            found = {cell.id: numbers for cell, numbers in self._library.result(key).numbers()}
            self._values[key] = known = (signature, found)
            while len(self._values) > MAX_KEPT:
                self._values.pop(next(iter(self._values)))
        return known[1]


class AgentScore(msgspec.Struct, frozen=True):
    """A number of an agent, over all that it played in a run."""

    agent: str
    value: float


class RunScores(msgspec.Struct, frozen=True):
    """What the list of runs says of the results of one."""

    title: str
    """What the number is called by which agents are ranked; empty if none has one."""
    scores: dict[str, list[AgentScore]] = {}
    """Number -> agents with their values, the best first. `score` is the number by which agents are ranked."""
    lack: str = ""
    """Why there are none."""


class RunScoring(BackgroundWork[RunScores]):
    """The scores of the runs of a library, computed one after the other."""

    def __init__(self, library: Library) -> None:
        super().__init__(library, score_run, MAX_SCORED)
        self._wanted: list[str] = []
        self._turn = threading.Lock()
        self._is_working = False

    def want(self, keys: Iterable[str]) -> None:
        """Compute these scores next, and forget what was wanted before: a reader looks at one list."""
        with self._turn:
            self._wanted = list(keys)
            if self._is_working or not self._wanted:
                return
            self._is_working = True
        threading.Thread(target=self._work_off, daemon=True).start()

    def _work_off(self) -> None:
        while True:
            with self._turn:
                if not self._wanted:
                    self._is_working = False
                    return
                key = self._wanted.pop(0)
            began = time.monotonic()
            with suppress(OpenfieldError):  # the list of runs says it
                self.get(key, MAX_SCORING_SECONDS)
            time.sleep(time.monotonic() - began)  # pages come first


def score_run(_key: str, result: Result) -> RunScores:
    """Return the numbers of the agents of a run, each the mean over its domains or novelties; controls are left out."""
    summary = result.summary()
    several = len({group.scenario.domain for group in summary.groups}) > 1
    matrix = (make_campaign_matrix if several else make_matrix)(summary, result.domains)
    if matrix is None:
        return RunScores("", lack="its domains share no agents" if several else "no agent has a number")
    better = {number.name: number.better for number in summary.numbers}
    scores = {"score": _list_scores(matrix, None)}
    for name in WITH_CHANGE:
        scores[name] = sorted(_list_scores(matrix, name), key=lambda each: each.value)
        if better.get(name) != "lower":
            scores[name].reverse()
    title = "" if matrix.shared is None else matrix.shared.title
    return RunScores(title, {name: known for name, known in scores.items() if known})


def _list_scores(matrix: Matrix, name: str | None) -> list[AgentScore]:
    """Return a number of each agent that has it, in the order of the agents; None is the one that columns show."""
    found, rows = [], matrix.rows
    if name is None:  # agents without a rank have numbers of some columns only
        rows = [row for row in rows if row.rank is not None] or rows
    for row in rows:
        names = [name or column.number.name for column in matrix.columns]
        known = [each.estimates.get(of) for each, of in zip(row.cells, names, strict=True) if each]
        values = [each.mean for each in known if each is not None and each.mean is not None]
        if values:
            found.append(AgentScore(row.agent, math.fsum(values) / len(values)))
    return found
