"""The objectives of a run: what its agents did, measured without reward. Computed only when this page is asked for."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request

from openfield.report.figures.stages import ScenarioObjectives, StageFigures, arrange_objectives
from openfield.report.objectives import EQUAL_NOTE
from openfield.report.run_list import RunEntry
from openfield.result import Result
from openfield.view.page import is_twin, library_of, objectives_of, page


class ObjectivesPage(msgspec.Struct, frozen=True):
    """What the page of the objectives shows."""

    run: RunEntry
    objectives: dict[str, Any] | None
    """As `openfield report --objectives --json` prints them; None while they are computed."""
    scenarios: list[ScenarioObjectives]
    errors: list[str] = []
    """Why there are none, in sentences."""
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


ROUTES = page("/runs/{run}/objectives", "objectives.html", read_objectives)
