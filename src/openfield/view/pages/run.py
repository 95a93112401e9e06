"""A run: what was asked, who did how well, and where the world changed and who noticed.

Its objectives and further figures have pages of their own, as they are computed only when asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.requests import Request

from openfield.journal.reader import Run
from openfield.metrics.scenario import Scenario
from openfield.provenance.provenance import read_provenance
from openfield.provenance.rules import known_rules
from openfield.report.analysis import ScenarioFigures, trace_figures
from openfield.report.figures.stages import ScenarioObjectives, StageFigures, arrange_objectives
from openfield.report.objectives import EQUAL_NOTE
from openfield.report.page import HIDDEN_FACTS, RunPage
from openfield.report.run_list import RunEntry
from openfield.report.words import MAX_COMMANDS, describe_novelty, describe_provenance
from openfield.result import Result
from openfield.runner.sealing import SEED_FACT
from openfield.view.pace import Pace
from openfield.view.page import analyses_of, figures_of, is_twin, library_of, objectives_of, pace_of, page


class ScenarioAsked(msgspec.Struct, frozen=True):
    """What a run asks: how agents do when this changes in this domain."""

    domain: str
    title: str
    novelty: tuple[str, ...]
    change: str
    agents: list[str]
    """Those that have cells in it."""


class LiveRunPage(RunPage, frozen=True, kw_only=True):
    """What the viewer's page of a run shows: also how far it is and how fast it goes."""

    asked: list[ScenarioAsked]
    pace: Pace
    editable: bool
    """Whether its tags and its note can be changed."""


def read_run(request: Request) -> LiveRunPage:
    """Return what the page of a run shows."""
    library, key = library_of(request), request.path_params["run"]
    entry = library.entry(key)
    with library.open(key) as run:
        facts, asked = run.facts, list_asked(run)
        pace = pace_of(request).read(key, run, entry.summary.is_live)
    analyses = analyses_of(request)
    analysis = analyses.get(key, None) if is_twin(request) else analyses.get(key)
    described = [describe_provenance(each) for each in read_provenance(facts, entry.path)[-MAX_COMMANDS:]]
    hidden = (*HIDDEN_FACTS, SEED_FACT) if entry.summary.played < entry.summary.planned else HIDDEN_FACTS
    shown = {name: text for name, text in facts.items() if not name.startswith(hidden)}
    return LiveRunPage(
        run=entry,
        asked=asked,
        pace=pace,
        editable=library.editable,
        analysis=analysis,
        provenance=described[::-1],
        facts=shown,
    )


def list_asked(run: Run) -> list[ScenarioAsked]:
    """Return what a run asks, in words where its domains are at hand; the file's own words need no domain."""
    facts = run.facts
    found = sorted(run.entrants().items())
    return [ScenarioAsked(domain, *_describe(facts, domain, novelty), agents) for (domain, novelty), agents in found]


def _describe(facts: dict[str, str], domain: str, novelty: Sequence[str]) -> tuple[str, tuple[str, ...], str]:
    known = known_rules(facts, domain)
    words = describe_novelty(Scenario(domain, tuple(novelty), False, ""), {domain: known})
    return known.title, tuple(novelty), words


class FiguresPage(msgspec.Struct, frozen=True):
    """What the page of further figures shows."""

    run: RunEntry
    scenarios: list[ScenarioFigures] | None
    """None while they are computed."""


def read_figures(request: Request) -> FiguresPage:
    """Return the figures of a run."""
    entry = library_of(request).entry(request.path_params["run"])
    work = figures_of(request)
    return FiguresPage(entry, work.get(entry.key, None) if is_twin(request) else work.get(entry.key))


def trace_all_figures(key: str, result: Result) -> list[ScenarioFigures]:
    """Return the figures of all scenarios of a run that have some."""
    return trace_figures(result.counted(), result.summary(), result.domains, key)


class ObjectivesPage(msgspec.Struct, frozen=True):
    """What the page of the objectives shows."""

    run: RunEntry
    objectives: dict[str, Any] | None
    """As `openfield report --objectives --json` prints them; None while they are computed."""
    scenarios: list[ScenarioObjectives]
    errors: list[str] = []
    """Why they are missing, in sentences."""
    note: str = EQUAL_NOTE
    """How numbers are compared."""


def read_objectives(request: Request) -> ObjectivesPage:
    """Return the objectives of a run."""
    entry = library_of(request).entry(request.path_params["run"])
    work = objectives_of(request)
    found = work.get(entry.key, None) if is_twin(request) else work.get(entry.key)
    if found is None:
        return ObjectivesPage(entry, None, [])
    return ObjectivesPage(entry, found.record, found.scenarios, found.errors)


def measure_objectives(key: str, result: Result) -> StageFigures:
    """Compute the objectives of a run by its key."""
    return arrange_objectives(result.objectives(), result.summary(), key)


ROUTES = [
    *page("/runs/{run}", "run.html", read_run),
    *page("/runs/{run}/objectives", "objectives.html", read_objectives),
    *page("/runs/{run}/figures", "figures.html", read_figures),
]
