"""The page of a run as one self-contained HTML file that needs no network, no script and, without films, little room.

Stands at the end of plan -> rollout -> journal -> metrics -> report. It is the page that the viewer shows, with the
style sheet inside; what the viewer shows on pages of their own (single trials, further figures, objectives) stands on
it as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from openfield.files.atomic import replacing
from openfield.journal.reader import CellRecord
from openfield.metrics.summary import Summary
from openfield.provenance.people import PERSON
from openfield.provenance.provenance import FACT, Provenance
from openfield.provenance.remarks import join_remarks
from openfield.provenance.trust import SIGNATURE
from openfield.report.analysis import Analysis, ScenarioAnalysis, ScenarioFigures, TrialScore, analyse, trace_figures
from openfield.report.figures.stages import StageFigures, arrange_objectives
from openfield.report.film import DomainFilm
from openfield.report.render import ALL, Detail, render
from openfield.report.run_list import RunEntry, RunSummary
from openfield.report.words import MAX_COMMANDS, Domains, describe_provenance, format_outcomes
from openfield.runner.sealing import SEED_FACT

if TYPE_CHECKING:
    from openfield.result import Result

MAX_BYTES = 500_000
"""Bytes of a page without films."""
MAX_FACT = 40
"""Characters of a fact that stands at the top of a page; longer ones, such as fingerprints, stand at its end."""
HIDDEN_FACTS = ("domain ", "rules ", "session ", PERSON, FACT, SIGNATURE)
"""How facts begin that a page does not show."""
DETAILS = (
    Detail(24, 24),
    Detail(12, 12),
    Detail(8, 6),
    Detail(4, 3),
    Detail(4, 0),
    Detail(4, 0, figures=False),
    Detail(0, 0, charts=False, figures=False),
    *(Detail(0, 0, scenarios, charts=False, figures=False) for scenarios in (120, 80, 50, 30, 20, 12, 8, 4, 2, 1)),
)
"""From rich to poor; a page takes the first that fits its size."""


class RunPage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the page of a run shows."""

    run: RunEntry
    analysis: Analysis | None
    """None while it is being made."""
    provenance: list[dict[str, str]]
    facts: dict[str, str]
    counts: dict[str, str] = {}
    """Short facts that stand at the top of a page that stands alone."""
    figures: list[ScenarioFigures] = []
    """Further figures, where they have no page of their own."""
    objectives: StageFigures | None = None
    films: list[DomainFilm] = []
    earlier: int = 0
    """How many commands are left out."""
    links: dict[str, str] = {}
    """Where the rest of a published site is."""

    @property
    def is_over(self) -> bool:
        """Whether all of its cells are over."""
        return self.run.summary.played >= self.run.summary.planned

    @property
    def glanced(self) -> list[str]:
        """The agents that all scenarios are shown of at a glance: those that are not controls.

        There are none where most of the table would be empty, because each domain has agents of its own.
        """
        scenarios = self.analysis.scenarios if self.analysis else []
        played = [group.agent for each in scenarios for group in each.groups]
        agents = sorted(set(played))
        return agents if len(agents) * len(scenarios) <= 2 * len(played) else []

    @property
    def singles(self) -> dict[str, TrialScore]:
        """The trials, by cell."""
        return {trial.cell: trial for trial in self.analysis.trials} if self.analysis else {}

    def find_figures(self, scenario: ScenarioAnalysis) -> ScenarioFigures | None:
        """Return the further figures of a scenario."""
        return next((each for each in self.figures if each.id == scenario.id), None)

    def list_omissions(self, detail: Detail) -> list[str]:
        """Name the parts that a page with this detail leaves out; panels say themselves how many trials they draw."""
        scenarios = len(self.analysis.scenarios) if self.analysis else 0
        lacks = [] if detail.charts else ["the curves"]
        if not detail.figures:
            lacks += ["the figures of samples"] if any(each.samples for each in self.figures) else []
            tasks = "the pictures of tasks" if detail.charts else "the tasks one by one"
            lacks += [tasks] if any(each.tasks for each in self.figures) else []
        lacks += [f"{scenarios - detail.scenarios} of {scenarios} scenarios"] if scenarios > detail.scenarios else []
        return lacks


class ReportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a report beside the numbers of its cells."""

    facts: Mapping[str, str] = {}
    """Further facts, such as the run file and the date."""
    cautions: Sequence[str] = ()
    baseline: str | None = None
    """The agent that others are compared with, if one was named."""
    objectives: dict[str, Any] | None = None
    """What `Result.objectives` returned."""
    films: Sequence[DomainFilm] = ()
    provenance: Sequence[Provenance] = ()
    paths: Sequence[Path] = ()
    """The run files: readers may have written tags and a note beside a single one."""
    links: Mapping[str, str] = {}
    """Title -> address of what else is on a site."""


def write_page(path: Path, page: str) -> None:
    """Write a page to a file, which appears whole or not at all."""
    with replacing(path) as draft:
        draft.write_text(page, encoding="utf-8")


def write_report(
    path: Path,
    result: Result,
    summary: Summary,
    cells: Sequence[CellRecord],
    objectives: dict[str, Any] | None = None,
    films: Sequence[DomainFilm] = (),
    links: Mapping[str, str] = {},
) -> None:
    """Write the report of a result.

    Args:
        path: Where to write it.
        result: The result of the run.
        summary: Its numbers.
        cells: Its cells, as they count.
        objectives: The record of its objectives, for a section about it.
        films: Films of its domains.
        links: Title -> address of what else is on a site that the page is part of.
    """
    title = " + ".join(path.stem for path in result.paths)
    hidden = HIDDEN_FACTS if result.is_over else (*HIDDEN_FACTS, SEED_FACT)
    facts = {key: value for key, value in result.facts.items() if not key.startswith(hidden)}
    for record in result.records:
        facts |= record.describe(f" of {Path(record.run).stem}" if len(result.records) > 1 else "")
    options = ReportOptions(
        facts=facts,
        cautions=result.cautions,
        baseline=result.baseline,
        objectives=objectives,
        films=films,
        provenance=result.provenance,
        paths=result.paths,
        links=links,
    )
    write_page(path, render_page(title, cells, result.domains, summary, options))


def render_page(
    title: str,
    cells: Sequence[CellRecord],
    domains: Domains,
    summary: Summary,
    options: ReportOptions = ReportOptions(),  # noqa: B008 - frozen
) -> str:
    """Return the report on these cells as HTML, with as much detail as fits.

    Args:
        title: What the page is called.
        cells: The cells of one or more runs, as they count.
        domains: The domains that give titles and words for novelties; a missing one is shown by name.
        summary: The numbers of the cells.
        options: What else the page has.
    """
    data = _make_page(title, cells, domains, summary, options)
    films = sum(len(clip.data) * 4 // 3 for film in data.films for clip in film.clips)
    scenarios = len(data.analysis.scenarios) if data.analysis else 0
    for detail in (each for each in DETAILS if each.scenarios == ALL or each.scenarios < scenarios):
        page = render("run.html", data, detail=detail)
        if len(page.encode()) - films < MAX_BYTES:
            break
    return page


def _make_page(
    title: str, cells: Sequence[CellRecord], domains: Domains, summary: Summary, options: ReportOptions
) -> RunPage:
    described = [describe_provenance(each) for each in options.provenance]
    tags, notes = join_remarks(options.provenance, *options.paths)
    about = RunSummary(
        run=title,
        planned=len(cells),
        played=sum(cell.outcome is not None for cell in cells),
        tags=tags,
        notes=notes,
    )
    homes = {cell.agent: ("", cell.agent) for cell in cells}
    objectives, analysis = options.objectives, analyse(cells, summary, domains, homes, options.cautions)
    return RunPage(
        run=RunEntry("", Path(title), about, title),
        analysis=analysis,
        provenance=described[: -MAX_COMMANDS - 1 : -1],
        earlier=max(0, len(described) - MAX_COMMANDS),
        counts=_count(cells, summary, analysis.episodes)
        | {name: text for name, text in options.facts.items() if len(text) <= MAX_FACT},
        facts={name: text for name, text in options.facts.items() if len(text) > MAX_FACT},
        figures=trace_figures(cells, summary, domains, baseline=options.baseline),
        objectives=None if objectives is None else arrange_objectives(objectives, summary),
        films=list(options.films),
        links=dict(options.links),
    )


def _count(cells: Sequence[CellRecord], summary: Summary, episodes: int) -> dict[str, str]:
    controls = {cell.agent for cell in cells if cell.control}
    return {
        "agents": str(len({cell.agent for cell in cells if not cell.control})),
        **({"controls": str(len(controls))} if controls else {}),
        "trials": str(len({cell.trial.id for cell in cells})),
        "cells": format_outcomes(summary.outcomes),
        "episodes": f"{episodes:,}",
    }
