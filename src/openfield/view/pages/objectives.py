"""The objectives of a run: what its agents did, measured without reward. Computed only when this page is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec
from starlette.requests import Request

from openfield.metrics.scenario import Scenario
from openfield.metrics.summary import AgentResults
from openfield.report.objectives import EQUAL_NOTE, explain_missing, table_rows, title_group
from openfield.report.overview import group_scenarios
from openfield.report.stages import LABELS
from openfield.report.words import rank_agents, shorten_agents, split_controls
from openfield.result import Result
from openfield.view.addresses import trials_address
from openfield.view.analysis import name_scenario
from openfield.view.drawings.stage_charts import ObjectivePlot, list_plots
from openfield.view.library import RunEntry
from openfield.view.page import is_twin, library_of, objectives_of, page


class AgentStages(msgspec.Struct, frozen=True):
    """The objectives of an agent in a scenario, stage by stage."""

    agent: str
    control: bool
    address: str
    """The trials that the numbers were made of."""
    stages: list[str]
    rows: list[list[str]]
    """The title of each number, and its values at the stages as text."""
    notes: list[str]
    """What cannot be told of them, and why."""


class ScenarioObjectives(msgspec.Struct, frozen=True):
    """The objectives of all agents in a scenario: controls last."""

    id: str
    title: str
    agents: list[AgentStages]
    plots: list[ObjectivePlot]

    @property
    def names(self) -> dict[str, str]:
        """Agent -> what it is called where there is little room."""
        return shorten_agents(each.agent for each in self.agents)

    @property
    def sources(self) -> dict[str, str]:
        """Agent -> the address of the trials that its numbers were made of."""
        return {each.agent: each.address for each in self.agents}


class MeasuredObjectives(msgspec.Struct, frozen=True):
    """The objectives of a run."""

    record: dict[str, Any]
    """As `openfield report --objectives --json` prints them."""
    scenarios: list[ScenarioObjectives]


class ObjectivesPage(msgspec.Struct, frozen=True):
    """What the page of the objectives shows."""

    run: RunEntry
    objectives: dict[str, Any] | None
    """As `openfield report --objectives --json` prints them; None while they are computed."""
    scenarios: list[ScenarioObjectives]
    note: str = EQUAL_NOTE
    """How numbers are compared."""

    @property
    def errors(self) -> list[str]:
        """Why there are none, in sentences."""
        return [run["error"] for run in (self.objectives or {"runs": ()})["runs"] if "error" in run]


def read_objectives(request: Request) -> ObjectivesPage:
    """Return the objectives of a run."""
    entry = library_of(request).entry(request.path_params["run"])
    work = objectives_of(request)
    found = work.get(entry.key, None) if is_twin(request) else work.get(entry.key)
    return ObjectivesPage(entry, None, []) if found is None else ObjectivesPage(entry, found.record, found.scenarios)


def measure_objectives(key: str, result: Result) -> MeasuredObjectives:
    """Compute the objectives of a run by its key."""
    record, summary = result.objectives(), result.summary()
    ranked = {}
    for scenario, groups in group_scenarios(summary):
        agents, controls = split_controls(groups)
        ranked[scenario] = [*(rank_agents(agents, summary.comparisons) if agents else ()), *controls]
    blocks = groupby(sorted(record["groups"], key=_find_scenario), _find_scenario)
    scenarios = [_arrange(key, scenario, list(groups), ranked.get(scenario, [])) for scenario, groups in blocks]
    return MeasuredObjectives(record, scenarios)


def _find_scenario(group: Mapping[str, Any]) -> Scenario:
    novelty = tuple(group["novelty"].split("+")) if group["novelty"] else ()
    return Scenario(group["domain"], novelty, group["red_light"], group["settings"])


def _arrange(
    key: str, scenario: Scenario, groups: Sequence[dict[str, Any]], ranked: Sequence[AgentResults]
) -> ScenarioObjectives:
    """Return the objectives of a scenario, its agents in the order of the page of the run.

    Args:
        key: The key of the run.
        scenario: The scenario.
        groups: The record of each agent at each stage.
        ranked: The agents of the scenario, the best first; those that are missing come after them.
    """
    name, controls = name_scenario(scenario), {group.agent for group in ranked if group.control}
    played = list(dict.fromkeys(group["agent"] for group in groups))
    order = [group.agent for group in ranked if group.agent in played]
    order += [agent for agent in played if agent not in order]
    agents = [
        AgentStages(
            agent=agent,
            control=agent in controls,
            address=trials_address(key, agent=agent, scenario=name),
            stages=[LABELS[stage["stage"]] for stage in own],
            rows=list(table_rows(own)),
            notes=list(_list_notes(own)),
        )
        for agent in order
        if (own := [group for group in groups if group["agent"] == agent])
    ]
    title = title_group(groups[0]).partition(", ")[2]
    plotted = [agent for agent in order if agent not in controls] or order
    return ScenarioObjectives(name, title, agents, list(list_plots(groups, plotted)))


def _list_notes(stages: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield from (f"{stage['stage']}: {stage['saturation']}" for stage in stages if stage["saturation"])
    yield from explain_missing(stages)


ROUTES = page("/runs/{run}/objectives", "objectives.html", read_objectives)
