"""A novelty in a run: all agents that met it, trial by trial."""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from openfield.errors import UnknownName
from openfield.report.addresses import read_name
from openfield.report.analysis import ScenarioAnalysis, TrialScore
from openfield.report.run_list import RunEntry
from openfield.view.page import analyses_of, library_of, page

MAX_TRIALS = 500
"""How many trials of a scenario a page lists."""


class TrialRow(msgspec.Struct, frozen=True):
    """A trial, and its result with each agent."""

    trial: str
    onset: int | None
    unchanged: bool
    cells: dict[str, list[TrialScore]]
    """Agent -> its cells, one for each repeat."""

    @property
    def onset_address(self) -> str:
        """Where the world changes: the episode of the first agent that came to it."""
        scores = (score for found in self.cells.values() for score in found if score.onset is not None)
        return next(f"{score.address}/episodes/{score.onset}" for score in scores)


class NoveltyScenario(msgspec.Struct, frozen=True):
    """A scenario with its trials."""

    scenario: ScenarioAnalysis
    agents: list[str]
    trials: list[TrialRow]
    left_out: int


class NoveltyPage(msgspec.Struct, frozen=True):
    """What the page of a novelty shows."""

    run: RunEntry
    novelty: str
    scenarios: list[NoveltyScenario]
    """One for each set of terms: informed or not, and settings."""


def read_novelty(request: Request) -> NoveltyPage:
    """Return what the page of a novelty shows."""
    key, wanted = request.path_params["run"], read_name(request.path_params["novelty"])
    entry = library_of(request).entry(key)
    analysis = analyses_of(request).get(key, None)
    scenarios = analysis.scenarios if analysis else []
    found = [each for each in scenarios if each.novelty == wanted]
    if analysis is None or not found:
        raise UnknownName("novelty", wanted, {each.novelty for each in scenarios}, label="In this run")
    return NoveltyPage(entry, wanted, [_read_scenario(each, analysis.trials) for each in found])


def _read_scenario(scenario: ScenarioAnalysis, scores: list[TrialScore]) -> NoveltyScenario:
    agents = [group.agent for group in (*scenario.groups, *scenario.controls)]
    rows: dict[str, TrialRow] = {}
    for score in scores:
        if score.scenario == scenario.id:
            row = rows.setdefault(score.trial, TrialRow(score.trial, score.onset, score.unchanged, {}))
            row.cells.setdefault(score.agent, []).append(score)
    trials = sorted(rows.values(), key=lambda row: (row.unchanged, row.trial))
    return NoveltyScenario(scenario, agents, trials[:MAX_TRIALS], max(0, len(trials) - MAX_TRIALS))


ROUTES = page("/runs/{run}/novelties/{novelty}", "novelty.html", read_novelty)
