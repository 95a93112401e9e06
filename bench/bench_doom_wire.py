"""What a tick costs over protocol 0.8 against two bare round trips of the same client library on the same broker.

A tick is two requests: the agent asks for data, and sends its prediction, which is acknowledged when the turn is played
and on record. Server, echo and client are processes of their own, as in use. The two client libraries are the one this
package uses and the one the original agents use; each is compared with an echo that is written with the same library.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aio_pika
import pika

from openfield.domains.doom.wire.client import AmqpClient
from openfield.domains.doom.wire.messages import Message, encode_message
from openfield.domains.doom.wire.private_broker import INSTALL, PrivateBroker, has_broker
from openfield.domains.doom.wire.rpc import Rpc

TICKS = 500
ROUNDS = 9
"""Each has as many bare round trips as ticks have requests, in turn; the median of their ratios counts."""
SETTINGS = ("training=0", "episodes=4", "limit=100000", "enemy_damage=0", "unchanged=0")
CLOCK_TICK = 1 / os.sysconf("SC_CLK_TCK")


def report(figure: str, value: float, bar: float | None = None, better: str = "lower") -> None:
    line = {"subject": "doom wire", "figure": figure, "value": round(value, 3), "bar": bar, "better": better}
    ok = None if bar is None else value <= bar if better == "lower" else value >= bar
    print(json.dumps({**line, "ok": ok}), flush=True)


async def echo_async(url: str) -> None:
    """Send back what comes, with an acknowledgement, until killed."""
    connection = await aio_pika.connect_robust(url)
    channel = await connection.channel(publisher_confirms=False)
    await channel.set_qos(prefetch_count=1)
    queue = await channel.declare_queue("aio-pika", exclusive=True)

    async def answer(incoming: Any) -> None:
        reply = aio_pika.Message(incoming.body, correlation_id=incoming.correlation_id, delivery_mode=1)
        await channel.default_exchange.publish(reply, incoming.reply_to, mandatory=False)
        await incoming.ack()

    await queue.consume(answer)
    print("ready", flush=True)
    await asyncio.Future()


def echo_blocking(url: str) -> None:
    """Do the same with the library of the original agents."""
    channel = pika.BlockingConnection(pika.URLParameters(url)).channel()
    channel.basic_qos(prefetch_count=1)
    channel.queue_declare("pika", exclusive=True)

    def answer(_: Any, method: Any, asked: Any, body: bytes) -> None:
        properties = pika.BasicProperties(correlation_id=asked.correlation_id, delivery_mode=1)
        channel.basic_publish("", asked.reply_to, body, properties)
        channel.basic_ack(method.delivery_tag)

    channel.basic_consume("pika", answer)
    print("ready", flush=True)
    channel.start_consuming()


class BlockingRpc:
    """Requests and replies as the original agents make them."""

    def __init__(self, url: str) -> None:
        self._connection = pika.BlockingConnection(pika.URLParameters(url))
        self._channel = self._connection.channel()
        self._queue = f"rpc.client.v0.8.{uuid.uuid4().hex}"
        self._channel.queue_declare(self._queue, exclusive=True, auto_delete=True)
        self._channel.basic_consume(self._queue, self._receive, auto_ack=True)
        self._wanted, self._reply = "", b""

    def _receive(self, _: Any, __: Any, properties: Any, body: bytes) -> None:
        if properties.correlation_id == self._wanted:
            self._reply = body

    def call(self, queue: str, body: bytes) -> bytes:
        self._wanted, self._reply = str(uuid.uuid4()), b""
        asked = pika.BasicProperties(reply_to=self._queue, correlation_id=self._wanted, delivery_mode=1)
        self._channel.basic_publish("", queue, body, asked)
        while not self._reply:
            self._connection.process_data_events(time_limit=None)
        return self._reply


class Tick(NamedTuple):
    """A test episode under way: its queue, the two requests of a tick, and the reply to the first."""

    queue: str
    see: Message
    act: Message
    vector: Message


async def start_episode(rpc: Rpc) -> Tick:
    client = AmqpClient(rpc, lambda turn: turn, "bench")  # type: ignore[arg-type,return-value]
    await client.register()
    while (await client._ask({"obj_type": "request_state"}))["obj_type"] != "testing_episode_active":
        pass
    see = {"obj_type": "request_testing_data", "model_experiment_id": client._id, "secret": client.secret}
    act: Message = {"obj_type": "testing_data_prediction", "secret": client.secret, "end_early": False}
    act |= {"utc_remote_epoch_received": 0.0, "utc_remote_epoch_sent": 0.0, "label_prediction": {"action": "nothing"}}
    return Tick(client._server, see, act, await rpc.call(client._server, see))


class Cost(NamedTuple):
    """Of a tick, or of two bare round trips: seconds by the clock, and of the server's processor."""

    wall: float
    cpu: float


