"""Protocol 0.8 where the broker or somebody at it misbehaves: the server lives on, and nothing is done twice."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pika
import pytest

from openfield.domains.doom.wire.amqp import AmqpWire
from openfield.domains.doom.wire.client import AmqpClient
from openfield.domains.doom.wire.messages import REGISTRATION_QUEUE, encode_message
from openfield.domains.doom.wire.private_broker import PrivateBroker
from openfield.domains.doom.wire.rpc import Rpc, load_aio_pika
from openfield.domains.doom.wire.server import AmqpServer
from openfield.errors import AgentFault, OpenfieldError
from support.doom.serving import agent, run, serving

pytestmark = [pytest.mark.broker, pytest.mark.engine]
UNREADABLE = ({"timestamp": 1 << 62}, {"correlation_id": b"\xff"}, {"reply_to": b"\xff"})
"""Properties of messages the library cannot read."""
REGISTRATION = {
    "obj_type": "request_experiment",
    "model": '{"model_name": "twice"}',
    "experiment_type": "SAIL-ON",
    "domain_dict": {"vizdoom": True},
    "epoch": None,
    "generator_config": None,
    "novelty": 0,
    "novelty_visibility": 0,
    "git_version": None,
    "seed": None,
    "no_testing": False,
    "description": "",
}
LOST = load_aio_pika().exceptions.ChannelInvalidStateError("closed")


def disturb(url: str) -> None:
    """Leaves what cannot be read where agents register."""
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.queue_declare(REGISTRATION_QUEUE, durable=True)
        for properties in UNREADABLE:
            channel.basic_publish("", REGISTRATION_QUEUE, b"[]", pika.BasicProperties(**properties))


def test_messages_that_cannot_be_read_are_removed(broker: PrivateBroker, tmp_path: Path) -> None:
    """Each ends the server's connection, and came again through every other: nobody was answered any more."""
    wire = AmqpWire(broker.url)

    async def work() -> None:
        disturb(broker.url)
        async with serving(broker.url, tmp_path / "run.sqlite", count=1, wire=wire), Rpc(broker.url) as rpc:
            early, late = AmqpClient(rpc, agent(), "early"), AmqpClient(rpc, agent(), "late")
            await early.register()
            disturb(broker.url)
            await late.register()
            for client in (early, late):
                assert (await client._ask({"obj_type": "request_state"}))["obj_type"] == "experiment_start"

    run(work)


@pytest.mark.parametrize("error", [asyncio.CancelledError(), LOST], ids=["silent", "closed"])
def test_a_broker_that_goes_while_a_finished_session_is_closed_is_no_failure(
    broker: PrivateBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """The library cancels whoever waits for a broker that fell silent: that was the server itself, which ended."""
    wire, closing = AmqpWire(broker.url), asyncio.Event()

    async def fail(queue: Any, **_: bool) -> None:
        closing.set()
        raise error

    async def work() -> None:
        async with serving(broker.url, tmp_path / "run.sqlite", count=1, wire=wire), Rpc(broker.url) as rpc:
            client = AmqpClient(rpc, agent(), "leaving")
            await client.register()
            await client._ask({"obj_type": "end_experiment", "model_experiment_id": None, "secret": client.secret})
            await closing.wait()
            await AmqpClient(rpc, agent(), "next").register()

    monkeypatch.setattr("openfield.domains.doom.wire.server.FAREWELL_SECONDS", 0.0)
    monkeypatch.setattr("openfield.domains.doom.wire.server.SILENCE_CHECK_SECONDS", 0.1)
    monkeypatch.setattr(load_aio_pika().robust_queue.RobustQueue, "delete", fail)
    run(work)


def test_a_registration_that_comes_again_is_no_second_experiment(
    broker: PrivateBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Repeated by its agent, or by a broker that did not hear that it was handled."""
    wire, sent, send = AmqpWire(broker.url), asyncio.Queue[bytes](), AmqpServer._send_surely

    async def send_and_break(server: AmqpServer, incoming: Any, body: bytes) -> bool:
        """Replies, and the first time is interrupted before the request can be acknowledged."""
        delivered = await send(server, incoming, body)
        sent.put_nowait(body)
        if sent.qsize() == 1:
            raise ConnectionError("broken")
        return delivered

    async def work() -> None:
        async with serving(broker.url, tmp_path / "run.sqlite", count=1, wire=wire), Rpc(broker.url) as rpc:
            for _ in range(2):
                await rpc._try(
                    REGISTRATION_QUEUE, "one", encode_message(REGISTRATION | {"client_rpc_queue": rpc.queue}), 60
                )
            assert len({await sent.get() for _ in range(3)}) == 1
            assert len(wire._server._queues) == 1
            await rpc._try(
                REGISTRATION_QUEUE, "two", encode_message(REGISTRATION | {"client_rpc_queue": rpc.queue}), 60
            )
            assert len(wire._server._queues) == 2

    monkeypatch.setattr(AmqpServer, "_send_surely", send_and_break)
    run(work)


def test_a_broker_that_hangs_up_within_a_registration_is_no_failure(
    broker: PrivateBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for a broker that hangs up without a word is told no more than `Exception`."""
    wire, failures, hanging_up, find = AmqpWire(broker.url), [], [], AmqpServer._trial_source

    async def ask_on(server: AmqpServer, *words: Any) -> Any:
        """The first time the connection goes while the broker is asked for things."""
        if not hanging_up:
            channel = await server._channel.get_underlay_channel()
            hanging_up.append(asyncio.create_task(channel.connection.close(None)))
            while True:
                await server._channel.declare_queue("something", exclusive=True)
        return await find(server, *words)

    async def work() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
        async with serving(broker.url, tmp_path / "run.sqlite", count=1, wire=wire), Rpc(broker.url) as rpc:
            await AmqpClient(rpc, agent(), "patient").register()

    monkeypatch.setattr(AmqpServer, "_trial_source", ask_on)
    run(work)
    assert hanging_up
    assert failures == []


def test_of_sessions_that_were_ended_only_the_last_are_remembered(
    broker: PrivateBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has a queue, and all queues are declared anew when the broker comes back."""
    wire, drop, dropped = AmqpWire(broker.url, lease=1.0), AmqpServer.drop, asyncio.Queue[str]()

    async def note(server: AmqpServer, name: str, fault: OpenfieldError) -> None:
        await drop(server, name, fault)
        dropped.put_nowait(name)

    async def work() -> None:
        async with serving(broker.url, tmp_path / "run.sqlite", count=1, wire=wire), Rpc(broker.url) as rpc:
            for _ in range(3):
                client = AmqpClient(rpc, agent(), "silent")
                await client.register()
                assert await dropped.get() == client._server
            assert list(wire._server._queues) == [client._server]
            with pytest.raises(AgentFault, match="said nothing for"):
                await client._ask({"obj_type": "request_state"})

    monkeypatch.setattr("openfield.domains.doom.wire.server.MAX_DROPPED", 1)
    monkeypatch.setattr(AmqpServer, "drop", note)
    run(work)
