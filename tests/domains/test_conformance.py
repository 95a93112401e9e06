"""Every domain with worlds that take a while keeps its promises; `openfield check` looks at all of its novelties."""

from __future__ import annotations

import pytest

from openfield.registry import find_domain
from openfield.testing import check_world
from openfield.testing.evidence import check_trials


@pytest.mark.parametrize(
    "name",
    [
        "birds",
        "commai",
        pytest.param("doom", marks=[pytest.mark.engine, pytest.mark.smoke]),
        pytest.param("doom-arena", marks=pytest.mark.engine),
        "ond",
    ],
)
def test_worlds_keep_their_promises(name: str) -> None:
    domain = find_domain(name)
    report = check_world(domain, trials=check_trials(domain)[:1], patience=60.0)
    assert report.passed, report
