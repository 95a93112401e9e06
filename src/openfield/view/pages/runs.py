"""The list of runs: what is in each, how far it is, and what was noted about it; live ones first."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from openfield.view.page import library_of, page


def read_runs(request: Request) -> dict[str, Any]:
    """Return all runs in the library."""
    library = library_of(request)
    return {"places": [str(place) for place in library.places], "runs": library.entries()}


ROUTES = page("/", "runs.html", read_runs, twin="/runs.json")
