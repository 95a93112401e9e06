"""`openfield serve doom` as a service: told to terminate, it ends like after Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("vizdoom", reason="pip install 'openfield[doom]'")
pytest.importorskip("aio_pika", reason="pip install 'openfield[amqp]'")

from domains.doom.test_wire import agent, cells
from openfield.core import Reply, Turn
from openfield.domains.doom import keeper
from openfield.domains.doom.client import Client, Rpc
from openfield.domains.doom.rabbit import INSTALL, PrivateBroker, is_installed
from openfield.view import Run

pytestmark = pytest.mark.skipif(not is_installed(), reason=f"there is no RabbitMQ; install it: {INSTALL}")
TURNS = 5


async def play_some(url: str, server: subprocess.Popen[str]) -> list[list[bytes]]:
    """Plays until the server, told to terminate in the middle of an episode, is gone; returns its engines by then."""
    player, played, engines = agent(), [], []

    def answer(turn: Turn) -> Reply:
        played.append(turn)
        if len(played) == TURNS:
            engines.extend(words for _, words in keeper._engines() if _is_of(words, server.pid))
            server.send_signal(signal.SIGTERM)
        return player(turn)

    async with Rpc(url) as rpc:
        playing = asyncio.create_task(Client(rpc, answer, "ada").play())
        await asyncio.to_thread(server.wait, 60)
        playing.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await playing
    return engines


def _is_of(words: list[bytes], owner: int) -> bool:
    return any(f"/{owner}/".encode() in word for word in words)


def test_told_to_terminate_it_keeps_what_was_played_and_leaves_nothing_behind(tmp_path: Path) -> None:
    broker, path = PrivateBroker(), tmp_path / "run.sqlite"
    command = [sys.executable, "-m", "openfield", "serve", "doom", "--amqp", broker.url, "-o", str(path)]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            assert "Serving" in server.stdout.readline()
            engines = asyncio.run(asyncio.wait_for(play_some(broker.url, server), 90))
            _, said = server.communicate(timeout=30)
    finally:
        broker.close()
    assert server.returncode == 130, said
    assert "Traceback" not in said
    assert engines
    assert not [path for words in engines for path in keeper._shared(words, "*")]
    assert not [words for _, words in keeper._engines() if _is_of(words, server.pid)]
    begun = [cell for cell in cells(path) if cell.outcome == "cancelled"]
    with Run(path) as run:
        assert len(list(run.raw_steps(begun[0].id, 1))) >= TURNS - 1
