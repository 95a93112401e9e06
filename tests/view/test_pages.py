"""Every page in the browser: light and dark, wide and narrow, without a complaint of the console."""

from __future__ import annotations

import pytest

from support.browsers import NARROW, WIDE
from view.conftest import Visits


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_open_without_errors(visit: Visits, scheme: str, size: dict[str, int]) -> None:
    page = visit(color_scheme=scheme, viewport=size).go("/")
    page.get_by_role("link", name="maze").click()
    assert page.get_by_role("heading", level=1).inner_text() == "maze"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
