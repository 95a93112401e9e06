"""What a request costs over protocol 0.8 against a bare ping-pong with the same client library on the same broker.

A prediction is acknowledged when its turn is played and safely on disk: what that turn takes, engine and disk included,
is measured where it is played and taken off, also of the ping-pong it is compared with, whose server plays the same
turn: while one is played the broker falls asleep, and waking it makes any ping-pong a fifth slower. The same turn in a
loop without a broker takes less, for everything it touches is at hand.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import aio_pika

from openfield.core import Reply, Turn
from openfield.domains.doom import DUEL
from openfield.domains.doom.wire.amqp import AmqpWire
from openfield.domains.doom.wire.client import AmqpClient
from openfield.domains.doom.wire.messages import Message
from openfield.domains.doom.wire.private_broker import INSTALL, PrivateBroker, is_installed
from openfield.domains.doom.wire.rpc import Rpc
from openfield.journal.writer import Journal
from openfield.serving.dispatch import TrialDispatcher, serve_domain
from openfield.serving.remote import RemoteRollout

CALLS = 100
ROUNDS = 60
"""Single ones differ by half on processors that others use too; of 15, one median in ten was off by a tenth."""
WARM_UP = 2
"""Rounds before, which take twice as long."""


def report(figure: str, value: float, bar: float | None = None) -> None:
    line = {"subject": "doom wire", "figure": figure, "value": round(value, 3), "bar": bar, "better": "lower"}
    print(json.dumps({**line, "ok": None if bar is None else value <= bar}), flush=True)


async def echo(url: str, name: str, work: Callable[[], Awaitable[object]] | None = None) -> Any:
    """A bare server: sends back what it gets, with an acknowledgement; may have something to do first."""
    connection = await aio_pika.connect_robust(url)
    channel = await connection.channel(publisher_confirms=False)
    await channel.set_qos(prefetch_count=1)
    queue = await channel.declare_queue(name, exclusive=True)

    async def answer(incoming: Any) -> None:
        if work is not None:
            await work()
        reply = aio_pika.Message(incoming.body, correlation_id=incoming.correlation_id, delivery_mode=1)
        await channel.default_exchange.publish(reply, incoming.reply_to, mandatory=False)
        await incoming.ack()

    await queue.consume(answer)
    return connection


class Cost(NamedTuple):
    """Seconds of one call; client and server share this process."""

    wall: float
    cpu: float
    turn: float
    """Of the wall-clock seconds, those in which the turn was played."""


async def cost_of(call: Callable[[], Awaitable[object]], turns: Turns) -> Cost:
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(CALLS):
        await call()
    return Cost((time.perf_counter() - wall) / CALLS, (time.process_time() - cpu) / CALLS, turns.mean())


class Turns:
    """Plays turns in a remote, and knows how long they took."""

    def __init__(self, remote: RemoteRollout) -> None:
        self._reply = remote.reply
        self._seconds: list[float] = []

    async def reply(self, reply: Reply, durable: bool = True) -> Turn:
        started = time.perf_counter()
        turn = await self._reply(reply, durable)
        self._seconds.append(time.perf_counter() - started)
        return turn

    def mean(self) -> float:
        """Of all since it was asked last; 0 if there was none."""
        seconds, self._seconds = self._seconds, []
        return statistics.fmean(seconds) if seconds else 0.0


async def start_episode(rpc: Rpc) -> tuple[str, Message, Message]:
    """A test episode under way: its queue, and the two requests of a tick."""
    client = AmqpClient(rpc, lambda turn: turn, "bench")  # type: ignore[arg-type,return-value]
    await client.register()
    while (await client._ask({"obj_type": "request_state"}))["obj_type"] != "testing_episode_active":
        pass
    see = {"obj_type": "request_testing_data", "model_experiment_id": client._id, "secret": client.secret}
    act: Message = {"obj_type": "testing_data_prediction", "secret": client.secret, "end_early": False}
    act |= {"utc_remote_epoch_received": 0.0, "utc_remote_epoch_sent": 0.0, "label_prediction": {"action": "nothing"}}
    return client._server, see, act


async def measure(url: str, path: Path) -> None:
    ready = asyncio.Event()
    settings: dict[str, Any] = {"training": 0, "episodes": 4, "limit": 100_000, "enemy_damage": 0}
    with Journal(path) as journal:
        dispatcher = TrialDispatcher(
            journal, DUEL, DUEL.trials(1, novelty="none", **settings, unchanged=0), "bench", None
        )
        server = asyncio.create_task(serve_domain(AmqpWire(url), dispatcher, "", None, lambda _: ready.set()))
        await ready.wait()
        bare = await echo(url, "echo")
        async with Rpc(url) as rpc:
            queue, see, act = await start_episode(rpc)
            vector = await rpc.call(queue, see)
            (_, remote), *_ = dispatcher._remotes.values()
            turns = Turns(remote)
            remote.reply = turns.reply  # type: ignore[method-assign]
            busy = await echo(url, "busy echo", lambda: remote.reply(Reply("nothing")))
            calls: dict[str, Callable[[], Awaitable[object]]] = {
                "ping": lambda: rpc.call("echo", vector),
                "busy": lambda: rpc.call("busy echo", vector),
                "see": lambda: rpc.call(queue, see),
                "act": lambda: rpc.call(queue, act),
                "turn": lambda: remote.reply(Reply("nothing")),
            }
            for _ in range(WARM_UP):
                for call in calls.values():
                    await cost_of(call, turns)
            rounds = [{name: await cost_of(call, turns) for name, call in calls.items()} for _ in range(ROUNDS)]
            await busy.close()
        await bare.close()
        server.cancel()
        with suppress(asyncio.CancelledError):
            await server
    wall = {name: statistics.median(found[name].wall for found in rounds) for name in calls}
    rest = {name: statistics.median(found[name].wall - found[name].turn for found in rounds) for name in calls}
    cpu = {name: statistics.quantiles((found[name].cpu for found in rounds), n=4)[0] for name in calls}
    turn = {name: statistics.median(found[name].turn for found in rounds) for name in calls}
    report("a request for data against a bare ping-pong", wall["see"] / wall["ping"], 1.25)
    report(
        "a prediction against a bare ping-pong that causes the same turn, without it", rest["act"] / rest["busy"], 1.25
    )
    report(
        "a prediction, without its turn, against a bare ping-pong that causes none", rest["act"] / wall["ping"], 1.25
    )
    report("the same, with the turn in a loop taken off instead", (wall["act"] - wall["turn"]) / wall["ping"])
    report("a prediction, its turn played and on disk, against a bare ping-pong", wall["act"] / wall["ping"])
    report("milliseconds of that turn, engine and disk", 1000 * turn["act"])
    report("milliseconds of such a turn in a loop", 1000 * wall["turn"])
    report("processor time of a tick against two bare ping-pongs", (cpu["see"] + cpu["act"]) / (2 * cpu["ping"]), 1.5)


def main() -> None:
    if not is_installed():
        sys.exit(f"There is no RabbitMQ on this machine. Install it: {INSTALL}")
    broker = PrivateBroker()
    try:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(measure(broker.url, Path(folder) / "run.sqlite"))
    finally:
        broker.close()


if __name__ == "__main__":
    main()
