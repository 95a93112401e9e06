"""The results of runs, as pages show them: the numbers and curves of each scenario, further figures, single trials.

Between `metrics.summary` and the templates; nothing here is HTML. Everything has the address of its source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from openfield.journal.reader import CellRecord
from openfield.metrics.comparison import Comparison
from openfield.metrics.metric import Number
from openfield.metrics.openset.cells import read_sample_answers
from openfield.metrics.performance import has_borders, mean, performances, pick_after, split_periods
from openfield.metrics.scenario import CurriculumResults, Key, Scenario, group_cells, scenario_of
from openfield.metrics.selection import pick_numbers, shows_all
from openfield.metrics.summary import AgentResults, Failure, Summary, count_outcomes
from openfield.parameters import shorten_agents
from openfield.report.addresses import (
    compare_address,
    name_novelty,
    name_scenario,
    number_address,
    trial_address,
    trials_address,
)
from openfield.report.figures import TrialLinks
from openfield.report.figures.curriculum import AgentTasks, trace_tasks
from openfield.report.figures.curves import AgentCurves, choose_colours, trace_agent
from openfield.report.figures.openset import SampleFigures, trace_samples
from openfield.report.findings import write_findings
from openfield.report.matrix import Matrix, make_campaign_matrix
from openfield.report.words import (
    Domains,
    count_failed,
    describe_novelty,
    describe_onset,
    describe_terms,
    explain_reading,
    group_scenarios,
    name_number,
    pick_comparisons,
    rank_agents,
    split_controls,
    title_domain,
)

PERFORMANCE = ("after", "before", "success", "oscr", "auroc")
"""Numbers from 0 to 1 that say how well an agent did; the first that it has is shown at a glance."""
NOTICED = ("concordance", "correct", "borders_found")
"""Numbers from 0 to 1 that say whether it noticed the change."""
GLANCED = {"p": PERFORMANCE, "b": NOTICED}

Homes = Mapping[str, tuple[str, str]]
"""Agent -> the key of the run in which it played, and its name there."""


class ScenarioAnalysis(msgspec.Struct, frozen=True):
    """The results of one scenario: a domain, its novelty, and its terms."""

    id: str
    """Names it on a page."""
    novelty: str
    """The name of its novelty in addresses."""
    scenario: Scenario
    title: str
    change: str
    """What changes, in words."""
    terms: list[str]
    findings: list[str]
    """Its results, in sentences."""
    found_in: list[str]
    """For each of these sentences, the address of the source of its numbers."""
    groups: list[AgentResults]
    """The agents, the best first."""
    controls: list[AgentResults]
    names: dict[str, str]
    """Agent -> its name here, where there is little room."""
    curves: list[AgentCurves]
    """In the same order, controls last."""
    comparisons: list[Comparison]
    note: str
    """How the comparisons are read."""
    headline: list[Number]
    """The numbers that are shown first."""
    numbers: list[Number]
    """The numbers that are defined, in the words of this scenario."""
    sources: dict[str, dict[str, str]]
    """Agent -> number -> the address of the trials that it was made of."""
    has_figures: bool
    """Whether there are further figures: of samples, of the domain or of a curriculum."""
    compared: list[str]
    """For each comparison, the address where it is shown trial by trial."""
    played: dict[str, str]
    """Agent -> the address of its trials in this scenario."""

    @property
    def unit(self) -> str:
        """What its curves count from the onset."""
        return self.curves[0].unit if self.curves else "episode"

    @property
    def has_onset(self) -> bool:
        """Whether the world changes in it."""
        return any(each.onset for each in self.curves)

    def list_numbers(self, groups: Sequence[AgentResults]) -> list[Number]:
        """Return the numbers that some of these agents have."""
        return [number for number in self.numbers if any(number.name in group.estimates for group in groups)]

    def glance(self, agent: str) -> list[tuple[str, Number]]:
        """Return how well an agent did (`p`) and whether it noticed the change (`b`), as far as it has such numbers."""
        known = {number.name: number for number in self.numbers}
        own = {group.agent: group.estimates for group in self.groups}.get(agent, {})
        valued = [name for name in own if own[name].mean is not None and name in known]
        first = ((kind, next((name for name in names if name in valued), "")) for kind, names in GLANCED.items())
        return [(kind, known[name]) for kind, name in first if name]


class Noticing(NamedTuple):
    """Whether an agent noticed the change of a trial, by the numbers of episodes of its test."""

    onset: int | None
    """The first episode in the changed world; None if nothing changed so far."""
    detection: int | None
    """The first episode from the onset on with a detection."""
    delay: int | None
    """Episodes from the onset to the detection."""
    alarms: list[int]
    """The episodes with a detection before; where only tasks change, a belief is not an alarm."""


def judge_noticing(cell: CellRecord) -> Noticing:
    """Return whether the agent of a cell noticed the change, and its false alarms."""
    periods = split_periods(cell)
    before, after = periods.before, periods.after
    delay, detection = next(((at, each.number) for at, each in enumerate(after) if each.detected), (None, None))
    alarms = [each.number for each in before if each.detected and not has_borders(cell.trial)]
    return Noticing(after[0].number if after else None, detection, delay, alarms)


class TrialScore(msgspec.Struct, frozen=True):
    """The results of one trial that an agent played."""

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
    """Detections in the test before the onset; where only tasks change, a belief is not an alarm."""
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
    """How many cells of agents other than controls were not played to their end."""
    trials: list[TrialScore]
    episodes: int
    turns: int
    cautions: list[str]
    reading: str
    """How numbers are read."""
    totals: list[AgentResults]
    """Agents over all their scenarios of a domain, if these are several."""
    total_numbers: list[Number]
    """The numbers that are shown of them."""
    is_full: bool = False
    """Whether all numbers were asked for."""
    matrix: Matrix | None = None
    """Agents and domains in one table, if they share several domains."""


class ScenarioFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Further figures of one scenario."""

    id: str
    title: str
    change: str
    samples: SampleFigures | None
    """Those of samples, if it has some."""
    tasks: list[AgentTasks]
    """The tasks of its agents, if they play a curriculum."""


