"""What tests of the viewer share: a browser, a finished run, and pages that are let in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import openfield as of
from openfield.view import ViewServer
from support.browsers import Visit, open_browser, open_viewer
from support.places import MAZE

if TYPE_CHECKING:
    from playwright.sync_api import Browser

Visits = Callable[..., Visit]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser without a window; tests are skipped where chromium is missing.

    It ends with its module: while it is open, its event loop runs, and other tests could start none.
    """
    with open_browser() as started:
        yield started


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two finished runs in six small trials, `maze` and `again`. Not to be written to."""
    folder = tmp_path_factory.mktemp("runs")
    trials = of.trials(MAZE, count=6, training=1, before=3, after=3, unchanged=0)
    of.run(agents=["compass", "random"], trials=trials, journal=folder / "maze.sqlite")
    of.run(agents=["compass"], trials=trials, journal=folder / "again.sqlite")
    return folder


@pytest.fixture(scope="session")
def viewer(runs: Path) -> Iterator[ViewServer]:
    """A viewer of that folder."""
    with open_viewer(runs) as server:
        yield server


@pytest.fixture
def visit(browser: Browser, viewer: ViewServer) -> Iterator[Visits]:
    """Opens pages of the viewer, or of another one: `visit(server, color_scheme="dark")`; no console may complain."""
    opened: list[Visit] = []

    def open_page(server: ViewServer = viewer, **options: Any) -> Visit:
        opened.append(Visit(browser, server, **options))
        return opened[-1]

    yield open_page
    for each in opened:
        each.close()
    assert [error for each in opened for error in each.errors] == []
