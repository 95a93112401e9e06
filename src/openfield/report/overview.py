"""The start of the report page: all agents in all scenarios at a glance, with links to the sections below.

Stands in report: summary -> overview -> page.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from openfield.metrics.scenario import Scenario
from openfield.metrics.stats import MIN_TRIALS, Estimate
from openfield.metrics.summary import AgentResults, Summary
from openfield.report import words
from openfield.report.words import Domains

PERFORMANCE = ("after", "before", "success", "oscr", "auroc")
"""Numbers from 0 to 1 that say how well an agent did; the first that it has is shown."""
NOTICED = ("concordance", "correct", "borders_found")
"""Numbers from 0 to 1 that say whether it noticed the change."""
READING = (
    "Blue: performance, after the onset where there is one. Orange: whether the agent noticed the change (concordance, "
    "where 0.5 is chance, else correct detection, else the share of task borders found). A bar reaches from 0 to 1."
)


class DomainFilm(NamedTuple):
    """A film of one domain."""

    domain: str
    caption: str
    """Which agent, trial and episode it shows."""
    data: bytes
    """A WebP file."""


Grouped = Sequence[tuple[Scenario, Sequence[AgentResults]]]


def name_section(number: int) -> str:
    """Return the name that links to the section of a scenario have."""
    return f"scenario-{number}"


def draw_overview(scenarios: Grouped, domains: Domains, drawn: int) -> str:
    """Draw scenarios down and agents across; of each agent its performance and whether it noticed the change.

    Args:
        scenarios: The scenarios with the results of their agents.
        domains: The domains that give titles and words.
        drawn: How many scenarios have a section to link to.
    """
    agents = _list_agents(scenarios)
    if not agents:
        return ""
    head = "".join(f"<th scope=col>{escape(agent)}</th>" for agent in agents)
    rows = "".join(
        f"<tr><th scope=row>{_name(scenario, number, domains, number < drawn)}</th>"
        + "".join(_draw_agent(groups, agent) for agent in agents)
        + "</tr>"
        for number, (scenario, groups) in enumerate(scenarios)
    )
    table = f"<table><thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return (
        f'<section id="overview"><h2>At a glance</h2><p class="terms">{READING}</p>'
        f'<div class="wide glance" tabindex="0" role="region" aria-label="At a glance">{table}</div></section>'
    )


def draw_contents(scenarios: Grouped, drawn: int, below: Iterable[tuple[str, str]] = ()) -> str:
    """Draw links to the sections.

    Args:
        scenarios: The scenarios.
        drawn: How many of them have a section.
        below: The names and titles of further sections.
    """
    links = [("overview", "At a glance")] if _list_agents(scenarios) else []
    links += [
        (name_section(number), f"{scenario.domain}: {_say_change(scenario)}")
        for number, (scenario, _) in enumerate(scenarios[:drawn])
    ]
    items = "".join(f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title in (*links, *below))
    return f'<nav class="contents" aria-label="Contents"><ul>{items}</ul></nav>' if len(links) > 1 else ""


def draw_films(films: Sequence[DomainFilm]) -> str:
    """Draw a film of each domain. They are folded, so that nothing moves unasked."""
    if not films:
        return ""
    figures = "".join(
        f"<figure><figcaption><b>{escape(film.domain)}</b> <small>{escape(film.caption)}</small></figcaption>"
        f'<details><summary>Show the film</summary><img alt="{escape(film.caption)}" '
        f'src="data:image/webp;base64,{base64.b64encode(film.data).decode()}"/></details></figure>'
        for film in films
    )
    return f'<section id="films"><h2>Films</h2><div class="films">{figures}</div></section>'


def group_scenarios(summary: Summary) -> list[tuple[Scenario, list[AgentResults]]]:
    """Return the scenarios of a summary with the results of their agents, in order."""
    found: dict[Scenario, list[AgentResults]] = {}
    for group in summary.groups:
        found.setdefault(group.scenario, []).append(group)
    return list(found.items())


def _list_agents(scenarios: Grouped) -> list[str]:
    """Return the agents that are no controls, in the order they appear."""
    found = (group.agent for _, groups in scenarios for group in groups if not group.control)
    return list(dict.fromkeys(found))


def _say_change(scenario: Scenario) -> str:
    """Return what changes by its name, and whether agents are told."""
    return (" + ".join(scenario.novelty) or "no novelty") + (", red light" if scenario.red_light else "")


def _name(scenario: Scenario, number: int, domains: Domains, linked: bool) -> str:
    """Return the scenario in two lines: the domain, and what changes in it."""
    title = escape(words.title_domain(scenario, domains))
    title = f'<a href="#{name_section(number)}">{title}</a>' if linked else title
    return f"{title}<small>{escape(_say_change(scenario))}</small>"


def _draw_agent(groups: Sequence[AgentResults], agent: str) -> str:
    group = next((each for each in groups if each.agent == agent), None)
    if group is None:
        return '<td class="soft">–</td>'
    performance, noticed = (_pick(group, names) for names in (PERFORMANCE, NOTICED))
    return f"<td>{_draw_bar(performance, 'at')}{_draw_bar(noticed, 'by')}</td>"


def _pick(group: AgentResults, names: Iterable[str]) -> Estimate | None:
    known = (group.estimates[name] for name in names if name in group.estimates)
    return next((estimate for estimate in known if estimate.mean is not None), None)


def _draw_bar(estimate: Estimate | None, kind: str) -> str:
    if estimate is None or estimate.mean is None:
        return ""
    share = round(min(max(estimate.mean, 0.0), 1.0), 3)
    few = "" if estimate.n >= MIN_TRIALS else estimate.interval.lstrip(", ")  # which says how many trials there are
    note = f"<small>{escape(few)}</small>" if few else ""
    return f'<span class="bar {kind}">{escape(estimate.figure)}<i style="--b:{share}"></i>{note}</span>'