def analyse(
    cells: Sequence[CellRecord], summary: Summary, domains: Domains, homes: Homes, cautions: Sequence[str] = ()
) -> Analysis:
    """Return the results of cells that count.

    Args:
        cells: The cells.
        summary: Their numbers.
        domains: The domains that give titles and words for novelties; a missing one is shown by name.
        homes: Where the agents played.
        cautions: Cautions for readers of the numbers.
    """
    trials = [_score(cell, homes) for cell in cells if not cell.dropped]
    return Analysis(
        scenarios=list(_analyse_scenarios(summary, group_cells(cells), domains, homes)),
        outcomes={agent: count_outcomes(c for c in cells if c.agent == agent) for agent in _list_agents(cells)},
        failures=summary.failures,
        failed=count_failed({name: count for name, count in summary.outcomes.items() if name != "unfinished"}),
        trials=trials,
        episodes=sum(trial.episodes for trial in trials),
        turns=sum(trial.turns for trial in trials),
        cautions=list(cautions),
        reading=explain_reading(summary),
        totals=list(summary.totals),
        total_numbers=_list_total_numbers(summary),
        is_full=shows_all(summary),
        matrix=make_campaign_matrix(summary, domains),
    )


def trace_figures(
    cells: Sequence[CellRecord], summary: Summary, domains: Domains, run: str = "", baseline: str | None = None
) -> list[ScenarioFigures]:
    """Return the further figures of all scenarios that have some.

    Args:
        cells: The cells that count.
        summary: Their numbers.
        domains: Their domains.
        run: The key of the run, for addresses.
        baseline: The agent that others are compared with, if one was named.
    """
    members, links = group_cells(cells), TrialLinks(run, cells)
    found = []
    for scenario, groups in group_scenarios(summary):
        played = {
            group.agent: [cell for cell in members[scenario, group.agent] if cell.is_scored and cell.episodes]
            for group in groups
            if not group.control
        }
        figures = ScenarioFigures(
            id=name_scenario(scenario),
            title=title_domain(scenario, domains),
            change=describe_novelty(scenario, domains),
            samples=trace_samples(played, links, baseline),
            tasks=[trace_tasks(one, members, cells, links) for one in list_curricula(summary, scenario)],
        )
        if figures.samples or figures.tasks:
            found.append(figures)
    return found


def list_curricula(summary: Summary, scenario: Scenario) -> list[CurriculumResults]:
    """Return the tasks of the agents in a scenario that play a curriculum; controls are left out."""
    return [one for one in summary.curricula if one.scenario == scenario and not one.control]


