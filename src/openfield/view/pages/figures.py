"""Further figures of a run: those of samples, of a domain and of a curriculum, computed only when asked for."""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from openfield.report.analysis import ScenarioFigures, trace_figures
from openfield.report.run_list import RunEntry
from openfield.result import Result
from openfield.view.page import figures_of, is_twin, library_of, page


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


ROUTES = page("/runs/{run}/figures", "figures.html", read_figures)
