"""A broker for the tests of the wire."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from openfield.domains.doom.wire.private_broker import PrivateBroker


@pytest.fixture(scope="module")
def broker() -> Iterator[PrivateBroker]:
    started = PrivateBroker()
    yield started
    started.close()
