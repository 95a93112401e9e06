"""Find the engines of this process and signal them."""

from __future__ import annotations

import os
import signal

from openfield.domains.doom.engine import watchdog


def own_engines() -> list[int]:
    """Return the process ids of this process's engines."""
    mark = f"/{os.getpid()}/engine-".encode()
    return [number for number, words in watchdog._engines() if any(mark in word for word in words)]


def signal_engines(what: signal.Signals) -> None:
    """Send a signal to all of them."""
    for number in own_engines():
        os.kill(number, what)
