"""A page saved from the viewer is one file that shows the same without the server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from openfield.journal.reader import Run
from openfield.report.addresses import name_run, run_address, trials_address, turn_address
from view.conftest import Visits

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


CONTROLS = "button, .button, .layout-switch, .remarks"
"""What only works with a script or the server."""


def save_page(page: Page, folder: Path) -> Path:
    """Save a page by its key, and return the file."""
    with page.expect_download() as download:
        page.keyboard.press("s")
    saved = folder / download.value.suggested_filename
    download.value.save_as(saved)
    return saved


def test_a_saved_page_shows_the_same_without_the_server(
    visit: Visits, browser: Browser, runs: Path, tmp_path: Path
) -> None:
    page = visit().go(run_address(name_run(runs / "maze.sqlite")))
    page.locator(".pending").first.wait_for(state="detached")
    saved = save_page(page, tmp_path)
    assert saved.name == "maze-openfield.html"

    context = browser.new_context(offline=True)
    asked: list[str] = []
    alone = context.new_page()
    alone.on("request", lambda request: asked.append(request.url))
    alone.on("console", lambda said: asked.append(said.text))
    alone.goto(saved.as_uri())
    assert asked == [saved.as_uri()]
    page.locator(CONTROLS).evaluate_all("all => all.forEach(each => each.remove())")
    assert alone.locator("main").inner_text() == page.locator("main").inner_text()
    assert alone.locator(CONTROLS).count() == 0
    assert alone.locator("main svg").count() == page.locator("main svg").count() > 0
    color = "e => getComputedStyle(e).backgroundColor"
    assert alone.locator("body").evaluate(color) == page.locator("body").evaluate(color)
    assert alone.locator("script").count() == 0
    context.close()


def test_what_does_not_work_in_a_saved_page_is_not_offered(
    visit: Visits, browser: Browser, runs: Path, tmp_path: Path
) -> None:
    path = runs / "maze.sqlite"
    with Run(path) as run:
        cell = next(cell for cell in run.cells() if cell.agent == "random")
    context = browser.new_context(offline=True)
    alone = context.new_page()
    page = visit().go(turn_address(name_run(path), cell.id, cell.episodes[0].turns - 1))
    page.locator(".scrub input:not([max='0'])").wait_for()
    at = page.locator(".scrub input").input_value()
    width = page.locator(".trace").evaluate("e => e.offsetWidth")
    alone.goto(save_page(page, tmp_path).as_uri())
    slider = alone.locator(".scrub input")
    assert slider.is_disabled()
    assert slider.input_value() == at == slider.get_attribute("max") != "0"
    widths = alone.locator(".trace, .scrub input").evaluate_all("all => all.map(e => e.offsetWidth)")
    assert widths == [width, width]  # what is drawn there is not stretched
    assert alone.locator("button, form, select, a.button").count() == 0

    page = visit().go(f"{trials_address(name_run(path), agent='compass')}&search=a")
    alone.goto(save_page(page, tmp_path).as_uri())
    assert alone.locator("select[name=agent]").input_value() == "compass"
    assert alone.locator("input[name=search]").input_value() == "a"
    assert alone.locator(":is(select, input):enabled").count() == 0
    context.close()
