"""An agent in a run: its numbers in every scenario, and the trials that they were made of."""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from openfield.errors import UnknownName
from openfield.metrics.metric import Number
from openfield.provenance.people import read_person_answers
from openfield.report.addresses import read_name
from openfield.report.analysis import ScenarioAnalysis, TrialScore
from openfield.report.figures.curves import Curve
from openfield.report.run_list import RunEntry
from openfield.view.page import analyses_of, library_of, page
from openfield.view.pages.trials import sort_trials, trace_trials

MAX_TRIALS = 200
"""How many trials of a scenario a page lists."""


class AgentScenario(msgspec.Struct, frozen=True):
    """An agent in one scenario."""

    scenario: ScenarioAnalysis
    """With this agent alone."""
    number: Number | None
    """The number that is shown trial by trial."""
    values: dict[str, float | None]
    """Its values, by cell."""
    trials: list[TrialScore]
    curves: dict[str, Curve]
    """Cell -> its episodes."""
    left_out: int
    """How many trials are not listed."""


class PersonRecord(msgspec.Struct, frozen=True):
    """What is known of one person."""

    name: str
    answers: dict[str, str]
    """What the person answered to the questions of the study, by the name of the question."""


class AgentPage(msgspec.Struct, frozen=True):
    """What the page of an agent shows."""

    run: RunEntry
    agent: str
    source: str | None
    control: bool
    scenarios: list[AgentScenario]
    people: list[str]
    """The people that the agent stands for; none for programs."""
    person: PersonRecord | None
    """The person whose trials are listed; None lists all trials."""


def read_agent_page(request: Request) -> AgentPage:
    """Return what the page of an agent shows.

    In the query `number` chooses the number shown trial by trial, and `person` one of the people that the agent is.
    """
    library, key = library_of(request), request.path_params["run"]
    agent, wanted = read_name(request.path_params["agent"]), request.query_params.get("number", "")
    entry = library.entry(key)
    analysis = analyses_of(request).get(key, None)
    if analysis is None or agent not in analysis.outcomes:
        raise UnknownName("agent", agent, analysis.outcomes if analysis else (), label="In this run")
    values = analyses_of(request).values(key)
    scenarios = []
    played = [trial for trial in analysis.trials if trial.agent == agent]
    people, person = sorted({trial.person for trial in played} - {""}), request.query_params.get("person")
    if person is not None and person not in people:
        raise UnknownName("person", person, people, label="In this study")
    for each in analysis.scenarios:
        trials = [trial for trial in played if trial.scenario == each.id and person in (None, trial.person)]
        if trials:
            number = next((number for number in each.numbers if number.name == wanted), None)
            found = {trial.cell: values.get(trial.cell, {}).get(number.name) for trial in trials} if number else {}
            shown = sort_trials(trials, "")[:MAX_TRIALS]
            curves, left_out = trace_trials(request, key, shown), len(trials) - len(shown)
            scenarios.append(AgentScenario(_only(each, agent), number, found, shown, curves, left_out))
    with library.open(key) as run:
        source = run.agents.get(agent)
        known = person and PersonRecord(person, read_person_answers(run, agent, person))
    return AgentPage(entry, agent, source, any(trial.control for trial in played), scenarios, people, known or None)


def _only(scenario: ScenarioAnalysis, agent: str) -> ScenarioAnalysis:
    """Return a scenario with one of its agents."""
    return msgspec.structs.replace(
        scenario,
        groups=[group for group in (*scenario.groups, *scenario.controls) if group.agent == agent],
        controls=[],
        curves=[curve for curve in scenario.curves if curve.agent == agent],
        comparisons=[one for one in scenario.comparisons if agent in (one.first, one.second)],
        compared=[
            place
            for one, place in zip(scenario.comparisons, scenario.compared, strict=True)
            if agent in (one.first, one.second)
        ],
        sources={agent: scenario.sources[agent]},
    )


ROUTES = page("/runs/{run}/agents/{agent}", "agent.html", read_agent_page)
