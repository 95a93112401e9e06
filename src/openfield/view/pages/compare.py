"""Agents compared over runs: paired differences, the same plots overlaid, and what differs between the runs."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request

from openfield.errors import InvalidInput, UnknownName
from openfield.journal.reader import CellRecord
from openfield.metrics.comparison import Comparison
from openfield.metrics.scenario import group_cells
from openfield.metrics.summary import score_trials
from openfield.report.addresses import agent_address, trial_address
from openfield.report.analysis import Analysis, ScenarioAnalysis, analyse
from openfield.report.run_list import RunEntry
from openfield.report.words import describe_basis, describe_provenance, format_corrected
from openfield.result import Result
from openfield.settings import write_settings
from openfield.view.library import Library, Signature
from openfield.view.page import library_of, page

MAX_RUNS = 12
"""How many runs are compared at once."""
MAX_KEPT = 4


class ComparedAgent(msgspec.Struct, frozen=True):
    """An agent of one of the runs."""

    label: str
    """Its name, with that of the run if others have the same."""
    agent: str
    run: str
    chosen: bool


class TrialDifference(msgspec.Struct, frozen=True):
    """How much better the first of two agents did in a trial that both played."""

    trial: str
    difference: float
    first: float
    second: float
    """Their performances, over all repeats."""
    first_address: str
    second_address: str
    """Where each of them played it; the first repeat."""
    both_address: str
    """Where both are seen side by side, if they are in one run."""


class PairedComparison(msgspec.Struct, frozen=True):
    """Two agents, over all trials and one by one."""

    comparison: Comparison
    basis: str
    p: str
    differences: list[TrialDifference]

    @property
    def dots(self) -> list[tuple[float, str, str]]:
        """Each difference with its trial and where it is seen, for a drawing."""
        return [(each.difference, each.trial, each.both_address or each.first_address) for each in self.differences]


class CompareScenario(msgspec.Struct, frozen=True):
    """A scenario that agents of the runs met."""

    analysis: ScenarioAnalysis
    pairs: list[PairedComparison]


class RunDifference(msgspec.Struct, frozen=True):
    """Something that runs do not have in common."""

    title: str
    values: list[str]
    """One for each run; empty where a run does not say."""


class ComparePage(msgspec.Struct, frozen=True):
    """What a comparison shows."""

    runs: list[RunEntry]
    others: list[RunEntry]
    """Further runs that can be added."""
    agents: list[ComparedAgent]
    scenarios: list[CompareScenario]
    differences: list[RunDifference]
    same: int
    """How many things were compared and are the same."""

    @property
    def places(self) -> dict[str, str]:
        """The addresses of the agents, by label."""
        return {each.label: agent_address(each.run, each.agent) for each in self.agents}


class _Joined(msgspec.Struct, frozen=True):
    result: Result
    analysis: Analysis
    cells: dict[str, list[CellRecord]]
    """Scenario and agent -> cells."""
    homes: dict[str, tuple[str, str]]
    """Label -> run and agent."""


def read_comparison(request: Request) -> ComparePage:
    """Return a comparison of the runs `run` of the query, of all agents or only of those named by `agent`."""
    library, query = library_of(request), request.query_params
    keys = list(dict.fromkeys(query.getlist("run")))
    if len(keys) > MAX_RUNS:
        raise InvalidInput(f"At most {MAX_RUNS} runs are compared at once, not {len(keys)}.")
    runs = [library.entry(key) for key in keys]
    others = [run for run in library.entries() if run.key not in keys and not run.summary.problem]
    agents = list(label_agents(runs, query.getlist("agent")))
    if not runs:
        return ComparePage(runs, others, agents, [], [], 0)
    joined = _join(library, tuple(keys), tuple(agents))
    scenarios = [
        CompareScenario(each, [_pair(one, joined, each.id) for one in each.comparisons])
        for each in joined.analysis.scenarios
    ]
    facts = [dict(_list_facts(library.result(key))) for key in keys]
    shared = Counter(title for each in facts for title in each)
    titles = [title for title in shared if shared[title] > 1 or not title.startswith("Agent ")]
    rows = [RunDifference(title, [each.get(title, "") for each in facts]) for title in titles]
    differing = [row for row in rows if len(set(row.values)) > 1]
    return ComparePage(runs, others, agents, scenarios, differing, len(rows) - len(differing))


def label_agents(runs: Sequence[RunEntry], wanted: Sequence[str]) -> Iterator[ComparedAgent]:
    """Yield the agents of runs, with different labels where several runs have the same name.

    Raises:
        UnknownName: A wanted agent is not among them.
    """
    count = Counter(agent for run in runs for agent in run.summary.agents)
    twice = Counter(run.name for run in runs)
    known = []
    for run in runs:
        name = run.name if twice[run.name] == 1 else run.key
        for agent in run.summary.agents:
            label = agent if count[agent] == 1 else f"{agent} · {name}"
            known.append(ComparedAgent(label, agent, run.key, not wanted or label in wanted))
    labels = [each.label for each in known]
    for label in wanted:
        if label not in labels:
            raise UnknownName("agent", label, labels, label="In these runs")
    yield from known


_kept: OrderedDict[tuple[object, ...], _Joined] = OrderedDict()
_lock = threading.Lock()


def _join(library: Library, keys: tuple[str, ...], agents: tuple[ComparedAgent, ...]) -> _Joined:
    """Return runs as one with the chosen agents, by their labels; kept until a file changes."""
    signatures: tuple[Signature, ...] = tuple(library.sign(key) for key in keys)
    named = (*library.places, keys, signatures, agents)
    with _lock:
        if named not in _kept:
            _kept[named] = _analyse({key: library.result(key) for key in keys}, agents)
            while len(_kept) > MAX_KEPT:
                _kept.popitem(last=False)
        return _kept[named]


def _analyse(results: Mapping[str, Result], agents: Sequence[ComparedAgent]) -> _Joined:
    joined = Result([])
    for key, result in results.items():
        labels = {each.agent: each.label for each in agents if each.run == key and each.chosen}
        joined.domains |= result.domains
        joined.cells += [
            msgspec.structs.replace(cell, agent=labels[cell.agent]) for cell in result.cells if cell.agent in labels
        ]
    homes = {each.label: (each.run, each.agent) for each in agents}
    analysis = analyse(joined.counted(), joined.summary(), joined.domains, homes)
    names = {(each.scenario, group.agent): each.id for each in analysis.scenarios for group in each.groups}
    cells = {
        f"{names[scenario, agent]} {agent}": found
        for (scenario, agent), found in group_cells(joined.counted()).items()
        if (scenario, agent) in names
    }
    return _Joined(joined, analysis, cells, homes)


def _pair(one: Comparison, joined: _Joined, scenario: str) -> PairedComparison:
    cells = [joined.cells.get(f"{scenario} {agent}", []) for agent in (one.first, one.second)]
    first, second = map(score_trials, cells)
    homes = [{cell.trial.id: (joined.homes[cell.agent][0], cell.id) for cell in reversed(found)} for found in cells]
    differences = []
    for trial in sorted(first.keys() & second.keys(), key=lambda trial: (first[trial] - second[trial], trial)):
        (run, cell), (other_run, other) = (home[trial] for home in homes)
        both = f"{trial_address(run, cell)}?{urlencode({'with': other})}" if run == other_run else ""
        places = trial_address(run, cell), trial_address(other_run, other), both
        gap = first[trial] - second[trial]
        differences.append(TrialDifference(trial, gap, first[trial], second[trial], *places))
    return PairedComparison(one, describe_basis(one), format_corrected(one), differences)


def _list_facts(result: Result) -> Iterator[tuple[str, str]]:
    """Yield what is known of how a run was made, by title."""
    trials = {cell.trial.id: cell.trial for cell in result.cells}.values()
    for domain in sorted({trial.domain for trial in trials}):
        own = [trial for trial in trials if trial.domain == domain]
        yield f"{domain}: version", ", ".join(sorted({str(trial.version) for trial in own}))
        yield f"{domain}: novelties", ", ".join(sorted({"+".join(trial.novelty) or "none" for trial in own}))
        yield f"{domain}: trials", str(len(own))
        yield f"{domain}: agents are told", ", ".join(sorted({"yes" if trial.red_light else "no" for trial in own}))
        chosen = [dict(text.partition("=")[::2] for text in write_settings(trial.settings)) for trial in own]
        for name in sorted({name for each in chosen for name in each}):
            values = {each.get(name, "the default") for each in chosen}
            yield f"{domain}: setting {name}", ", ".join(sorted(values))
    for provenance in result.provenance[-1:]:
        yield from describe_provenance(msgspec.structs.replace(provenance, versions={}, agents={})).items()
        for name, version in provenance.versions.items():
            yield f"Version of {name}", version
    for provenance in result.provenance:
        for domain, agents in provenance.agents.items():
            for name, found in agents.items():
                yield f"Agent {name} in {domain}", found.fingerprint


ROUTES = page("/compare", "compare.html", read_comparison)
