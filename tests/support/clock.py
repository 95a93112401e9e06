"""A clock for tests of limits and times."""

from __future__ import annotations

import time

import pytest


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000
        monkeypatch.setattr(time, "monotonic_ns", lambda: self.now)

    def pass_seconds(self, seconds: float) -> None:
        self.now += int(seconds * 1e9)
