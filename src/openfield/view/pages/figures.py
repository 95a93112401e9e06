"""Further figures of a run: those of samples, of a domain and of a curriculum, as the report page draws them.

They are computed only when this page is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import msgspec
from starlette.requests import Request

from openfield.journal.reader import CellRecord
from openfield.metrics.curricula.tasks import CurriculumResults
from openfield.metrics.scenario import group_cells, scenario_of
from openfield.report.curriculum import draw_curricula
from openfield.report.openset import draw_openset
from openfield.report.overview import group_scenarios
from openfield.report.page import draw_own, list_curricula
from openfield.report.tables import Drawn
from openfield.report.words import describe_novelty, title_domain
from openfield.result import Result
from openfield.view.addresses import trial_address, trials_address
from openfield.view.analysis import name_scenario
from openfield.view.library import RunEntry
from openfield.view.page import figures_of, is_twin, library_of, page

MAX_TRACED = 24
"""Trials of an agent that the picture of a curriculum shows."""
CLASSES: dict[Drawn, str] = {"number": "quiet", "plot": "plot", "line": "trial"}
"""How links look."""


class ScenarioFigures(msgspec.Struct, frozen=True):
    """The figures of one scenario."""

    id: str
    title: str
    change: str
    tasks: list[CurriculumResults]
    """The tasks of its agents, if they play a curriculum."""
    drawing: str
    """HTML in which everything that comes from outside is escaped, and numbers are links."""
    address: str
    """Its trials."""
    sources: dict[str, str]
    """Agent -> the address of its trials."""


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


class TrialLinks:
    """Links what is drawn of a run to the trials it was made of."""

    def __init__(self, run: str, cells: Sequence[CellRecord]) -> None:
        """Take the key of a run, and its cells."""
        self._run = run
        self._scenarios = {cell.id: name_scenario(scenario_of(cell)) for cell in cells}

    def find_address(self, cells: Sequence[CellRecord]) -> str:
        """Return the address of one trial, or of the list of trials, narrowed to what these have in common."""
        if len(cells) == 1:
            return trial_address(self._run, cells[0].id)
        agents, scenarios = {cell.agent for cell in cells}, {self._scenarios[cell.id] for cell in cells}
        shared = {name: found.pop() for name, found in (("agent", agents), ("scenario", scenarios)) if len(found) == 1}
        return trials_address(self._run, **shared)

    def __call__(self, drawing: str, cells: Sequence[CellRecord], kind: Drawn = "number") -> str:
        """Return a drawing in a link to its trials; the line of a trial is no stop for the tab key, as in charts."""
        named = f' tabindex="-1" aria-label="trial {escape(cells[0].trial.id)}"' if kind == "line" else ""
        return f'<a class="{CLASSES[kind]}" href="{escape(self.find_address(cells))}"{named}>{drawing}</a>'


def draw_all_figures(key: str, result: Result) -> list[ScenarioFigures]:
    """Draw the figures of all scenarios of a run that have some."""
    summary, cells = result.summary(), result.counted()
    members, link, found = group_cells(cells), TrialLinks(key, cells), []
    for scenario, groups in group_scenarios(summary):
        played = {
            group.agent: [cell for cell in members[scenario, group.agent] if cell.is_scored and cell.episodes]
            for group in groups
            if not group.control
        }
        tasks = list_curricula(summary, scenario)
        drawing = draw_openset(played, link=link)
        if own := draw_own(played, result.domains.get(scenario.domain)):
            drawing += own + _say_source([cell for each in played.values() for cell in each], link)
        drawing += draw_curricula(tasks, members, cells, MAX_TRACED, link)
        if drawing:
            name = name_scenario(scenario)
            found.append(
                ScenarioFigures(
                    id=name,
                    title=title_domain(scenario, result.domains),
                    change=describe_novelty(scenario, result.domains),
                    tasks=tasks,
                    drawing=drawing,
                    address=trials_address(key, scenario=name),
                    sources={agent: trials_address(key, agent=agent, scenario=name) for agent in played},
                )
            )
    return found


def _say_source(cells: Sequence[CellRecord], link: TrialLinks) -> str:
    """Say what a domain's own figures were made of: the viewer does not know their numbers one by one."""
    which = "this trial" if len(cells) == 1 else f"these {len(cells)} trials"
    return f'<p>Made of <a href="{escape(link.find_address(cells))}">{which}</a>.</p>' if cells else ""


ROUTES = page("/runs/{run}/figures", "figures.html", read_figures)
