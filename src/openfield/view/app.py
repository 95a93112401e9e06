"""The application: pages of runs and of what is in them, assembled from the route lists of the page modules.

How to add a page:

1. Write `pages/NAME.py` with a function that reads the data of the page from a request, and `ROUTES`:

       def read_agent(request: Request) -> AgentPage:
           key, agent = request.path_params["run"], read_name(request.path_params["agent"])
           result = library_of(request).result(key)   # the run as it was read last; or .open(key) for a `Run`
           ...
       ROUTES = page("/runs/{run}/agents/{agent}", "agent.html", read_agent)

   What it returns is a `msgspec.Struct` (or a mapping) that can be written as JSON: that is the page's JSON twin, at
   the same address with `.json`. It runs in a thread and may block. An `OpenfieldError` becomes a page that says what
   is wrong; `UnknownName` is a 404.
2. Write `report/templates/NAME.html`, which extends `base.html` and gets what was read as `data`. Everything is
   escaped. The content security policy allows no inline script and no inline style: scripts are ES modules in
   `static/`, included in the block `scripts`; positions in drawings are SVG attributes (`report/drawing.py`).
   Addresses come from the functions in `report/addresses.py`. Colours are the variables of `report/static/page.css`:
   `--performance`, `--belief`, `--truth`, `--onset`.
3. Add its routes to `PAGES` here. A folder of routes of its own (`play/`) is mounted the same way.

A page with `<body data-live="/events?run=KEY">` (the block `live`) is brought up to date while the run goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute

from openfield.errors import describe_error
from openfield.report.addresses import TWIN
from openfield.view import live
from openfield.view.access import Access, AccessGuard
from openfield.view.analysis import Analyses, BackgroundWork, RunScoring
from openfield.view.frames import FramePool
from openfield.view.library import Library
from openfield.view.pace import PaceMeter
from openfield.view.page import mount_static, render_answer
from openfield.view.pages import agent, compare, novelty, pictures, remarks, run, runs, trial, trials, turn
from openfield.view.trials import TrialReader

LOG = logging.getLogger("openfield.view")
PAGES: Sequence[BaseRoute] = (
    *runs.ROUTES,
    *remarks.ROUTES,
    *run.ROUTES,
    *agent.ROUTES,
    *novelty.ROUTES,
    *trials.ROUTES,
    *pictures.ROUTES,
    *turn.ROUTES,
    *trial.ROUTES,
    *compare.ROUTES,
    *live.ROUTES,
)


def make_app(
    library: Library, access: Access, routes: Iterable[BaseRoute] = (), open_paths: Iterable[str] = ()
) -> Starlette:
    """Return the application.

    Args:
        library: The run files that it shows.
        access: Who may use it.
        routes: Further routes, before those of the pages.
        open_paths: Prefixes of addresses that need no session, because their routes check tokens of their own.
    """
    app = Starlette(
        routes=[*routes, *PAGES, mount_static()],
        middleware=[Middleware(AccessGuard, access=access, open_paths=open_paths)],
        exception_handlers={HTTPException: _say_error, Exception: _say_error},
    )
    app.state.is_closing = lambda: False
    app.state.library, app.state.analyses, app.state.pace = library, Analyses(library), PaceMeter()
    app.state.scores = RunScoring(library)
    app.state.objectives = BackgroundWork(library, run.measure_objectives)
    app.state.figures = BackgroundWork(library, run.trace_all_figures)
    app.state.trials, app.state.frames, app.state.films = TrialReader(library), FramePool(), pictures.KeptFilms()
    return app


async def _say_error(request: Request, error: Exception) -> Response:
    """Answer with a page, or with JSON if that was asked for; an error inside is not shown."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 500:
        LOG.error("%s: %s", request.url.path, describe_error(error))
    text = "There is no such page." if status == 404 else "This request cannot be answered."
    data = {"error": text, "status": status}
    if request.url.path.endswith(TWIN):
        return JSONResponse(data, status)
    return HTMLResponse(render_answer("error.html", request, data), status)
