"""A run: what was asked, who did how well, and where the world changed and who noticed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from starlette.requests import Request

from openfield.journal.reader import Run
from openfield.metrics.scenario import Scenario
from openfield.provenance.provenance import read_provenance
from openfield.provenance.rules import known_rules
from openfield.report.page import HIDDEN_FACTS, RunPage
from openfield.report.words import MAX_COMMANDS, describe_novelty, describe_provenance
from openfield.runner.sealing import SEED_FACT
from openfield.view.pace import Pace
from openfield.view.page import analyses_of, is_twin, library_of, pace_of, page


class ScenarioAsked(msgspec.Struct, frozen=True):
    """What a run asks: how agents do when this changes in this domain."""

    domain: str
    title: str
    novelty: tuple[str, ...]
    change: str


class LiveRunPage(RunPage, frozen=True, kw_only=True):
    """What the viewer's page of a run shows: also how far it is and how fast it goes."""

    asked: list[ScenarioAsked]
    pace: Pace


def read_run(request: Request) -> LiveRunPage:
    """Return what the page of a run shows."""
    library, key = library_of(request), request.path_params["run"]
    entry = library.entry(key)
    with library.open(key) as run:
        facts, asked = run.facts, list_asked(run)
        pace = pace_of(request).read(key, run, entry.summary.is_live)
    analyses = analyses_of(request)
    analysis = analyses.get(key, None) if is_twin(request) else analyses.get(key)
    told = [describe_provenance(each) for each in read_provenance(facts, entry.path)[-MAX_COMMANDS:]]
    hidden = (*HIDDEN_FACTS, SEED_FACT) if entry.summary.played < entry.summary.planned else HIDDEN_FACTS
    shown = {name: text for name, text in facts.items() if not name.startswith(hidden)}
    return LiveRunPage(run=entry, asked=asked, pace=pace, analysis=analysis, provenance=told[::-1], facts=shown)


def list_asked(run: Run) -> list[ScenarioAsked]:
    """Return what a run asks, in words where its domains are at hand; the file's own words need no domain."""
    facts = run.facts
    found = sorted(run.scenarios())
    return [ScenarioAsked(domain, *_describe(facts, domain, novelty)) for domain, novelty in found]


def _describe(facts: dict[str, str], domain: str, novelty: Sequence[str]) -> tuple[str, tuple[str, ...], str]:
    known = known_rules(facts, domain)
    words = describe_novelty(Scenario(domain, tuple(novelty), False, ""), {domain: known})
    return known.title, tuple(novelty), words


ROUTES = page("/runs/{run}", "run.html", read_run)
