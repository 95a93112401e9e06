"""A server as its own process, over a real socket, and a visit there."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from openfield.domains.ond.client.rest_client import RestClient
from openfield.domains.ond.client.workflow import OndPlayer, ServerScores, SessionOptions, play_sessions


@contextmanager
def server(
    folder: Path, *words: str, prepare: Callable[[], None] | None = None, errors: IO[str] | None = None
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Serves until the block ends, or is killed inside it; gives the address and the process."""
    with announced(folder, *words, prepare=prepare, errors=errors) as (line, process):
        found = re.search(r":(\d+),", line)
        assert found is not None, line
        yield f"http://127.0.0.1:{found[1]}", process


@contextmanager
def announced(
    folder: Path, *words: str, prepare: Callable[[], None] | None = None, errors: IO[str] | None = None
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """As `server`; gives what it says of itself. What it complains about goes to `errors`."""
    command = [sys.executable, "-c", "from openfield.cli import main; main()", "serve", "ond", "--port", "0"]
    process = subprocess.Popen(
        [*command, "-o", str(folder / "served.sqlite"), *words],
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        preexec_fn=prepare,
    )
    try:
        yield process.stdout.readline() if process.stdout else "", process
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def play_session(client: RestClient, player: OndPlayer, options: SessionOptions) -> ServerScores:
    """Play tests with one player and return the server's scores by test."""
    return play_sessions(client, [player], options)[player.name]
