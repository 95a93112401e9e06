"""A viewer and a browser for tests: the real server on a port of its own, and Debian's chromium."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openfield.installation import find_program
from openfield.view import Library, ViewServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = find_program("chromium")
VISITS: dict[ViewServer, list[Visit]] = {}
"""The open pages of each viewer."""
WIDE, NARROW = {"width": 1400, "height": 900}, {"width": 400, "height": 800}


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start chromium without a window, and close with it the pages that viewers still know."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        for visit in [each for visits in VISITS.values() for each in visits]:
            visit.close()
        browser.close()


@contextmanager
def open_viewer(*places: Path, **options: Any) -> Iterator[ViewServer]:
    """Serve a viewer on a free port as long as the block goes on; options are those of `ViewServer`.

    Its pages are closed before it: a browser complains of a stream that ends while it listens.
    """
    server = ViewServer(Library(places), **{"port": 0, **options})
    with server.serving():
        yield server
        for visit in list(VISITS.pop(server, ())):
            visit.close()


class Visit:
    """A page in the browser, let in by the viewer; errors in its console are collected."""

    def __init__(self, browser: Browser, server: ViewServer, **options: Any) -> None:
        """Open an empty page; options are those of Playwright's `new_context`."""
        self.server = server
        self.context = browser.new_context(**{"viewport": WIDE, **options})
        self.page: Page = self.context.new_page()
        self.errors: list[str] = []
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self._let_in = False
        VISITS.setdefault(server, []).append(self)

    def close(self) -> None:
        """Close its pages, while their browser is there."""
        self.context.close()
        if self in VISITS.get(self.server, ()):
            VISITS[self.server].remove(self)

    def go(self, path: str = "/") -> Page:
        """Go to an address of the viewer, the first time with a token."""
        address = self.server.origin + path if self._let_in else self.server.address(path)
        self._let_in = True
        answer = self.page.goto(address)
        assert answer is not None
        assert answer.ok, f"{path}: {answer.status}"
        return self.page
