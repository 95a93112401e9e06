"""HTTP by uvicorn, with bounds on each client, long addresses, and refusals as clients expect them.

Between `wire.py` and the application in `app.py`. uvicorn reads with httptools. `HttpConnection` hands it whole heads
of requests: it bounds their bytes and how long a client may be silent, keeps a long query aside, which httptools
refuses from 64 kB on, and leaves out requests for a newer HTTP. Existing clients stop if an error is not JSON, so that
anything but HTTP is refused with an error object too.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from openfield.domains.ond.errors import Refusal
from openfield.serving.listen import MemoryBudget

MAX_ADDRESS = 8 << 20
"""Bytes of the address of a request: existing clients put all ids of a feedback request into it."""
MAX_HEADERS = 64 << 10
"""Bytes of all headers of a request."""
LONG_ADDRESS = 32 << 10
"""Bytes of an address from which on its query is kept aside."""
UPGRADE = re.compile(rb"^upgrade:[^\r\n]*\r\n", re.IGNORECASE | re.MULTILINE)
MAX_HEADS = 128 << 20
"""Bytes that all connections together may have sent before their requests begin."""
GRACE = 3
"""Seconds in which requests under way must be answered when the server is told to end; a large zip takes longer."""
IDLE = 300
"""Seconds without a byte after which a connection is closed."""


async def serve_http(app: ASGIApp, host: str, port: int, ready: Callable[[int], None]) -> None:
    """Serve an application until cancelled; tell `ready` the port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=512)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # inherited; without it every answer waits 40 ms
    server = uvicorn.Server(make_config(app))
    task = asyncio.ensure_future(server.serve(sockets=[listener]))
    try:
        ready(listener.getsockname()[1])
        await asyncio.shield(task)
    except asyncio.CancelledError:
        server.should_exit = server.force_exit = True
        await task
        for connection in list(server.server_state.connections):
            connection.transport.abort()  # or a client that reads nothing would be waited for
        raise
    finally:
        listener.close()  # a server told to end while it starts leaves it open


