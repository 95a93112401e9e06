"""Further figures of a run: those of samples, of a domain and of a curriculum, as the report page draws them.

They are computed only when this page is asked for.
"""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from openfield.metrics.curricula.tasks import CurriculumResults
from openfield.metrics.scenario import group_cells
from openfield.report.curriculum import draw_curricula
from openfield.report.overview import group_scenarios
from openfield.report.page import draw_samples, list_curricula
from openfield.report.words import describe_novelty, title_domain
from openfield.result import Result
from openfield.view.analysis import name_scenario
from openfield.view.library import RunEntry
from openfield.view.page import figures_of, is_twin, library_of, page

MAX_TRACED = 24
"""Trials of an agent that the picture of a curriculum shows."""


class ScenarioFigures(msgspec.Struct, frozen=True):
    """The figures of one scenario."""

    id: str
    title: str
    change: str
    tasks: list[CurriculumResults]
    """The tasks of its agents, if they play a curriculum."""
    drawing: str
    """HTML in which everything that comes from outside is escaped."""


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


def draw_all_figures(_: str, result: Result) -> list[ScenarioFigures]:
    """Draw the figures of all scenarios that have some."""
    summary, cells = result.summary(), result.counted()
    members, found = group_cells(cells), []
    for scenario, groups in group_scenarios(summary):
        played = {
            group.agent: [cell for cell in members[scenario, group.agent] if cell.is_scored and cell.episodes]
            for group in groups
            if not group.control
        }
        tasks = list_curricula(summary, scenario)
        drawing = draw_samples(played, result.domains.get(scenario.domain))
        drawing += draw_curricula(tasks, played, cells, MAX_TRACED)
        if drawing:
            words = title_domain(scenario, result.domains), describe_novelty(scenario, result.domains)
            found.append(ScenarioFigures(name_scenario(scenario), *words, tasks, drawing))
    return found


ROUTES = page("/runs/{run}/figures", "figures.html", read_figures)
