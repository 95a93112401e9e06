"""A run watched while it is played, and a server that dies and comes back."""

from __future__ import annotations

import re
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import openfield as of
from openfield.agents import RandomAgent
from openfield.journal.reader import Run
from openfield.report.addresses import name_run, trial_address
from openfield.view import ViewServer, analysis
from support.browsers import open_viewer
from support.places import MAZE
from view.conftest import Visits

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Browser, Page

SHIFTS = """() => {
  window.shifted = 0;
  new PerformanceObserver((list) => { for (const each of list.getEntries()) window.shifted += each.value; })
    .observe({ type: "layout-shift", buffered: true });
}"""
"""Sums up how much of the page moves about."""


class PacedAgent(RandomAgent):
    """Waits before every episode until it is let on."""

    permits = threading.Semaphore(0)

    def __call__(self, turn: of.Turn) -> of.Reply:
        if turn.first:
            assert self.permits.acquire(timeout=120)
        return super().__call__(turn)


def test_a_run_is_watched_to_its_end(visit: Visits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_count = threading.Event()  # numbers come when the page is already there, as on a busy machine
    analyse = analysis._analyse_run
    monkeypatch.setattr(analysis, "_analyse_run", lambda *given: may_count.wait() and analyse(*given))
    path, permits = tmp_path / "live.sqlite", PacedAgent.permits
    trials = of.trials(MAZE, count=2, training=1, before=2, after=2, unchanged=0)
    playing = threading.Thread(target=of.run, args=({"slow": PacedAgent}, trials, path))
    with open_viewer(tmp_path) as server:
        visitor = visit(server)
        playing.start()
        page = visitor.go("/")
        page.get_by_role("link", name="live", exact=True).click()
        page.get_by_text("Playing").wait_for()
        page.get_by_text("0 of 2 cells").wait_for()
        page.evaluate("window.mark = 'the same page'")
        page.get_by_text("Numbers and curves are being computed.").wait_for()
        page.evaluate(SHIFTS)
        may_count.set()
        permits.release(5)
        page.get_by_text("1 of 2 cells").wait_for()
        watch_turns(visitor.context.new_page(), server, path)
        page.get_by_text("Finished", exact=True).wait_for()
        playing.join()
        page.locator(".curves").first.wait_for()
        page.get_by_role("row", name="slow").first.wait_for()
        assert page.evaluate("window.mark") == "the same page"
        assert page.evaluate("window.shifted") < 0.1
        page.close()


def watch_turns(page: Page, server: ViewServer, path: Path) -> None:
    """Follow the second trial turn by turn to its end; its last three episodes are played while it is watched."""
    PacedAgent.permits.release(2)
    with Run(path) as run:
        cell = next(cell.id for cell in run.cells() if cell.outcome is None)
    place = server.origin + trial_address(name_run(path), cell)
    page.goto(place)
    page.get_by_role("link", name="1", exact=True).wait_for()  # the second episode is over
    page.goto(f"{place}/episodes/1")
    page.locator(".panel", has_text="Answered").wait_for()
    page.keyboard.press("End")
    page.evaluate("window.mark = 'the same page'")
    PacedAgent.permits.release(3)
    page.get_by_text("being played").wait_for(state="detached")
    with Run(path) as run:
        page.wait_for_url(f"**/turns/{run.cell(cell).steps - 2}")  # a reader at the last turn stays at the last one
    assert page.evaluate("window.mark") == "the same page"
    page.close()


def test_pages_go_on_when_a_killed_server_is_started_again(
    browser: Browser, runs: Path, spawn: Callable[..., subprocess.Popen[bytes]]
) -> None:
    words = ("-m", "openfield", "view", runs, "--no-browser", "--port")
    server = spawn(*words, "0", stdout=subprocess.PIPE)
    address = read_address(server)
    port = address.partition("?")[0].rstrip("/").rpartition(":")[2]
    page = browser.new_page()  # not a `Visit`: the browser complains while there is no server
    page.goto(address)
    page.get_by_role("rowheader", name="maze").get_by_role("link", name="maze", exact=True).click()
    page.locator(".curves").first.wait_for()
    page.wait_for_load_state()  # the page's scripts have run
    server.kill()
    page.get_by_text("The server has stopped.").wait_for()
    read_address(spawn(*words, port, stdout=subprocess.PIPE))
    page.get_by_text("The server has stopped.").wait_for(state="hidden")
    page.reload()
    assert page.get_by_role("heading", name="maze", exact=True).count() == 1
    page.close()


def read_address(server: subprocess.Popen[bytes]) -> str:
    """Return the address that a viewer prints."""
    assert server.stdout is not None
    found = re.search(r"The viewer: (\S+)", server.stdout.readline().decode())
    assert found is not None
    return found[1]
