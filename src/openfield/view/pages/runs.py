"""The list of runs: what is in each, how far it is, and what was noted about it; live ones first."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Route

from openfield.errors import OpenfieldError
from openfield.report.addresses import TWIN
from openfield.report.run_list import RunEntry
from openfield.view.pace import Pace
from openfield.view.page import library_of, pace_of, page

SORTS: dict[str, Callable[[RunEntry], Any]] = {
    "changed": lambda run: run.summary.changed,
    "started": lambda run: run.summary.started,
    "name": lambda run: run.name,
    "domain": lambda run: run.summary.domains,
    "cells": lambda run: run.summary.planned,
}
"""What runs can be sorted by."""
LATEST_FIRST = ("changed", "started", "cells")
MAX_ROWS = 200
"""How many runs a page lists."""


class RunRow(msgspec.Struct, frozen=True):
    """A run in the list, with its pace while it is played."""

    run: RunEntry
    pace: Pace | None = None


class RunsPage(msgspec.Struct, frozen=True):
    """What the list of runs shows."""

    places: list[str]
    runs: list[RunRow]
    total: int
    """How many runs there are."""
    found: int
    """How many fit what is searched for."""
    search: str
    sort: str
    domain: str
    domains: list[str]
    """The domains of all runs."""


def read_runs(request: Request) -> RunsPage:
    """Return the runs in the library: those that have all words of `search`, sorted by `sort`."""
    library, query = library_of(request), request.query_params
    search, domain = query.get("search", "").strip(), query.get("domain", "")
    sort = query.get("sort", "") if query.get("sort", "") in SORTS else "changed"
    known = library.entries()
    found = [run for run in known if _fits(run, search.lower().split(), domain)]
    found.sort(key=SORTS[sort], reverse=sort in LATEST_FIRST)
    found.sort(key=lambda run: not run.summary.is_live)
    return RunsPage(
        places=[str(place) for place in library.places],
        runs=[RunRow(run, _read_pace(request, run)) for run in found[:MAX_ROWS]],
        total=len(known),
        found=len(found),
        search=search,
        sort=sort,
        domain=domain,
        domains=sorted({name for run in known for name in run.summary.domains}),
    )


def _fits(run: RunEntry, words: list[str], domain: str) -> bool:
    about = run.summary
    agents = *about.agents, *about.controls
    text = " ".join((run.name, *about.domains, *agents, *about.novelties, *about.tags, *about.notes)).lower()
    return all(word in text for word in words) and (not domain or domain in about.domains)


def _read_pace(request: Request, run: RunEntry) -> Pace | None:
    if run.summary.is_live:
        with suppress(OpenfieldError), library_of(request).open(run.key) as opened:
            return pace_of(request).read(run.key, opened, True)
    return None


TWIN_ADDRESS = f"/runs{TWIN}"
ROUTES = [
    *page("/", "runs.html", read_runs, twin=TWIN_ADDRESS),
    Route(f"/{TWIN}", lambda request: RedirectResponse(request.url.replace(path=TWIN_ADDRESS))),
]
