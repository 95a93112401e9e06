"""A study for tests: the real server on a port of its own, and people in a browser who play."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openfield.domain import Domain
from openfield.journal.reader import CellRecord, Run
from openfield.journal.writer import Journal
from openfield.record import Step
from openfield.trial import Trial
from openfield.view.play.people import People
from openfield.view.play.people_study import PeopleStudy
from openfield.view.play.play_server import PlayServer
from support.browsers import WIDE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, WebSocket


@contextmanager
def open_study(
    path: Path,
    domain: Domain[Any],
    trials: Sequence[Trial],
    people: People | None = None,
    secrets: Sequence[str] = ("first-link",),
    practice: Trial | None = None,
) -> Iterator[PlayServer]:
    """Serve a study as long as the block goes on."""
    with Journal(path) as journal:
        study = PeopleStudy(journal, domain, trials, people or People(), secrets, practice=practice)
        server = PlayServer(study, "127.0.0.1", 0)
        ready = threading.Event()
        thread = threading.Thread(target=server.serve, args=(ready.set,))
        thread.start()
        ready.wait()
        try:
            yield server
        finally:
            server.stop()
            thread.join()


class PlayVisit:
    """A person's page in a browser; what the server shows and what the page sends is collected."""

    def __init__(self, browser: Browser, link: str, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": WIDE, **options})
        self.page: Page = self.context.new_page()
        self.link = link
        self.errors: list[str] = []
        self.shown: list[dict[str, Any]] = []
        self.pictures: list[bytes] = []
        """The picture that came before each turn that was shown; empty if none did."""
        self.sent: list[dict[str, Any]] = []
        self._picture = b""
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("websocket", self._listen)

    def open(self) -> Page:
        """Open the link."""
        answer = self.page.goto(self.link)
        assert answer is not None
        assert answer.ok
        return self.page

    def turns(self) -> list[dict[str, Any]]:
        """Return the turns that were shown."""
        return [each for each in self.shown if each["show"] == "turn"]

    def reach(self, turn: int) -> dict[str, Any]:
        """Wait until the page shows a turn, and return what the server told of it."""
        self.page.locator(f"main[data-turn='{turn}']").wait_for()
        return self.turns()[-1]

    def believe(self, times: int) -> None:
        """Move the scale of the question that is shown by some hundredths, and say it."""
        scale = self.page.locator(".belief input")
        scale.focus()
        for _ in range(times):
            self.page.keyboard.press("ArrowRight")
        self.page.locator(".belief button:enabled").click()

    def _listen(self, socket: WebSocket) -> None:
        socket.on("framereceived", self._hear)
        socket.on("framesent", lambda data: self.sent.append(json.loads(data)))

    def _hear(self, data: str | bytes) -> None:
        if isinstance(data, bytes):
            self._picture = data
            return
        told = json.loads(data)
        self.shown.append(told)
        if told["show"] == "turn":
            self.pictures.append(self._picture)
            self._picture = b""


def find_barriers(page: Page) -> list[str]:
    """Return what an audit of the page finds that would keep people from using it."""
    from axe_core_python.sync_playwright import Axe

    found = Axe().run(page)["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html']}" for each in found if each["impact"] in ("serious", "critical")]


def read_played(path: Path) -> list[tuple[CellRecord, list[Step]]]:
    """Return the cells of a run file with their steps."""
    with Run(path) as run:
        return [(cell, list(run.steps(cell.id, cell.attempt))) for cell in run.cells()]
