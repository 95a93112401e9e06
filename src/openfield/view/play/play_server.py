"""Serve play pages: every link opens the page of one person, and there is nothing else here."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from openfield.errors import JournalError, OpenfieldError
from openfield.report.render import render
from openfield.serving.listen import fastest_loop
from openfield.view.access import Access, AccessGuard, make_refusal_page
from openfield.view.page import mount_static
from openfield.view.play.browser_channel import REFUSED, BrowserChannel, Gone
from openfield.view.play.messages import MAX_MESSAGE, Go, QuestionAnswers
from openfield.view.play.people_study import PeopleStudy, Person
from openfield.view.play.play_process import ProcessLost
from openfield.view.server import configure, name_origin, open_port

PATH = "/play/"
CONSENT, INSTRUCTIONS, PRACTICE, ANSWERS, DONE = "consent", "instructions", "practice", "answers", "done"
"""What is recorded of a person: the steps of a visit that are behind them."""


class PlayServer:
    """A server of play pages, which listens from the start and serves on request."""

    def __init__(self, study: PeopleStudy, host: str, port: int | None) -> None:
        """Listen on a port.

        Args:
            study: Who may play, and what.
            host: The address to listen on.
            port: The port; 0 takes a free one, None the usual one if that is free.
        """
        self.study = study
        """Who may play, and what."""
        self._listener = open_port(host, port)
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
        return [f"{self._origin}{PATH}{person.secret}" for person in self.study.persons]

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
            self.study.close()

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
            WebSocketRoute(f"{PATH}{{secret}}/socket", partial(connect_person, study)),
            mount_static(),
        ],
        middleware=[Middleware(AccessGuard, access=Access(names=names), open_paths=(PATH,))],
        exception_handlers={404: _say_nothing, Exception: _say_failure},
    )


async def show_page(study: PeopleStudy, request: Request) -> Response:
    """Answer with the page of a person. It holds nothing about them: all comes over the socket."""
    person = study.find(request.path_params["secret"])
    if person is None:
        return make_refusal_page("There is no such page", "Check the link that you were given.", 404)
    title = study.people.title or "openfield"
    return HTMLResponse(render("play.html", {"title": title}, request.url.path))


async def connect_person(study: PeopleStudy, websocket: WebSocket) -> None:
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
        person.visit = asyncio.ensure_future(PersonVisit(study, person, channel).lead())
    visit = person.visit
    try:
        await asyncio.wait([visit])
        if visit.cancelled() and not study.closing:
            with suppress(Gone):
                await channel.show("elsewhere")
        elif not visit.cancelled():
            visit.exception()  # it is recorded, and the person has seen it
    finally:
        await channel.close()


async def _end_visits(persons: Sequence[Person]) -> None:
    """End the visits under way. What was played stays."""
    visits = [person.visit for person in persons if person.visit is not None]
    for visit in visits:
        visit.cancel()
    await asyncio.gather(*visits, return_exceptions=True)


async def _say_nothing(request: Request, error: Exception) -> Response:
    return make_refusal_page("There is no such page", "Check the link that you were given.", 404)


async def _say_failure(request: Request, error: Exception) -> Response:
    return make_refusal_page("This cannot be answered", "Try again.", 500)


class PersonVisit:
    """One connection of a person, until they are done or leave: consent, instructions, practice, trials, questions.

    Where the person is in the study is read from the record, so a page that is opened again goes on from there.
    """

    def __init__(self, study: PeopleStudy, person: Person, channel: BrowserChannel) -> None:
        self._study, self._person, self._channel = study, person, channel
        self._people = study.people

    async def lead(self) -> None:
        """Lead the person through what is left of their study."""
        study, person = self._study, self._person
        try:
            await study.work(partial(study.enter, person))
            known = await study.work(partial(study.facts_about, person))
            await self._introduce(known)
            await self._play_trials()
            await self._ask_questions(known)
            await study.work(partial(self._note_done, known))
            await self._channel.show(DONE, text=self._people.thanks, code=self._people.completion_code)
            study.finish(person)
        except Gone:
            pass
        except OpenfieldError as error:
            kind = "The record cannot be written." if isinstance(error, JournalError) else "This cannot go on."
            await self._say_failure(f"{kind} Please tell the people who sent you the link.")
            raise

    async def _say_failure(self, text: str) -> None:
        with suppress(Gone):
            await self._channel.show("failed", text=text)

    async def _introduce(self, known: dict[str, Any]) -> None:
        """Show what comes before the trials, each once."""
        texts = {CONSENT: self._people.consent, INSTRUCTIONS: self._people.instructions}
        for step, text in texts.items():
            if text and step not in known:
                await self._channel.show(step, text=text, title=self._people.title)
                await self._wait_for_go()
                await self._study.work(partial(self._study.note, self._person, step, True))
        if PRACTICE not in known:
            await self._practise()

    async def _practise(self) -> None:
        study = self._study
        while True:
            if not await study.open_practice(self._person):
                return
            try:
                await study.play(self._person, self._channel, practice=True)
                break
            except ProcessLost:
                await self._channel.show("between", title="The game stopped.", text="Practice starts again.")
                await self._wait_for_go()
        await study.work(partial(study.note, self._person, PRACTICE, True))
        await self._channel.show("between", title="That was practice.", text="From now on it counts.")
        await self._wait_for_go()

    async def _play_trials(self) -> None:
        study, person = self._study, self._person
        while (trial := await study.open_next(person)) is not None:
            try:
                await study.play(person, self._channel)
            except JournalError:
                raise
            except OpenfieldError as error:
                goes_on = isinstance(error, ProcessLost) and await study.recover(person, error)
                title = "The game stopped." if goes_on else "The game failed."
                text = "It goes on where you were." if goes_on else "This was not your fault."
                await self._channel.show("between", title=title, text=text)
                await self._wait_for_go()
                continue
            if study.reveal is not None and trial.place + 1 == len(person.cells):
                await study.work(study.flush)
                await self._reveal(study.reveal(trial.cell))
            elif trial.place + 1 < len(person.cells):
                done = f"{trial.place + 1} of {len(person.cells)} done"
                await self._channel.show("between", title=done, text="Your world starts again.")
                await self._wait_for_go()

    async def _reveal(self, stages: Iterable[Mapping[str, Any]]) -> None:
        """Show what was true of a trial, as it becomes known, until the person goes on."""
        waiting = iter(stages)
        while (content := await self._study.work(partial(next, waiting, None))) is not None:
            await self._channel.show("reveal", **content)
        await self._wait_for_go()

    async def _ask_questions(self, known: dict[str, Any]) -> None:
        questions = self._people.questions
        if not questions or ANSWERS in known:
            return
        await self._channel.show("questions", title=self._people.title, questions=questions)
        while True:
            message = await self._channel.receive()
            given = message.answers if isinstance(message, QuestionAnswers) else {}
            wrong = [each.text for each in questions if not each.check(given.get(each.name, ""))]
            if isinstance(message, QuestionAnswers) and not wrong and given.keys() <= {each.name for each in questions}:
                break
            await self._channel.refuse(f"Please answer: {wrong[0]}" if wrong else "This cannot be done now.")
        await self._study.work(partial(self._study.note, self._person, ANSWERS, given))

    def _note_done(self, known: dict[str, Any]) -> None:
        if DONE not in known and not self._people.is_bare:
            self._study.note(self._person, DONE, True)

    async def _wait_for_go(self) -> None:
        while not isinstance(await self._channel.receive(), Go):
            await self._channel.refuse("Press the button to go on.")
