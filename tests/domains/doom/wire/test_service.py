"""`openfield serve doom` as a service: it ends when told to, and goes on after a full disk."""

from __future__ import annotations

import asyncio
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from openfield.cli import run_command
from openfield.core import Reply, Turn
from openfield.domains.doom.engine import watchdog
from openfield.domains.doom.wire import private_broker as rabbit
from openfield.domains.doom.wire.client import AmqpClient
from openfield.domains.doom.wire.private_broker import PrivateBroker
from openfield.domains.doom.wire.rpc import Rpc, load_aio_pika
from openfield.domains.doom.wire.server import AmqpServer
from openfield.errors import AgentProtocol, OpenfieldError
from openfield.journal.reader import Run
from support.doom.serving import agent, cells
from support.doom.serving import serving as in_process

pytestmark = [pytest.mark.broker, pytest.mark.engine]
TURNS = 5


async def play_some(url: str, server: subprocess.Popen[str]) -> list[list[bytes]]:
    """Plays until the server, told to terminate in the middle of an episode, is gone; returns its engines by then."""
    player, played, engines = agent(), [], []

    def answer(turn: Turn) -> Reply:
        played.append(turn)
        if len(played) == TURNS:
            engines.extend(words for _, words in watchdog._engines() if _is_of(words, server.pid))
            server.send_signal(signal.SIGTERM)
        return player(turn)

    async with Rpc(url) as rpc:
        playing = asyncio.create_task(AmqpClient(rpc, answer, "ada").play())
        await asyncio.to_thread(server.wait, 60)
        playing.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await playing
    return engines


def _is_of(words: list[bytes], owner: int) -> bool:
    return any(f"/{owner}/".encode() in word for word in words)


@pytest.fixture
def broker() -> Iterator[PrivateBroker]:
    started = PrivateBroker()
    yield started
    started.close()


@pytest.fixture(scope="module")
def shared_broker() -> Iterator[PrivateBroker]:
    started = PrivateBroker()
    yield started
    started.close()


