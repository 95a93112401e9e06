"""Serve duels over protocol 0.8 through a private broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from openfield.domains.doom import DUEL
from openfield.domains.doom.agents.reference import ReferenceAgent
from openfield.domains.doom.wire.amqp import AmqpWire
from openfield.journal.reader import CellRecord, Run
from openfield.journal.writer import Journal
from openfield.serving.dispatch import TrialDispatcher, serve_domain

SMALL = {"training": 2, "episodes": 3, "before": 1, "limit": 100}


def agent() -> ReferenceAgent:
    """Make an agent for the duel."""
    return ReferenceAgent(DUEL.spec(DUEL.trials(1, unchanged=0)[0]), 0)


@asynccontextmanager
async def serving(
    url: str, path: Path, lease: float = 60.0, count: int = 2, wire: AmqpWire | None = None
) -> AsyncIterator[Journal]:
    """Serve some duels while the context is open."""
    ready = asyncio.Event()
    with Journal(path) as journal:
        dispatcher = TrialDispatcher(
            journal, DUEL, DUEL.trials(count, novelty="moving:easy", **SMALL, unchanged=0), "remote", None
        )
        served = wire or AmqpWire(url, lease=lease)
        server = asyncio.create_task(serve_domain(served, dispatcher, "127.0.0.1", None, lambda _: ready.set()))
        opened = asyncio.create_task(ready.wait())
        await asyncio.wait([server, opened], return_when=asyncio.FIRST_COMPLETED)
        if server.done():
            await server
        try:
            yield journal
        finally:
            server.cancel()
            with suppress(asyncio.CancelledError):
                await server


def cells(path: Path) -> list[CellRecord]:
    """Read the cells of a run file."""
    with Run(path) as run:
        return run.cells()


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test's work; give up after minutes."""
    asyncio.run(asyncio.wait_for(work(), 300))
