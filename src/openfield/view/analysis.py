"""The numbers and curves of a run, computed in the background and kept until the file changes.

Between `result` and the pages. A page must come at once, also of a run with a million turns, and a run that is being
played must not be slowed down by those who watch it: so a page waits a moment, takes what is there, and is told by an
event when there is more (`live.py`).
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Generic, TypeVar

import msgspec

from openfield.capabilities import HasFigures
from openfield.errors import InvalidInput, OpenfieldError, describe_error
from openfield.journal.reader import CellRecord
from openfield.metrics.comparison import Comparison
from openfield.metrics.metric import Number
from openfield.metrics.openset.cells import read_answers
from openfield.metrics.performance import mean, performances, pick_after, split_periods
from openfield.metrics.scenario import Scenario, group_cells, scenario_of
from openfield.metrics.summary import AgentResults, Failure, Summary, count_outcomes
from openfield.report.chart import Curve, average, pick_evenly, trace_all
from openfield.report.page import list_curricula
from openfield.report.words import (
    count_failed,
    describe_novelty,
    describe_onset,
    describe_terms,
    explain_reading,
    name_number,
    pick_comparisons,
    rank_agents,
    shorten_agents,
    split_controls,
    title_domain,
)
from openfield.result import Result
from openfield.view.addresses import compare_address, name_novelty, number_address, trial_address, trials_address
from openfield.view.findings import say_findings
from openfield.view.library import Library, Signature

T = TypeVar("T")
HEADLINE = ("before", "after", "concordance", "correct", "delay", "alarmed")
"""The numbers that are shown first, as far as they are defined."""
MAX_SHARE = 0.02
"""The share of time that is spent on a run that goes on."""
WAIT_SECONDS = 0.12
"""How long a page waits for numbers that are not there yet."""
MAX_KEPT = 8
"""How many analyses are kept."""
MAX_SINGLES = 24
"""How many single trials of an agent are drawn."""


Homes = Mapping[str, tuple[str, str]]
"""Agent -> the key of the run in which it played, and what it is called there."""


class SingleCurve(msgspec.Struct, frozen=True):
    """A trial that an agent played, episode by episode."""

    cell: str
    address: str
    points: Curve


class AgentCurves(msgspec.Struct, frozen=True):
    """The trials of an agent in a scenario, counted from the onset: their mean, and some of them one by one."""

    agent: str
    name: str
    """What it is called in drawings."""
    control: bool
    trials: int
    mean: Curve
    singles: list[SingleCurve]
    onset: bool
    """Whether the world changes in them."""


class ScenarioAnalysis(msgspec.Struct, frozen=True):
    """What came of one scenario: a domain, what changes in it, and its terms."""

    id: str
    """Names it on a page."""
    novelty: str
    """What its novelty is called in addresses."""
    scenario: Scenario
    title: str
    change: str
    """What changes, in words."""
    terms: list[str]
    findings: list[str]
    """What came of it, in sentences."""
    found_in: list[str]
    """For each of these sentences, the address of what its numbers were made of."""
    groups: list[AgentResults]
    """The agents, the best first."""
    controls: list[AgentResults]
    names: dict[str, str]
    """Agent -> what it is called here, where there is little room."""
    curves: list[AgentCurves]
    """In the same order, controls last."""
    comparisons: list[Comparison]
    note: str
    """How the comparisons are read."""
    numbers: list[Number]
    """The numbers that are defined, in the words of this scenario."""
    sources: dict[str, dict[str, str]]
    """Agent -> number -> the address of the trials that it was made of."""
    has_figures: bool
    """Whether there are further figures: of samples, of the domain or of a curriculum."""
    compared: list[str]
    """For each comparison, the address where it is told trial by trial."""
    played: dict[str, str]
    """Agent -> the address of its trials in this scenario."""

    @property
    def headline(self) -> list[Number]:
        """The numbers that are shown first."""
        known = {number.name: number for number in self.numbers}
        return [known[name] for name in HEADLINE if name in known] or self.numbers[:4]

    @property
    def has_onset(self) -> bool:
        """Whether the world changes in it."""
        return any(each.onset for each in self.curves)


class TrialScore(msgspec.Struct, frozen=True):
    """What came of one trial that an agent played."""

    cell: str
    address: str
    agent: str
    trial: str
    repeat: int
    person: str
    """Who played it, if people did."""
    scenario: str
    outcome: str
    note: str
    episodes: int
    turns: int
    seconds: float
    onset: int | None
    """The episode in which the world changed, counted from 0 within the trial, training included, as in addresses."""
    noticed: int | None
    """Episodes from the onset to the first detection."""
    alarms: int
    """Detections in the test before the onset."""
    noticed_in: int | None
    """The episode with the first detection from the onset on."""
    alarmed_in: int | None
    """The episode with the first false alarm."""
    before: float | None
    after: float | None
    """Mean performances in the test."""
    unchanged: bool
    """Whether it is a twin in which nothing changes."""
    control: bool


class Analysis(msgspec.Struct, frozen=True):
    """All numbers and curves of a run, or of several."""

    scenarios: list[ScenarioAnalysis]
    outcomes: dict[str, dict[str, int]]
    """Agent -> outcome -> number of cells."""
    failures: tuple[Failure, ...]
    failed: int
    """How many cells of agents that are no controls were not played to their end."""
    trials: list[TrialScore]
    episodes: int
    turns: int
    cautions: list[str]
    reading: str
    """How numbers are read."""


def analyse(result: Result, homes: Homes) -> Analysis:
    """Compute the numbers and curves of a result whose agents played where `homes` says."""
    cells = result.counted()
    summary = result.summary()
    members = group_cells(cells)
    outcomes = {agent: count_outcomes(c for c in cells if c.agent == agent) for agent in _list_agents(cells)}
    return Analysis(
        scenarios=list(_analyse_scenarios(summary, members, result, homes)),
        outcomes=outcomes,
        failures=summary.failures,
        failed=count_failed({name: count for name, count in summary.outcomes.items() if name != "unfinished"}),
        trials=[_score(cell, homes) for cell in cells],
        episodes=sum(len(cell.episodes) for cell in result.cells),
        turns=sum(cell.turns for cell in result.cells),
        cautions=result.cautions,
        reading=explain_reading(summary),
    )


def name_scenario(scenario: Scenario) -> str:
    """Return what a scenario is called on a page: some digits of a hash."""
    return f"s{hashlib.sha256(msgspec.json.encode(scenario)).hexdigest()[:8]}"


def _list_agents(cells: Iterable[CellRecord]) -> list[str]:
    agents = {cell.agent: cell.control for cell in cells}
    return sorted(agents, key=lambda agent: (agents[agent], agent))


def _analyse_scenarios(
    summary: Summary, members: Mapping[tuple[Scenario, str], Sequence[CellRecord]], result: Result, homes: Homes
) -> Iterator[ScenarioAnalysis]:
    names = shorten_agents(homes)
    for scenario, found in groupby(summary.groups, key=lambda group: group.scenario):
        agents, controls = split_controls(sorted(found, key=_rank))
        groups = [*(rank_agents(agents, summary.comparisons) if agents else ()), *controls]
        shown = [number for number in summary.numbers if any(number.name in group.estimates for group in groups)]
        comparisons, note = pick_comparisons(summary.comparisons, groups)
        traced = [
            trace_agent(group.agent, names[group.agent], members[scenario, group.agent], homes[group.agent][0])
            for group in groups
        ]
        name = name_scenario(scenario)
        findings = say_findings(groups[: len(agents)], comparisons, names)
        yield ScenarioAnalysis(
            id=name,
            novelty=name_novelty(scenario.domain, scenario.novelty),
            scenario=scenario,
            title=title_domain(scenario, result.domains),
            change=describe_novelty(scenario, result.domains),
            terms=[text for text in (describe_terms(scenario), describe_onset(groups)) if text],
            findings=[finding.text for finding in findings],
            found_in=[number_address(*homes[finding.agent], finding.number, name) for finding in findings],
            groups=groups[: len(agents)],
            controls=controls,
            names={group.agent: names[group.agent] for group in groups},
            curves=[each for each in traced if each is not None],
            comparisons=comparisons,
            note=note,
            numbers=[_rename(number, scenario) for number in shown],
            sources={
                group.agent: {number.name: number_address(*homes[group.agent], number.name, name) for number in shown}
                for group in groups
            },
            has_figures=_has_figures(summary, scenario, [members[scenario, group.agent] for group in groups], result),
            compared=[_locate_comparison(one, homes, name) for one in comparisons],
            played={group.agent: _locate_trials(*homes[group.agent], name) for group in groups},
        )


def _has_figures(summary: Summary, scenario: Scenario, members: Iterable[Sequence[CellRecord]], result: Result) -> bool:
    """Return whether the page of figures has something about a scenario."""
    if list_curricula(summary, scenario) or isinstance(result.domains.get(scenario.domain), HasFigures):
        return True
    scored = (next((cell for cell in cells if cell.is_scored and cell.episodes), None) for cells in members)
    return any(cell is not None and read_answers(cell) is not None for cell in scored)


def _locate_comparison(one: Comparison, homes: Homes, scenario: str) -> str:
    """Return where a comparison is told trial by trial."""
    runs = dict.fromkeys(run for run, _ in homes.values())
    return f"{compare_address(runs, (one.first, one.second))}#{scenario}"


def _locate_trials(run: str, agent: str, scenario: str) -> str:
    """Return where the trials of an agent in a scenario are listed."""
    return trials_address(run, agent=agent, scenario=scenario)


def _rank(group: AgentResults) -> tuple[float, str]:
    """Put agents in order that do better equally often: the best after the onset first."""
    best = group.estimates.get("after") or group.estimates.get("before")
    value = -1.0 if best is None or best.mean is None else best.mean
    return -value, group.agent


def _rename(number: Number, scenario: Scenario) -> Number:
    title, note = name_number(number, scenario)
    return number if title == number.title else msgspec.structs.replace(number, title=title, note=note)


def trace_agent(agent: str, name: str, cells: Sequence[CellRecord], run: str) -> AgentCurves | None:
    """Return the curves of an agent in a scenario; trials that do not change are left out if some do.

    Args:
        agent: The agent.
        name: What it is called in drawings.
        cells: Its cells in the scenario.
        run: The key of the run that they are in.
    """
    played = [cell for cell in cells if cell.episodes]
    changed = [cell for cell in played if any(episode.novel for episode in cell.episodes)]
    chosen = changed or played
    if not chosen:
        return None
    curves = trace_all(chosen)
    singles = [
        SingleCurve(cell.id, trial_address(run, cell.id), curve) for cell, curve in zip(chosen, curves, strict=True)
    ]
    control = all(cell.control for cell in chosen)
    picked = pick_evenly(singles, MAX_SINGLES)
    return AgentCurves(agent, name, control, len(chosen), average(curves), picked, bool(changed))


def _score(cell: CellRecord, homes: Homes) -> TrialScore:
    periods = split_periods(cell)
    noticed = next((index for index, episode in enumerate(periods.after) if episode.detected), None)
    return TrialScore(
        cell=cell.id,
        address=trial_address(homes[cell.agent][0], cell.id),
        agent=cell.agent,
        trial=cell.trial.id,
        repeat=cell.repeat,
        person=cell.person,
        scenario=name_scenario(scenario_of(cell)),
        outcome=cell.outcome or ("playing" if cell.attempt else "waiting"),
        note=cell.note,
        episodes=sum(not episode.failed for episode in cell.episodes),
        turns=cell.turns,
        seconds=cell.seconds,
        onset=periods.after[0].number if periods.after else None,
        noticed=noticed,
        alarms=sum(episode.detected for episode in periods.before),
        noticed_in=None if noticed is None else periods.after[noticed].number,
        alarmed_in=next((episode.number for episode in periods.before if episode.detected), None),
        before=mean(performances(periods.before)),
        after=mean(performances(pick_after(cell))) if periods.after else None,
        unchanged=cell.trial.is_unchanged_twin,
        control=cell.control,
    )


class _Job(Generic[T]):
    """The work on one run: what came of it last, and whether a newer one is being done."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.signature: Signature | None = None
        self.found: T | OpenfieldError | None = None
        self.busy = False
        self.waits = False
        """Whether it will be begun anew after a rest."""
        self.rest_until = 0.0
        self.version = 0


class BackgroundWork(Generic[T]):
    """Something that is computed from whole runs, by one thread for each, and kept until the file changes."""

    def __init__(self, library: Library, work: Callable[[str, Result], T]) -> None:
        self._library, self._do = library, work
        self._jobs: OrderedDict[str, _Job[T]] = OrderedDict()
        self._lock = threading.Lock()

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

    def version(self, key: str) -> int:
        """Return how often a run was worked on; it changes when there is something new."""
        job = self._jobs.get(key)
        return 0 if job is None else job.version

    def _begin(self, key: str, forced: bool) -> _Job[T]:
        """Start to work anew if the file has changed, unless one is being made or it is too soon."""
        signature = self._library.sign(key)
        with self._lock:
            job = self._jobs.setdefault(key, _Job())
            self._jobs.move_to_end(key)
            while len(self._jobs) > MAX_KEPT:
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
        job.busy = False
        job.done.set()


def _analyse_run(key: str, result: Result) -> Analysis:
    return analyse(result, {cell.agent: (key, cell.agent) for cell in result.cells})


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
