"""Objectives without reward, stage by stage: what agents did in training, before the onset and after it.

Makes of the record that `report.objectives` writes of runs what pages show: plots, and a table for each agent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec

from openfield.metrics.scenario import Scenario
from openfield.metrics.summary import Summary
from openfield.parameters import shorten_agents
from openfield.report.addresses import name_scenario, trials_address
from openfield.report.figures import IntervalPlot, Mark
from openfield.report.objectives import EQUAL_NOTE, explain_missing_excess, table_rows, title_group
from openfield.report.words import group_scenarios, rank_agents, split_controls

PLOTTED = {
    "input_entropy": "Input entropy",
    "info_gain_dirichlet": "Information gain (Dirichlet)",
    "info_gain_sqrt_counts": "Information gain (square root of counts)",
    "info_gain_log_counts": "Information gain (log of counts)",
    "empowerment": "Empowerment: plug-in value, and grey the 95 % of its permutation null",
}
STAGES = ("training", "before", "after")
LABELS = {"training": "training", "before": "before the onset", "after": "after the onset"}
MAX_AGENTS = 6
"""Agents that a plot shows; tables show all."""


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
    """What cannot be computed, and why."""


class ScenarioObjectives(msgspec.Struct, frozen=True):
    """The objectives of all agents in a scenario: controls last."""

    id: str
    title: str
    agents: list[AgentStages]
    plots: list[IntervalPlot]

    @property
    def names(self) -> dict[str, str]:
        """Agent -> its name where there is little room."""
        return shorten_agents(each.agent for each in self.agents)

    @property
    def sources(self) -> dict[str, str]:
        """Agent -> the address of the trials that its numbers were made of."""
        return {each.agent: each.address for each in self.agents}


class StageFigures(msgspec.Struct, frozen=True):
    """The objectives of a run."""

    record: dict[str, Any]
    """As `openfield report --objectives --json` prints them."""
    scenarios: list[ScenarioObjectives]
    note: str = EQUAL_NOTE
    """How numbers are compared."""

    @property
    def errors(self) -> list[str]:
        """Why some runs have none, in sentences."""
        return [run["error"] for run in self.record["runs"] if "error" in run]


def arrange_objectives(record: dict[str, Any], summary: Summary, run: str = "") -> StageFigures:
    """Return the objectives of a run, its scenarios and agents in the order of the page of the run.

    Args:
        record: The objectives, as `Result.objectives` returns them.
        summary: The numbers of the run, by which agents are ranked.
        run: The key of the run, for the addresses of trials.
    """
    ranked: dict[Scenario, list[tuple[str, bool]]] = {}
    for scenario, groups in group_scenarios(summary):
        agents, controls = split_controls(groups)
        best = rank_agents(agents, summary.comparisons) if agents else []
        ranked[msgspec.structs.replace(scenario, loose=False)] = [  # objectives are recorded without it
            (group.agent, group.control) for group in (*best, *controls)
        ]
    blocks = groupby(sorted(record["groups"], key=_find_scenario), _find_scenario)
    scenarios = [_arrange(run, scenario, list(groups), ranked.get(scenario, [])) for scenario, groups in blocks]
    return StageFigures(record, scenarios)


def _find_scenario(group: Mapping[str, Any]) -> Scenario:
    novelty = tuple(group["novelty"].split("+")) if group["novelty"] else ()
    return Scenario(group["domain"], novelty, group["red_light"], group["settings"])


def _arrange(
    run: str, scenario: Scenario, groups: Sequence[dict[str, Any]], ranked: Sequence[tuple[str, bool]]
) -> ScenarioObjectives:
    """Return the objectives of a scenario; agents that are not ranked come last.

    Args:
        run: The key of the run.
        scenario: The scenario.
        groups: The record of each agent at each stage.
        ranked: The agents of the scenario, the best first, and whether they are controls.
    """
    name, controls = name_scenario(scenario), {agent for agent, control in ranked if control}
    played = list(dict.fromkeys(group["agent"] for group in groups))
    order = [agent for agent, _ in ranked if agent in played]
    order += [agent for agent in played if agent not in order]
    agents = [
        AgentStages(
            agent=agent,
            control=agent in controls,
            address=trials_address(run, agent=agent, scenario=name),
            stages=[LABELS[stage["stage"]] for stage in own],
            rows=list(table_rows(own)),
            notes=list(_list_notes(own)),
        )
        for agent in order
        if (own := [group for group in groups if group["agent"] == agent])
    ]
    title = title_group(groups[0]).partition(", ")[2]
    plotted = [agent for agent in order if agent not in controls] or order
    return ScenarioObjectives(name, title, agents, list(_list_plots(groups, plotted[:MAX_AGENTS])))


def _list_notes(stages: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield from (f"{stage['stage']}: {stage['saturation']}" for stage in stages if stage["saturation"])
    yield from explain_missing_excess(stages)


def _list_plots(groups: Sequence[Mapping[str, Any]], agents: list[str]) -> Iterator[IntervalPlot]:
    """Yield the plots of a scenario: of every objective that has a value."""
    for name, title in PLOTTED.items():
        marks = [mark for group in groups if group["agent"] in agents for mark in _find_marks(name, group)]
        if marks:
            equal = any(group["equal"] for group in groups) and name != "empowerment"
            unit = next((group["units"].get(name) for group in groups), None)
            over = "at equal numbers of transitions" if equal else "of all transitions"
            places = [LABELS[stage] for stage in STAGES if any(mark.place == LABELS[stage] for mark in marks)]
            yield IntervalPlot(
                title=title,
                unit=f"in {unit}, {over}" if unit else over,
                marks=marks,
                agents=agents,
                places=places,
                onset=places.index(LABELS["after"]) if LABELS["after"] in places else None,
            )


def _find_marks(name: str, group: Mapping[str, Any]) -> Iterator[Mark]:
    """Yield the value of an objective, if there is one: at equal numbers of transitions where these are known."""
    value, interval, band = group["values"].get(name), group["intervals"].get(name), None
    if name == "empowerment" and group["empowerment"]:
        band = group["empowerment"]["null_band"]
    elif group["equal"] and name in group["equal"]["values"]:
        value, interval = group["equal"]["values"][name], None
    if value is not None:
        yield Mark(LABELS[group["stage"]], group["agent"], value, interval, band)
