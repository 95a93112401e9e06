"""Notify browsers that a run has changed: server-sent events.

A page that shows runs listens to `/events?run=KEY` (or to all runs without a key). It gets an event when a file was
written to, and then asks for itself again; `static/live.js` puts in what is new. The server looks at sizes and times of
files, which costs a run nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from openfield.errors import OpenfieldError
from openfield.view.analysis import BackgroundWork
from openfield.view.library import Library, Signature, sign_file
from openfield.view.page import analyses_of, figures_of, library_of, objectives_of, scores_of

Work = Sequence[BackgroundWork[Any]]
LOOK_SECONDS = 1.0
"""How often files are looked at."""
RESTS = 5
"""How often in between a stream looks whether the server ends."""
CALM_LOOKS = 15
"""After this many checks without a change a comment is sent, so that a lost connection is noticed."""


async def send_events(request: Request) -> Response:
    """Answer with a stream of events that lasts until the browser leaves."""
    is_closing: Callable[[], bool] = request.app.state.is_closing
    keys = request.query_params.getlist("run")
    work = (analyses_of(request), objectives_of(request), figures_of(request)) if keys else (scores_of(request),)
    stream = _watch(library_of(request), work, keys, is_closing)
    return StreamingResponse(stream, media_type="text/event-stream")


async def _watch(library: Library, work: Work, keys: list[str], is_closing: Callable[[], bool]) -> AsyncIterator[str]:
    """Yield an event for every change of the files, until the server ends; the first says that the stream is open."""
    before, calm = await asyncio.to_thread(_sign, library, work, keys), 0
    yield "retry: 1000\nevent: hello\ndata: {}\n\n"
    while await _rest(is_closing):
        now = await asyncio.to_thread(_sign, library, work, keys)
        calm = calm + 1 if now == before else 0
        if now != before:
            yield "event: change\ndata: {}\n\n"
        elif calm % CALM_LOOKS == 0:
            yield ": still here\n\n"
        before = now


async def _rest(is_closing: Callable[[], bool]) -> bool:
    """Wait until the next look; return False at once when the server ends, which waits for open streams."""
    for _ in range(RESTS):
        if is_closing():
            return False
        await asyncio.sleep(LOOK_SECONDS / RESTS)
    return True


def _sign(library: Library, work: Work, keys: list[str]) -> list[Signature]:
    """Return what changes when a file is written to, or something was computed from it."""
    try:
        if not keys:
            return [tuple(each.finished for each in work), *(sign_file(path) for path in library.paths())]
        return [(*library.sign(key), *(each.version(key) for each in work)) for key in keys]
    except OpenfieldError:
        return []


ROUTES = [Route("/events", send_events)]