@contextmanager
def serving(broker: PrivateBroker, path: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "openfield", "serve", "doom", "--amqp", broker.url, "-o", str(path), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert "Serving" in server.stdout.readline()
        try:
            yield server
        finally:
            server.terminate()
            _, said = server.communicate(timeout=300)
    assert server.returncode == 130, said
    assert "Traceback" not in said


def test_told_to_terminate_it_keeps_what_was_played_and_leaves_nothing_behind(
    broker: PrivateBroker, tmp_path: Path
) -> None:
    path = tmp_path / "run.sqlite"
    with serving(broker, path) as server:
        engines = asyncio.run(asyncio.wait_for(play_some(broker.url, server), 300))
    assert engines
    assert not [left for words in engines for left in watchdog._shared(words, "*")]
    assert not [words for _, words in watchdog._engines() if _is_of(words, server.pid)]
    begun = [cell for cell in cells(path) if cell.outcome == "cancelled"]
    with Run(path) as run:
        assert len(list(run.raw_steps(begun[0].id, 1))) >= TURNS - 1


def test_a_broker_that_was_stopped_is_still_guarded(broker: PrivateBroker) -> None:
    """Should its owner be gone before it starts again, its name server and its folder go as well."""
    broker.stop()
    guard = broker._guard
    assert guard is not None
    assert broker._home.exists()
    guard.communicate(timeout=300)  # what it waits for when its owner is gone
    assert not broker._home.exists()


def test_a_broker_gets_ports_that_nobody_has(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        number = taken.getsockname()[1]
        monkeypatch.setattr(rabbit, "PORTS", [number, *rabbit.PORTS[:20]])
        ports = rabbit._free_ports(10)
    assert len(set(ports)) == 10
    assert number not in ports


def test_a_full_disk_is_told_and_whoever_comes_when_there_is_room_is_served(
    broker: PrivateBroker, tmp_path: Path
) -> None:
    path, small = tmp_path / "run.sqlite", ("--trials", "1", "--set", "training=1", "--set", "limit=30")

    async def work(server: subprocess.Popen[str]) -> None:
        player, played = agent(), []

        def answer(turn: Turn) -> Reply:
            played.append(turn)
            if len(played) == TURNS:
                limit_files(server.pid, 1)
            return player(turn)

        async with Rpc(broker.url) as rpc:
            for name, told in (("ada", "No room left for .*run.sqlite"), ("bob", "The server refuses: .*run.sqlite")):
                with pytest.raises(OpenfieldError, match=told):
                    await AmqpClient(rpc, answer, name).play()
            limit_files(server.pid, resource.RLIM_INFINITY)
            cora = AmqpClient(rpc, agent(), "cora")
            await cora.play(no_testing=True)
            assert len(cora.performances) == 1

    with serving(broker, path, *small) as server:
        asyncio.run(asyncio.wait_for(work(server), 300))
    done = [cell.agent for cell in cells(path) if cell.outcome == "done"]
    assert [name.partition("-")[0] for name in done] == ["cora"]


def test_a_broker_that_goes_away_within_a_registration_is_no_failure(
    broker: PrivateBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is one whose channels come back one after the other, with a registration between them."""
    failures: list[Any] = []
    restarts: list[asyncio.Future[None]] = []
    late: list[Any] = []
    find_source, restore = AmqpServer._trial_source, load_aio_pika().RobustChannel.restore

    def restart() -> None:
        broker.stop()
        broker.start()

    async def ask_on(server: AmqpServer, *words: Any) -> Any:
        """The first time has the broker restarted and asks it for things until it is gone."""
        if not restarts:
            late.append(server._sure_channel)
            restarts.append(asyncio.ensure_future(asyncio.to_thread(restart)))
            while True:
                await server._channel.declare_queue("something", exclusive=True)
        return await find_source(server, *words)

    async def restore_late(channel: Any) -> None:
        """Has the channel for what must arrive come back a while after the others."""
        if channel not in late:
            await restore(channel)
        elif channel._connection.connected.is_set():
            late.remove(channel)
            asyncio.get_running_loop().call_later(1.0, lambda: restarts.append(asyncio.ensure_future(restore(channel))))

    async def work() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
        async with in_process(broker.url, tmp_path / "run.sqlite", count=1), Rpc(broker.url) as rpc:
            client = AmqpClient(rpc, agent(), "patient")
            await client.play()
            assert len(client.performances) == 2 + 3

    monkeypatch.setattr(AmqpServer, "_trial_source", ask_on)
    monkeypatch.setattr(load_aio_pika().RobustChannel, "restore", restore_late)
    asyncio.run(asyncio.wait_for(work(), 300))
    assert len(restarts) == 2
    assert failures == []


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7", b"\xff", b"[" * 100_000], ids=lambda body: repr(body[:4]))
def test_a_server_that_talks_nonsense_is_one_clear_error(shared_broker: PrivateBroker, body: bytes) -> None:
    async def work() -> None:
        pika = load_aio_pika()
        async with await pika.connect(shared_broker.url) as connection, Rpc(shared_broker.url, timeout=300) as rpc:
            channel = await connection.channel()
            queue = await channel.declare_queue("nonsense", exclusive=True)

            async def answer(incoming: Any) -> None:
                reply = pika.Message(body, correlation_id=incoming.correlation_id)
                await channel.default_exchange.publish(reply, incoming.reply_to)

            await queue.consume(answer, no_ack=True)
            with pytest.raises(AgentProtocol, match="not a message"):
                await rpc.call("nonsense", {"obj_type": "request_state"})

    asyncio.run(asyncio.wait_for(work(), 300))


def limit_files(process: int, size: int) -> None:
    """From now on files may not grow beyond this; writing more fails as on a full disk."""
    resource.prlimit(process, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--token", "abc"], "no place for a token"),
        (["--config", "server.ini", "--trials", "7"], "server.ini lists the trials to serve"),
        (["--config", "server.ini", "--novelty", "mirrored"], "server.ini lists the trials to serve"),
        (["--config", "server.ini", "--set", "unchanged=2"], "server.ini lists the trials to serve"),
        (["--config", "server.ini", "--set", "onset=3-5"], "server.ini lists the trials to serve"),
        (["--lease", "inf"], "--lease must be a number of seconds above 0, not inf"),
    ],
)
def test_what_would_have_no_effect_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("server.ini").write_text("[sail-on]\ntrials = 1\n[amqp]\nhost = 127.0.0.1\nport = 1\n")
    assert run_command(["serve", "doom", *words]) == 2
    assert said in capsys.readouterr().err


def test_help_shows_the_options_of_the_broker(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["serve", "doom", "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("--amqp", "--config", "--lease", "--benchmark"))