def cpu_of(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * CLOCK_TICK


async def cost_of(call: Callable[[], Awaitable[object]], process: int) -> Cost:
    wall, cpu = time.perf_counter(), cpu_of(process)
    for _ in range(TICKS):
        await call()
    return Cost((time.perf_counter() - wall) / TICKS, (cpu_of(process) - cpu) / TICKS)


@contextmanager
def running(*words: str) -> Iterator[int]:
    """Start a program of this Python, wait for its first line, and end it in the end."""
    program = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert program.stdout is not None
        if not program.stdout.readline():
            raise SystemExit(f"{words} did not start.")
        yield program.pid
    finally:
        program.send_signal(signal.SIGINT)
        program.communicate()


@contextmanager
def serving(url: str, *words: str) -> Iterator[int]:
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    with tempfile.TemporaryDirectory() as folder:
        output = ("-o", str(Path(folder) / "run.sqlite"))
        trial = ("serve", "doom", "--amqp", url, "--trials", "1", "--novelty", "none", *settings)
        with running("-m", "openfield", *trial, *output, *words) as server:
            yield server


async def measure(url: str, server: int, echo: int) -> list[tuple[Cost, Cost]]:
    """Return what ticks and bare round trips cost with this package's library."""
    async with Rpc(url) as rpc:
        tick = await start_episode(rpc)

        async def play() -> None:
            await rpc.call(tick.queue, tick.see)
            await rpc.call(tick.queue, tick.act)

        async def ping() -> None:
            await rpc.call("aio-pika", tick.vector)
            await rpc.call("aio-pika", tick.vector)

        return [(await cost_of(play, server), await cost_of(ping, echo)) for _ in range(ROUNDS + 1)][1:]


async def measure_blocking(url: str, server: int, echo: int) -> list[tuple[Cost, Cost]]:
    """Return the same for the library of the original agents."""
    async with Rpc(url) as rpc:
        tick = await start_episode(rpc)
    see, act, vector = encode_message(tick.see), encode_message(tick.act), encode_message(tick.vector)
    blocking = BlockingRpc(url)

    async def play() -> None:
        blocking.call(tick.queue, see)
        blocking.call(tick.queue, act)

    async def ping() -> None:
        blocking.call("pika", vector)
        blocking.call("pika", vector)

    return [(await cost_of(play, server), await cost_of(ping, echo)) for _ in range(ROUNDS + 1)][1:]


def tell(library: str, rounds: list[tuple[Cost, Cost]], bars: bool = True) -> None:
    ratio = statistics.median(tick.wall / ping.wall for tick, ping in rounds)
    cpu = 1000 * statistics.median(tick.cpu for tick, _ in rounds)
    report(f"a tick against two bare round trips, {library}", ratio, 1.3 if bars else None)
    report(f"milliseconds of the server's processor per tick, {library}", cpu, 1.2 if bars else None)
    report(f"ticks per second, {library}", 1 / statistics.median(tick.wall for tick, _ in rounds), None, "higher")
    bare = statistics.median(ping.wall for _, ping in rounds)
    report(f"milliseconds of two bare round trips, {library}", 1000 * bare)


def main() -> None:
    if not has_broker():
        sys.exit(f"There is no RabbitMQ on this machine. Install it: {INSTALL}")
    broker = PrivateBroker()
    try:
        for library, measured in (("aio-pika", measure), ("pika", measure_blocking)):
            with running(__file__, library, broker.url) as echo:
                with serving(broker.url) as server:
                    tell(library, asyncio.run(measured(broker.url, server, echo)))
                with serving(broker.url, "--durable", "turn") as server:
                    found = asyncio.run(measured(broker.url, server, echo))
                    tell(f"{library}, --durable turn", found, bars=False)
    finally:
        broker.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["aio-pika"]:
        asyncio.run(echo_async(sys.argv[2]))
    elif sys.argv[1:2] == ["pika"]:
        echo_blocking(sys.argv[2])
    else:
        main()
