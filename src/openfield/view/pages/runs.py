"""The list of runs: what is in each, how far it is, how agents did, and what was noted about it; live ones first.

Scores are computed beside the page, for one run after the other, and come in as they are found.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Route

from openfield.errors import OpenfieldError
from openfield.parameters import shorten_agents
from openfield.report.addresses import TWIN
from openfield.report.run_list import RunEntry
from openfield.view.analysis import RunScores
from openfield.view.pace import Pace
from openfield.view.page import library_of, pace_of, page, scores_of

SORTS: dict[str, Callable[[RunEntry], Any]] = {
    "changed": lambda run: run.summary.changed,
    "started": lambda run: run.summary.started,
    "name": lambda run: run.name,
    "domain": lambda run: run.summary.domains,
    "cells": lambda run: run.summary.planned,
}
"""What runs can be sorted by."""
LATEST_FIRST = ("changed", "started", "cells")
NUMBERS = {
    "score": "Best",
    "return_after": "Return after",
    "before": "Before",
    "after": "After",
    "concordance": "Concordance",
    "correct": "Correct detection",
    "delay": "Delay",
    "alarmed": "False alarms",
}
"""The columns of numbers, with their titles."""
COLUMNS = {
    "domain": "Domain",
    "agents": "Agents",
    "novelties": "Novelties",
    **NUMBERS,
    "cells": "Cells",
    "started": "Started",
    "changed": "Changed",
}
"""What a reader may choose to see of runs, beside their names, tags and notes."""
DEFAULT_COLUMNS = ("domain", "agents", "novelties", "score", "cells", "changed")
MAX_ROWS = 200
"""How many runs a page lists."""


class RunRow(msgspec.Struct, frozen=True):
    """A run in the list, with its pace while it is played."""

    run: RunEntry
    pace: Pace | None = None
    scores: RunScores | None = None
    """None while they are computed, or where no number is shown."""
    unscored: str = ""
    """Why there are none."""
    names: dict[str, str] = {}
    """Agent -> its name here, where there is little room."""


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
    columns: list[str]
    """What is shown of each."""
    known: dict[str, str]
    """What can be shown, with titles."""
    usual: tuple[str, ...]
    """What is shown if nothing is chosen."""
    editable: bool
    """Whether tags and notes can be changed."""

    @property
    def is_scoring(self) -> bool:
        """Whether numbers are still being computed."""
        return any(not row.scores and not row.unscored for row in self.runs) and any(n in NUMBERS for n in self.columns)


def read_runs(request: Request) -> RunsPage:
    """Return the runs in the library: those that have all words of `search`, sorted by `sort`."""
    library, query = library_of(request), request.query_params
    search, domain = query.get("search", "").strip(), query.get("domain", "")
    sort = query.get("sort", "") if query.get("sort", "") in SORTS else "changed"
    columns = [name for name in COLUMNS if name in query.getlist("column")] or list(DEFAULT_COLUMNS)
    known = library.entries()
    found = [run for run in known if _fits(run, search.lower().split(), domain)]
    found.sort(key=SORTS[sort], reverse=sort in LATEST_FIRST)
    found.sort(key=lambda run: not run.summary.is_live)
    numbers, lacking = any(name in NUMBERS for name in columns), list[str]()
    rows = [_describe(request, run, numbers, lacking) for run in found[:MAX_ROWS]]
    scores_of(request).want(lacking)
    return RunsPage(
        places=[str(place) for place in library.places],
        runs=rows,
        total=len(known),
        found=len(found),
        search=search,
        sort=sort,
        domain=domain,
        domains=sorted({name for run in known for name in run.summary.domains}),
        columns=columns,
        known=COLUMNS,
        usual=DEFAULT_COLUMNS,
        editable=library.editable,
    )


def _describe(request: Request, run: RunEntry, numbers: bool, lacking: list[str]) -> RunRow:
    """Return a row; the key of a run whose scores are to be computed is added to a list."""
    row = RunRow(run, _read_pace(request, run))
    if not numbers:
        return row
    if run.summary.problem or not run.summary.played:
        return msgspec.structs.replace(row, unscored=run.summary.problem or "nothing is played yet")
    found, is_fresh = scores_of(request).peek(run.key)
    lacking += [] if is_fresh else [run.key]
    if isinstance(found, OpenfieldError):
        return msgspec.structs.replace(row, unscored=str(found))
    names = shorten_agents(run.summary.agents)
    return msgspec.structs.replace(row, scores=found, unscored=found.lack if found else "", names=names)


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
