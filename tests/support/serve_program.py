"""Serves trials of the cue world in a process of its own: JOURNAL TRIALS [TOKEN]. It says its port first."""

from __future__ import annotations

import asyncio
import signal
import sys

from openfield.journal.writer import Journal
from openfield.serving.dispatch import TrialDispatcher, serve_domain
from openfield.serving.jsonlines import JsonLinesWire
from support.worlds import TINY, tiny_trials


async def serve(path: str, count: int, token: str | None) -> None:
    with Journal(path) as journal:
        dispatcher = TrialDispatcher(journal, TINY, tiny_trials(count), "guest", token)
        task = asyncio.create_task(
            serve_domain(JsonLinesWire(), dispatcher, "127.0.0.1", 0, lambda port: print(port, flush=True))  # noqa: T201
        )
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        await asyncio.gather(task, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None))
