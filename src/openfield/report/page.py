"""The report page: one self-contained HTML file that needs no network, no script and, without films, under 300 kB.

Stands at the end of plan -> rollout -> journal -> metrics -> report. Everything that comes from outside is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import msgspec

from openfield.capabilities import HasFigures
from openfield.domain import Domain
from openfield.files.atomic import replacing
from openfield.journal.reader import CellRecord
from openfield.journal.rules import DomainRules
from openfield.metrics.curricula.tasks import CurriculumResults
from openfield.metrics.scenario import Key, Scenario, group_cells
from openfield.metrics.summary import AgentResults, Summary
from openfield.report import words
from openfield.report.chart import draw_curves
from openfield.report.curriculum import draw_curricula
from openfield.report.openset import draw_openset
from openfield.report.overview import draw_contents, draw_overview, group_scenarios, name_section
from openfield.report.tables import draw_comparisons, draw_outcomes, draw_results
from openfield.report.words import Domains

MAX_BYTES = 300_000
"""Bytes of a page without films."""
MAX_FACT = 40
"""Characters of a fact that stands at the top of a page; longer ones, such as fingerprints, are folded."""
BELOW = {"films": "Films", "objectives": "Objectives without reward", "made": "How it was made"}
"""The sections below those of the scenarios."""


class Detail(msgspec.Struct, frozen=True):
    """How much of a run a page shows."""

    faint: int
    """Faint lines in a panel."""
    single: int
    """Single trials under a panel."""
    scenarios: int = 10_000
    charts: bool = True
    figures: bool = True
    """Show the figures of samples and of domains."""


DETAILS = (
    Detail(40, 24),
    Detail(24, 12),
    Detail(12, 6),
    Detail(8, 3),
    Detail(4, 0),
    Detail(4, 0, figures=False),
    Detail(0, 0, charts=False, figures=False),
    *(Detail(0, 0, scenarios, charts=False, figures=False) for scenarios in (120, 80, 50, 30, 20, 12, 8, 4, 2, 1)),
)
"""From rich to poor; a page takes the first that fits its size."""


def write_page(path: Path, page: str) -> None:
    """Write a page to a file, which appears whole or not at all."""
    with replacing(path) as draft:
        draft.write_text(page, encoding="utf-8")


def render_page(
    title: str,
    cells: Sequence[CellRecord],
    domains: Domains,
    facts: Mapping[str, str],
    summary: Summary,
    baseline: str | None = None,
    below: Sequence[str] = (),
) -> str:
    """Return the report on these cells as HTML, with as much detail as fits.

    Args:
        title: What the page is called.
        cells: The cells of one or more runs.
        domains: The domains that give titles and words for novelties; a missing one is shown by name.
        facts: Further lines of the summary, such as the run file and the date.
        summary: The numbers of the cells.
        baseline: The agent that others are compared with, if one was named.
        below: Sections that follow those of the scenarios, as HTML.
    """
    members = group_cells(cells)
    figures = {
        "agents": str(len({cell.agent for cell in cells if not cell.control})),
        **({"controls": str(len(controls))} if (controls := {cell.agent for cell in cells if cell.control}) else {}),
        "trials": str(len({cell.trial.id for cell in cells})),
        "cells": words.say_outcomes(summary.outcomes),
        "episodes": f"{sum(len(cell.episodes) for cell in cells):,}",
    }
    films = sum(len(each) for each in below if 'id="films"' in each)
    further = [(name, title) for name, title in BELOW.items() if any(f'id="{name}"' in each for each in below)]
    for detail in DETAILS:
        contents = draw_contents(group_scenarios(summary), detail.scenarios, further)
        body = (contents, *_draw_body(summary, members, domains, detail, baseline, cells), *below)
        page = frame_page(title, figures | dict(facts), body, words.explain_reading(summary))
        if len(page.encode()) - films < MAX_BYTES:
            break
    return page


def frame_page(title: str, facts: Mapping[str, str], body: Iterable[str], reading: str) -> str:
    """Return a whole page: its title and facts in a few figures, then the sections, and how to read them."""
    files = resources.files("openfield.report")
    short = {key: value for key, value in facts.items() if len(value) <= MAX_FACT}
    more = {key: value for key, value in facts.items() if len(value) > MAX_FACT}
    folded = f"<details><summary>Fingerprints and more</summary>{_draw_facts(more)}</details>" if more else ""
    return Template(files.joinpath("page.html").read_text("utf-8")).substitute(
        title=escape(title),
        style=files.joinpath("page.css").read_text("utf-8"),
        facts=_draw_facts(short) + folded,
        body="\n".join(body),
        reading=f"<p>{escape(reading)}</p>",
    )


def _draw_facts(facts: Mapping[str, str]) -> str:
    pairs = "".join(f"<div><dt>{escape(key)}</dt><dd>{escape(value)}</dd></div>" for key, value in facts.items())
    return f'<dl class="facts">{pairs}</dl>'


def _draw_body(
    summary: Summary,
    members: Mapping[Key, Sequence[CellRecord]],
    domains: Domains,
    detail: Detail,
    baseline: str | None,
    cells: Sequence[CellRecord],
) -> Iterator[str]:
    """Yield what failed, then a section for each scenario, with the figures of samples and of its domain."""
    if words.count_failed(summary.outcomes):
        yield draw_outcomes(summary, [cell for found in members.values() for cell in found if not cell.control])
    if not summary.groups:
        yield "<p>There are no cells yet.</p>"
    scenarios = group_scenarios(summary)
    yield draw_overview(scenarios, domains, detail.scenarios)
    yield _say_omissions(len(scenarios), detail, bool(summary.curricula))
    for number, (scenario, groups) in enumerate(scenarios[: detail.scenarios]):
        agents, controls = words.split_controls(groups)
        played = {
            group.agent: [cell for cell in members[scenario, group.agent] if cell.is_scored and cell.episodes]
            for group in agents
        }
        charts = draw_curves(played, detail.faint, detail.single) if detail.charts else ""
        if detail.figures:
            charts += draw_openset(played, baseline) + draw_own(played, domains.get(scenario.domain), baseline)
        if detail.charts:
            tasks = list_curricula(summary, scenario)
            charts += draw_curricula(tasks, members, cells, detail.faint if detail.figures else 0)
        results = draw_results(summary.numbers, agents)
        rivals = draw_comparisons(*words.pick_comparisons(summary.comparisons, groups))
        below = draw_results(summary.numbers, controls, "Controls", words.CONTROLS)
        heading = _draw_heading(scenario, groups, domains)
        yield f'<section id="{name_section(number)}">{heading}{charts}{results}{rivals}{below}</section>'


def draw_own(
    played: Mapping[str, Sequence[CellRecord]], domain: Domain[Any] | DomainRules | None, baseline: str | None = None
) -> str:
    """Draw the figures that a domain brings itself, if it does.

    Args:
        played: The scored cells of each agent in a scenario.
        domain: Its domain, if it is at hand.
        baseline: The agent that others are compared with, if one was named.
    """
    return domain.draw_figures(played, baseline) if isinstance(domain, HasFigures) else ""


def list_curricula(summary: Summary, scenario: Scenario) -> list[CurriculumResults]:
    """Return the tasks of the agents in a scenario that play a curriculum; controls are left out."""
    return [one for one in summary.curricula if one.scenario == scenario and not one.control]


def _say_omissions(scenarios: int, detail: Detail, tasks: bool) -> str:
    """Name what a page of this size has no room for; panels say themselves how many trials they draw."""
    lacks = [] if detail.charts else ["the curves", *(["the tasks one by one"] if tasks else [])]
    lacks += ["the domains' own figures"] if detail.charts and not detail.figures else []
    lacks += ["the pictures of tasks"] if detail.charts and not detail.figures and tasks else []
    lacks += [f"{scenarios - detail.scenarios} of {scenarios} scenarios"] if scenarios > detail.scenarios else []
    if not lacks:
        return ""
    return f"<p>Left out to keep this page small: {' and '.join(lacks)}. report --json has every number.</p>"


def _draw_heading(scenario: Scenario, groups: Sequence[AgentResults], domains: Domains) -> str:
    """Draw the heading: the domain, its novelty in words, and the terms of its trials."""
    terms = filter(None, (words.describe_terms(scenario), words.describe_onset(groups)))
    return (
        f"<h2>{escape(words.title_domain(scenario, domains))}</h2>"
        f'<p class="novelty">{escape(_sentence(words.describe_novelty(scenario, domains)))}</p>'
        + "".join(f'<p class="terms">{escape(_sentence(text))}</p>' for text in terms)
    )


def _sentence(text: str) -> str:
    """Return a text as a sentence: with a capital and a full stop."""
    return text and text[0].upper() + text[1:].rstrip(".") + "."
