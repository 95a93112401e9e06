"""A run: what was asked, who did how well, and where the world changed and who noticed."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from openfield.view.page import library_of, page


def read_run(request: Request) -> dict[str, Any]:
    """Return what the page of a run shows."""
    entry = library_of(request).entry(request.path_params["run"])
    result = library_of(request).result(entry.key)
    cells = [{"id": cell.id, "agent": cell.agent, "outcome": cell.outcome} for cell in result.cells]
    return {"run": entry, "cells": cells}


ROUTES = page("/runs/{run}", "run.html", read_run)
