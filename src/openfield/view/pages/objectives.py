"""The objectives of a run: what its agents did, measured without reward. Computed only when this page is asked for."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request

from openfield.view.library import RunEntry
from openfield.view.page import is_twin, library_of, objectives_of, page


class ObjectivesPage(msgspec.Struct, frozen=True):
    """What the page of the objectives shows."""

    run: RunEntry
    objectives: dict[str, Any] | None
    """As `openfield report --objectives --json` prints them; None while they are computed."""


def read_objectives(request: Request) -> ObjectivesPage:
    """Return the objectives of a run."""
    entry = library_of(request).entry(request.path_params["run"])
    work = objectives_of(request)
    return ObjectivesPage(entry, work.get(entry.key, None) if is_twin(request) else work.get(entry.key))


ROUTES = page("/runs/{run}/objectives", "objectives.html", read_objectives)