def _list_agents(cells: Iterable[CellRecord]) -> list[str]:
    agents = {cell.agent: cell.control for cell in cells}
    return sorted(agents, key=lambda agent: (agents[agent], agent))


def _analyse_scenarios(
    summary: Summary, members: Mapping[Key, Sequence[CellRecord]], domains: Domains, homes: Homes
) -> Iterator[ScenarioAnalysis]:
    names, colours = shorten_agents(homes), choose_colours(homes)
    for scenario, found in group_scenarios(summary):
        agents, controls = split_controls(sorted(found, key=lambda group: group.agent))
        groups = [*(rank_agents(agents, summary.comparisons) if agents else ()), *controls]
        shown = [number for number in summary.numbers if any(number.name in group.estimates for group in groups)]
        comparisons, note = pick_comparisons(summary.comparisons, groups)
        pairs = [one for one in summary.comparisons if one.scenario == scenario]
        traced = [
            trace_agent(agent, names[agent], members[scenario, agent], homes[agent][0], colours[agent])
            for agent in (group.agent for group in groups)
        ]
        name = name_scenario(scenario)
        findings = write_findings(groups[: len(agents)], pairs, names)
        yield ScenarioAnalysis(
            id=name,
            novelty=name_novelty(scenario.domain, scenario.novelty),
            scenario=scenario,
            title=title_domain(scenario, domains),
            change=describe_novelty(scenario, domains),
            terms=[text for text in (describe_terms(scenario), describe_onset(groups)) if text],
            findings=[finding.text for finding in findings],
            found_in=[number_address(*homes[finding.agent], finding.number, name) for finding in findings],
            groups=groups[: len(agents)],
            controls=controls,
            names={group.agent: names[group.agent] for group in groups},
            curves=[each for each in traced if each is not None],
            comparisons=comparisons,
            note=note,
            headline=[_rename(number, scenario) for number in pick_numbers(summary, groups)],
            numbers=[_rename(number, scenario) for number in shown],
            sources={
                group.agent: {number.name: number_address(*homes[group.agent], number.name, name) for number in shown}
                for group in groups
            },
            has_figures=_has_figures(summary, scenario, [members[scenario, group.agent] for group in groups], domains),
            compared=[_locate_comparison(one, homes, name) for one in comparisons],
            played={group.agent: _locate_trials(*homes[group.agent], name) for group in groups},
        )


def _has_figures(
    summary: Summary, scenario: Scenario, members: Iterable[Sequence[CellRecord]], domains: Domains
) -> bool:
    """Return whether the page of figures has something about a scenario."""
    if list_curricula(summary, scenario):
        return True
    scored = (next((cell for cell in cells if cell.is_scored and cell.episodes), None) for cells in members)
    return any(cell is not None and read_sample_answers(cell) is not None for cell in scored)


def _locate_comparison(one: Comparison, homes: Homes, scenario: str) -> str:
    """Return where a comparison is shown trial by trial."""
    runs = dict.fromkeys(run for run, _ in homes.values())
    address = compare_address(runs, (one.first, one.second))
    return address and f"{address}#{scenario}"


def _locate_trials(run: str, agent: str, scenario: str) -> str:
    """Return where the trials of an agent in a scenario are listed."""
    return trials_address(run, agent=agent, scenario=scenario)


def _list_total_numbers(summary: Summary) -> list[Number]:
    """Return the numbers over all scenarios; they name no onset if nothing changes in any of them."""
    scenarios = sorted((group.scenario for group in summary.totals), key=lambda scenario: not scenario.novelty)
    return [_rename(number, scenarios[0]) for number in pick_numbers(summary, summary.totals)]


def _rename(number: Number, scenario: Scenario) -> Number:
    title, note = name_number(number, scenario)
    return (
        number
        if (title, note) == (number.title, number.note)
        else msgspec.structs.replace(number, title=title, note=note)
    )


def _score(cell: CellRecord, homes: Homes) -> TrialScore:
    found = judge_noticing(cell)
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
        onset=found.onset,
        noticed=found.delay,
        alarms=len(found.alarms),
        noticed_in=found.detection,
        alarmed_in=found.alarms[0] if found.alarms else None,
        before=mean(performances(split_periods(cell).before)),
        after=mean(performances(pick_after(cell))) if found.onset is not None else None,
        unchanged=cell.trial.is_unchanged_twin,
        control=cell.control,
    )
