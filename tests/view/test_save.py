"""A page saved from the viewer is one file that shows the same without the server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from openfield.view.addresses import name_run, run_address
from view.conftest import Visits

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_a_saved_page_shows_the_same_without_the_server(
    visit: Visits, browser: Browser, runs: Path, tmp_path: Path
) -> None:
    page = visit().go(run_address(name_run(runs / "maze.sqlite")))
    page.locator(".pending").first.wait_for(state="detached")
    with page.expect_download() as download:
        page.keyboard.press("s")
    saved = tmp_path / download.value.suggested_filename
    download.value.save_as(saved)
    assert saved.name == "maze-openfield.html"

    context = browser.new_context(offline=True)
    asked: list[str] = []
    alone = context.new_page()
    alone.on("request", lambda request: asked.append(request.url))
    alone.on("console", lambda said: asked.append(said.text))
    alone.goto(saved.as_uri())
    assert asked == [saved.as_uri()]
    assert alone.locator("main").inner_text() == page.locator("main").inner_text()
    assert alone.locator("main svg").count() == page.locator("main svg").count() > 0
    color = "e => getComputedStyle(e).backgroundColor"
    assert alone.locator("body").evaluate(color) == page.locator("body").evaluate(color)
    assert alone.locator("script").count() == 0
    context.close()
