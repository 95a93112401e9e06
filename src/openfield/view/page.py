"""A page: an address, a function that reads its data, and a template that shows them.

The same data are the page's JSON twin. `app.py` says how a page is added.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import resources
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from openfield.errors import InvalidInput, JournalError, OpenfieldError, UnknownName
from openfield.report.addresses import TWIN
from openfield.report.render import render
from openfield.view.analysis import Analyses, BackgroundWork, RunScoring
from openfield.view.library import Library
from openfield.view.pace import PaceMeter

Read = Callable[[Request], Any]
"""Reads the data of a page: a struct or a mapping that becomes JSON as it is. It runs in a thread and may block."""
STATUS = {UnknownName: 404, InvalidInput: 400, JournalError: 422}
"""The status of an answer to what cannot be shown."""


def page(path: str, template: str, read: Read, twin: str = "") -> list[Route]:
    """Return the routes of a page and of its JSON twin.

    Args:
        path: The address, with parameters in braces.
        template: The template that shows the data, which it gets as `data`.
        read: Reads the data.
        twin: The address of the twin, if it is not the path with `.json`.
    """

    async def show(request: Request) -> Response:
        return await _answer(request, read, template)

    async def show_json(request: Request) -> Response:
        return await _answer(request, read, "")

    return [Route(twin or path + TWIN, show_json), Route(path, show)]


def mount_static() -> Mount:
    """Return the route of the viewer's scripts, and of the style sheet of all pages."""
    scripts = str(resources.files("openfield.view") / "static")
    return Mount("/static", StaticFiles(directory=scripts, packages=[("openfield.report", "static")]))


def library_of(request: Request) -> Library:
    """Return the library of the application that got a request."""
    found: Library = request.app.state.library
    return found


def analyses_of(request: Request) -> Analyses:
    """Return the analyses of the application that got a request."""
    found: Analyses = request.app.state.analyses
    return found


def objectives_of(request: Request) -> BackgroundWork[Any]:
    """Return the objectives of runs in the application that got a request."""
    found: BackgroundWork[Any] = request.app.state.objectives
    return found


def figures_of(request: Request) -> BackgroundWork[list[Any]]:
    """Return the further figures of runs in the application that got a request."""
    found: BackgroundWork[list[Any]] = request.app.state.figures
    return found


def scores_of(request: Request) -> RunScoring:
    """Return the scores of runs in the application that got a request."""
    found: RunScoring = request.app.state.scores
    return found


def pace_of(request: Request) -> PaceMeter:
    """Return what measures the pace of runs in the application that got a request."""
    found: PaceMeter = request.app.state.pace
    return found


def is_twin(request: Request) -> bool:
    """Return whether JSON was asked for, which waits for all numbers."""
    return request.url.path.endswith(TWIN)


def find_status(error: OpenfieldError) -> int:
    """Return the status of an answer that says what cannot be shown."""
    return next((code for kind, code in STATUS.items() if isinstance(error, kind)), 500)


def render_answer(template: str, request: Request, data: Any) -> str:
    """Return a page as HTML."""
    return render(template, data, request.url.path, twin_address(request))


def twin_address(request: Request) -> str:
    """Return the address of a page's data as JSON."""
    path = "/runs" if request.url.path == "/" else request.url.path
    return f"{path}{TWIN}{f'?{request.url.query}' if request.url.query else ''}"


async def _answer(request: Request, read: Read, template: str) -> Response:
    """Answer with a page or, without a template, with its data; say in words what cannot be shown."""
    began, status = time.perf_counter(), 200
    try:
        data = await run_in_threadpool(read, request)
    except OpenfieldError as error:
        status = find_status(error)
        data, template = {"error": str(error), "status": status}, template and "error.html"
    response = await run_in_threadpool(_write, request, template, data, status)
    response.headers["server-timing"] = f"page;dur={(time.perf_counter() - began) * 1000:.1f}"
    return response


def _write(request: Request, template: str, data: Any, status: int) -> Response:
    if template:
        return HTMLResponse(render_answer(template, request, data), status)
    return Response(msgspec.json.encode(data, enc_hook=str), status, media_type="application/json")