def make_config(app: ASGIApp) -> uvicorn.Config:
    """Return uvicorn's settings for an application."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        connection: HttpConnection = scope["state"]["connection"]
        with connection.answering(scope, receive) as receive_in_time:
            await app(scope, receive_in_time, send)

    return uvicorn.Config(
        answer,
        http=HttpConnection,
        interface="asgi3",
        log_level="error",
        access_log=False,
        lifespan="off",
        proxy_headers=False,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=GRACE,
        ws="none",
    )


class HttpParser(HttpToolsProtocol):
    """uvicorn's protocol, which refuses anything but HTTP with an error object, after all requests before it."""

    _broken = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, but none that comes after the body: it was checked without."""
        if "method" not in self.scope:
            super().on_header(name, value)

    def send_400_response(self, msg: str) -> None:
        """Refuse the request, and read no further."""
        self._broken = True
        self.flow.pause_reading()
        cut_short = self.cycle is not None and self.cycle.more_body
        if cut_short and self.pipeline:
            self.pipeline.popleft()  # the newest request, whose body is broken; others are before it
        elif self.cycle is None or self.cycle.response_complete or cut_short:
            write_refusal(self.transport, msg)

    def on_response_complete(self) -> None:
        """Go on with the next request, or refuse the bytes after the last one."""
        last = not self.pipeline
        super().on_response_complete()
        if self._broken and last:
            write_refusal(self.transport, "Invalid HTTP request received.")


def write_refusal(transport: asyncio.Transport, message: str) -> None:
    """Write a refusal to a connection and close it."""
    if transport.is_closing():
        return
    body = Refusal("BadRequest", message).encode()
    head = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
    transport.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
    transport.close()


class HttpConnection(asyncio.Protocol):
    """A connection of a client: hands its bytes to uvicorn, within bounds of bytes and time."""

    heads = MemoryBudget(MAX_HEADS)

    def __init__(self, **settings: Any) -> None:
        """Take what uvicorn gives the protocol of a connection."""
        settings["app_state"] = {**settings["app_state"], "connection": self}
        self.http = HttpParser(**settings)
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._heard = self._loop.time()
        self._head = bytearray()  # of a request that has not all of it
        self._head_bytes = 0
        self._query: bytes | None = None  # the long one of the request that begins
        self._answering = self._ended = False
        self._receiving = False  # while a request is answered: whether its body is waited for
        self._passing = False  # whether the rest of a body comes that is not read

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for a request."""
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self.http.connection_made(self._transport)
        self.close_if_silent(self._heard)

    def connection_lost(self, exc: Exception | None) -> None:
        """Free the connection."""
        if self._timer is not None:
            self._timer.cancel()
        self._free_head()
        self.http.connection_lost(None)  # after an error uvicorn keeps its own timer for five minutes

    def data_received(self, data: bytes) -> None:
        """Read a piece of a request; hold it back until the head is whole."""
        self._heard = self._loop.time()
        if not (self._has_request or self._passing):
            self._head_bytes += len(data)
            fits = self.heads.take(len(data))
            searched = max(len(self._head) - 3, 0)
            self._head += data
            end = self._head.find(b"\r\n\r\n", searched)
            if self._is_too_long(end) or not fits:
                busy = "The server is reading too many requests now; ask again in a moment."
                limits = (
                    f"The address or the headers are longer than {MAX_ADDRESS >> 20} MB and {MAX_HEADERS >> 10} kB."
                )
                write_refusal(self._transport, limits if fits else busy)
                return
            if end < 0:
                return
            data = self._adapt_head(bytes(self._head), end)
            self._head.clear()
        self.http.data_received(data)

    def _is_too_long(self, end: int) -> bool:
        """Return whether the address or the headers of a head that ends there, or not yet (-1), are too long."""
        end = len(self._head) if end < 0 else end
        if end <= MAX_HEADERS:
            return False
        line = self._head.find(b"\r\n", 0, end)
        return end > MAX_ADDRESS if line < 0 else line > MAX_ADDRESS or end - line > MAX_HEADERS

    def _adapt_head(self, data: bytes, end: int) -> bytes:
        """Return a request as httptools reads it: without a query that is too long, or a wish for a newer HTTP."""
        head, rest = data[: end + 2], data[end + 2 :]
        if len(head) > LONG_ADDRESS and (line := head.find(b"\r\n")) > LONG_ADDRESS:
            start, _, version = head[:line].rpartition(b" ")
            start, _, self._query = start.partition(b"?")
            head = b"%b %b%b" % (start, version, head[line:])
        return UPGRADE.sub(b"", head) + rest

    def eof_received(self) -> bool:
        """Keep the connection open: requests from before its end are answered."""
        self._ended = True
        self._loop.call_soon(self._end)
        return True

    def pause_writing(self) -> None:
        """Wait for a client that does not read."""
        self.http.pause_writing()

    def resume_writing(self) -> None:
        """Go on with a client that reads again."""
        self.http.resume_writing()

    @contextmanager
    def answering(self, scope: Scope, receive: Receive) -> Iterator[Receive]:
        """Answer a request; yield how to receive its body, within the time that clients have."""
        unread = any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])

        async def receive_in_time() -> Message:
            nonlocal unread
            self._receiving = True
            message = await receive()
            self._receiving = False
            unread = bool(message.get("more_body"))
            return message

        self._free_head()
        if self._query is not None:
            scope["query_string"], self._query = self._query, None
        self._answering = True
        try:
            yield receive_in_time
        finally:
            self._answering, self._receiving, self._passing = False, False, unread
            self._heard = self._loop.time()
            if self._ended:
                self._loop.call_soon(self._end)  # unless another request came before the end

    def close_if_silent(self, now: float) -> None:
        """Close the connection if it is the client's turn and nothing came for long; else look again later."""
        waiting = not self._answering or self._receiving
        if waiting and now >= self._heard + IDLE:
            self._transport.close()
        else:
            again = self._heard + IDLE if waiting else now + IDLE
            self._timer = self._loop.call_at(again, self.close_if_silent, again)

    @property
    def _has_request(self) -> bool:
        """Whether uvicorn has read a head that is not answered yet; its application may begin only later."""
        return self._answering or (self.http.cycle is not None and not self.http.cycle.response_complete)

    def _free_head(self) -> None:
        self.heads.free(self._head_bytes)
        self._head_bytes = 0

    def _end(self) -> None:
        """Close the connection of a client that has ended, unless it is being answered."""
        if not self._answering or self._receiving:
            self._transport.close()
