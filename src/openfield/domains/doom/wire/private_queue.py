"""Protocol 0.8, an agent's line: the private queue of a session, one request at a time.

At the rim, between `server.Server`, which opens lines and drops them, and `wire.Session`, which knows the answers.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from openfield.domains.doom.wire.messages import decode_request, encode, error_message, message
from openfield.domains.doom.wire.session import AgentSession
from openfield.errors import AgentProtocol, OpenfieldError, WorldFault

if TYPE_CHECKING:
    from openfield.domains.doom.wire.server import AmqpServer

LOG = logging.getLogger(__name__)
Sender = tuple[str | None, str | None]
"""Where the reply to a request goes, and its id."""


class PrivateQueue:
    """A session's private queue: one request at a time, a repeated one answered as before."""

    def __init__(self, server: AmqpServer, session: AgentSession, queue: Any, sender: Sender, welcome: bytes) -> None:
        self._server = server
        self.session = session
        self.queue = queue
        self.sender = sender
        """By what its registration is known, should it come again."""
        self.welcome = welcome
        """The reply to its registration."""
        self._lock = asyncio.Lock()
        self._under_way: set[asyncio.Task[None]] = set()
        self._last: tuple[str | None, bytes] = (None, b"")
        self.dropped = ""
        """Why the session was ended, for an agent that comes back."""
        self.excuse()

    @property
    def at_work(self) -> bool:
        """Whether a request is being handled."""
        return self._lock.locked()

    def silent(self) -> float:
        """Seconds since the agent was heard of."""
        return asyncio.get_running_loop().time() - self._heard

    def excuse(self) -> None:
        """Counts the agent's silence from now on only."""
        self._heard = asyncio.get_running_loop().time()

    async def take(self, incoming: Any) -> None:
        """Has a request handled to its end: if the connection breaks meanwhile, the same request will come again."""
        work = asyncio.create_task(self._handle(incoming))  # this callback would be cancelled with the connection
        self._under_way.add(work)
        work.add_done_callback(self._under_way.discard)

    async def _handle(self, incoming: Any) -> None:
        """Replies, and only then lets the broker forget the request."""
        async with self._lock:
            self.excuse()
            asked, (known, body) = incoming.header.properties, self._last
            if known is None or known != asked.correlation_id:
                body = await self._answer(incoming.body)
                self._last = asked.correlation_id, body
            if asked.reply_to is not None:
                await self._server.send(asked, body)
            with suppress(Exception):  # a broker that is gone has forgotten it by itself
                await incoming.channel.basic_ack(incoming.delivery_tag, wait=False)
            self.excuse()

    async def _answer(self, body: bytes) -> bytes:
        if self.dropped:
            return encode(message("experiment_exception", message=self.dropped))
        try:
            return encode(await self.session.handle(decode_request(body)))
        except AgentProtocol as error:
            return encode(error_message(type(error).__name__, str(error)))
        except Exception as error:
            fault = error if isinstance(error, OpenfieldError) else WorldFault(f"{type(error).__name__}: {error}")
            LOG.error("A session failed: %s", fault, exc_info=LOG.isEnabledFor(logging.DEBUG))
            await self._server.fail(self.queue.name, fault)
            return encode(message("experiment_exception", message=str(fault)))
