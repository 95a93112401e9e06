"""The real parts that some tests play with, by the marker of these tests, and what each part lacks on this machine.

`pytest -m "not browser"` leaves one part out, OPENFIELD_BARE=1 all that are system programs. `make test` (`--quick`)
plays only the tests of parts and the long forms that are also marked `smoke`; `make test-all` plays everything.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import pytest

from openfield.domains.doom.wire.private_broker import INSTALL, has_broker
from openfield.installation import find_program
from openfield.runner.isolation.bubblewrap import find_obstacle
from support import slurm_cluster

LONG = ("docs", "notebook", "site", "slow", "wheel")
"""Markers of tests that only take long: they need no part."""
STARTED_ONCE = ("broker", "browser", "ray", "slurm")
"""Parts that are costly to start. All tests of one are played by the same worker."""


def _lacks_chromium() -> str:
    return "" if find_program("chromium") else "chromium is not installed; .ci/run installs it"


def _lacks_broker() -> str:
    return "" if has_broker() else f"RabbitMQ is not installed: {INSTALL}"


def _lacks_engine() -> str:
    return "" if find_spec("vizdoom") else "ViZDoom is not installed: pip install -e '.[doom]'"


def _lacks_ray() -> str:
    return "" if find_spec("ray") else "Ray is not installed: pip install -e '.[ray]'"


def _lacks_sandbox() -> str:
    obstacle = find_obstacle()
    return f"bubblewrap does not work here: {obstacle}" if obstacle else ""


PARTS: dict[str, Callable[[], str]] = {
    "broker": _lacks_broker,
    "browser": _lacks_chromium,
    "engine": _lacks_engine,
    "ray": _lacks_ray,
    "sandbox": _lacks_sandbox,
    "slurm": slurm_cluster.find_missing,
}
"""Why a part cannot be used here, empty if it can, by marker."""


def mark_item(item: pytest.Item, lacks: dict[str, str]) -> None:
    """Skip a test whose part is missing, and send it to the worker of its part."""
    if "browser" in getattr(item, "fixturenames", ()):
        item.add_marker("browser")
    marks = {mark.name for mark in item.iter_markers()}
    for part in marks & PARTS.keys():
        if part not in lacks:
            lacks[part] = PARTS[part]()
        if lacks[part]:
            item.add_marker(pytest.mark.skip(reason=lacks[part]))
        if part in STARTED_ONCE:
            item.add_marker(pytest.mark.xdist_group(part))
    if marks & {*LONG}:
        item.add_marker("no_cover")  # what takes long takes half as long again if its lines are counted


def is_quick(item: pytest.Item) -> bool:
    """Return whether a test belongs to `make test`."""
    marks = {mark.name for mark in item.iter_markers()}
    return "smoke" in marks or not marks & {*PARTS, *LONG}
