"""Visits of people, whose consoles must not complain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from support.play import PlayVisit

if TYPE_CHECKING:
    from playwright.sync_api import Browser

Plays = Callable[..., PlayVisit]


@pytest.fixture
def play(browser: Browser) -> Iterator[Plays]:
    """Opens play pages: `play(link, color_scheme="dark")`; no console may complain."""
    opened: list[PlayVisit] = []

    def open_page(link: str, **options: Any) -> PlayVisit:
        opened.append(PlayVisit(browser, link, **options))
        return opened[-1]

    yield open_page
    for each in opened:
        each.context.close()
    assert [error for each in opened for error in each.errors] == []
