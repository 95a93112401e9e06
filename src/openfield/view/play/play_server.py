"""Serve play pages: every link opens the page of one person, and there is nothing else here."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from openfield.report.render import templates
from openfield.serving.listen import fastest_loop
from openfield.view.access import Access, AccessGuard, refuse
from openfield.view.page import mount_static
from openfield.view.play.browser_channel import REFUSED, BrowserChannel, Gone
from openfield.view.play.messages import MAX_MESSAGE
from openfield.view.play.people_study import PeopleStudy, Person
from openfield.view.play.person_visit import PersonVisit
from openfield.view.server import configure, listen, name_origin

PATH = "/play/"


class PlayServer:
    """A server of play pages, which listens from the start and serves when told to."""

    def __init__(self, study: PeopleStudy, host: str, port: int | None) -> None:
        """Listen on a port.

        Args:
            study: Who may play, and what.
            host: The address to listen on.
            port: The port; 0 takes a free one, None the usual one if that is free.
        """
        self._study = study
        self._listener = listen(host, port)
        self.port = int(self._listener.getsockname()[1])
        self._origin = name_origin(host, self.port)
        names = {host, socket.gethostname(), socket.getfqdn()}
        config = configure(make_play_app(study, names))
        config.ws_max_size, config.ws_max_queue = MAX_MESSAGE, 8
        self._server = _StudyServer(config, study)
        study.on_done = self.stop

    @property
    def links(self) -> list[str]:
        """The links, one for each person."""
        return [f"{self._origin}{PATH}{person.secret}" for person in self._study.persons]

    def serve(self, ready: Callable[[], None]) -> None:
        """Serve until all people are done, or until interrupted; then close the study."""

        async def serve() -> None:
            asyncio.get_running_loop().call_soon(ready)
            await self._server.serve(sockets=[self._listener])

        try:
            with asyncio.Runner(loop_factory=fastest_loop()) as runner:
                runner.run(serve())
        finally:
            self._listener.close()
            self._study.close()

    def stop(self) -> None:
        """End the server soon; any thread may say so."""
        self._server.should_exit = True


class _StudyServer(uvicorn.Server):
    """Ends the visits before the connections: so each can finish what it does, and say goodbye."""

    def __init__(self, config: uvicorn.Config, study: PeopleStudy) -> None:
        super().__init__(config)
        self._study = study

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all visits, and then the server."""
        self._study.closing = True
        await _end_visits(self._study.persons)
        await self._study.end_trials()
        await super().shutdown(sockets)


def make_play_app(study: PeopleStudy, names: set[str]) -> Starlette:
    """Return the application of a study.

    Args:
        study: Who may play, and what.
        names: What this server is called.
    """
    page: Callable[[Request], Awaitable[Response]] = partial(show_page, study)
    return Starlette(
        routes=[
            Route(f"{PATH}{{secret}}", page),
            WebSocketRoute(f"{PATH}{{secret}}/socket", partial(meet, study)),
            mount_static(),
        ],
        middleware=[Middleware(AccessGuard, access=Access(names=names), open_paths=(PATH,))],
        exception_handlers={404: _say_nothing, Exception: _say_failure},
    )


async def show_page(study: PeopleStudy, request: Request) -> Response:
    """Answer with the page of a person. It holds nothing about them: all comes over the socket."""
    person = study.find(request.path_params["secret"])
    if person is None:
        return refuse("There is no such page", "Check the link that you were given.", 404)
    title = study.people.title or "openfield"
    return HTMLResponse(templates().get_template("play.html").render(title=title))


async def meet(study: PeopleStudy, websocket: WebSocket) -> None:
    """Let a person play over a connection. An older connection of the same person ends."""
    person = study.find(websocket.path_params["secret"])
    if person is None:
        await websocket.close(REFUSED)
        return
    await websocket.accept()
    channel = BrowserChannel(websocket)
    async with person.arriving:
        await _end_visits([person])
        if study.closing:
            await channel.close()
            return
        person.visit = asyncio.ensure_future(PersonVisit(study, person, channel).attend())
    visit = person.visit
    try:
        await asyncio.wait([visit])
        if visit.cancelled() and not study.closing:
            with suppress(Gone):
                await channel.show("elsewhere")
        elif not visit.cancelled():
            visit.exception()  # it is recorded, and the person was told
    finally:
        await channel.close()


async def _end_visits(persons: Sequence[Person]) -> None:
    """End the visits under way. What was played stays."""
    visits = [person.visit for person in persons if person.visit is not None]
    for visit in visits:
        visit.cancel()
    await asyncio.gather(*visits, return_exceptions=True)


async def _say_nothing(request: Request, error: Exception) -> Response:
    return refuse("There is no such page", "Check the link that you were given.", 404)


async def _say_failure(request: Request, error: Exception) -> Response:
    return refuse("This cannot be answered", "Try again.", 500)
