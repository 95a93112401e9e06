"""Requests and replies over RabbitMQ, as clients of protocol 0.8 make them.

If the broker goes away, the last request is sent again.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from contextlib import suppress
from typing import Any

from openfield.domains.doom.wire.messages import REGISTRATION_QUEUE, VERSION, Message, decode_message, encode_message
from openfield.errors import AgentFault, AgentProtocol
from openfield.lazy import import_extra

RECONNECT_SECONDS = 1.0
RESEND_SECONDS = 2.0
"""Seconds until a request is sent again; a server that still works on it gives the same reply to both."""


def load_aio_pika() -> Any:
    """Import the client library for RabbitMQ when it is first needed."""
    aio_pika = import_extra("aio_pika", "amqp", "Protocol 0.8 over RabbitMQ")
    for name in ("aiormq", "aio_pika"):  # what matters of their warnings is raised as well
        logging.getLogger(name).addHandler(logging.NullHandler())
    return aio_pika


class Rpc:
    """Requests and replies over a broker, one at a time."""

    def __init__(self, url: str, timeout: float = 1200.0) -> None:
        self._url = url
        self._timeout = timeout
        self._pika = load_aio_pika()
        self._connection: Any = None
        self._waiting: tuple[str, asyncio.Future[Message]] | None = None
        self.queue = f"rpc.client.v{VERSION}.{uuid.uuid4().hex}"

    async def __aenter__(self) -> Rpc:
        await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def connect(self) -> None:
        """Connect and declare the queues both sides know."""
        self._connection = await self._pika.connect(self._url)
        self._connection.close_callbacks.add(self._connection_lost)
        self._channel = await self._connection.channel(publisher_confirms=False)
        await self._channel.declare_queue(REGISTRATION_QUEUE, durable=True)
        queue = await self._channel.declare_queue(self.queue, exclusive=True, auto_delete=True)
        await queue.consume(self._receive, no_ack=True)

    async def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            with suppress(Exception):
                await self._connection.close()

    async def call(self, queue: str, content: Message) -> Message:
        """Send a request and return the reply; repeat it under the same id if the broker may have lost it."""
        correlation, body = str(uuid.uuid4()), encode_message(content)
        clock = asyncio.get_running_loop().time
        deadline, once = clock() + self._timeout, queue == REGISTRATION_QUEUE  # two of these would be two experiments
        while (left := deadline - clock()) > 0:
            try:
                return await self._try(queue, correlation, body, left if once else min(left, RESEND_SECONDS))
            except TimeoutError:
                continue
            except (ConnectionError, self._pika.exceptions.AMQPError, RuntimeError):
                await self._reconnect()
        raise AgentFault(f"No reply from {queue} within {self._timeout:g} s.")

    async def _try(self, queue: str, correlation: str, body: bytes, left: float) -> Message:
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting = correlation, future
        outgoing = self._pika.Message(body, correlation_id=correlation, reply_to=self.queue, delivery_mode=1)
        try:
            await self._channel.default_exchange.publish(outgoing, queue, mandatory=False)
            return await asyncio.wait_for(future, left)
        finally:
            self._waiting = None
            if future.done() and not future.cancelled():
                future.exception()  # if sending failed, the reply's exception is not awaited

    def _connection_lost(self, *_: object) -> None:
        """Fail the pending request: its reply will not come."""
        if self._waiting is not None and not self._waiting[1].done():
            self._waiting[1].set_exception(ConnectionError("the broker went away"))

    async def _reconnect(self) -> None:
        await self.close()
        while True:
            await asyncio.sleep(RECONNECT_SECONDS)
            with suppress(OSError, self._pika.exceptions.AMQPError):
                await self.connect()
                return

    async def _receive(self, incoming: Any) -> None:
        if self._waiting is None:
            return
        wanted, future = self._waiting
        if incoming.correlation_id == wanted and not future.done():
            try:
                future.set_result(decode_message(incoming.body))
            except AgentProtocol as error:
                future.set_exception(error)
