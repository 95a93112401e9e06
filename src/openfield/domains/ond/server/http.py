"""HTTP by uvicorn, with the limits and error objects that clients of OND need.

Between `wire.py` and the application in `app.py`. Existing clients put all ids of a feedback request into the address,
and stop when an error is not JSON: so addresses may be long, and every refusal is an error object.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import httptools
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from openfield.domains.ond.errors import Refusal
from openfield.serving.listen import MemoryBudget

MAX_ADDRESS = 8 << 20
"""Bytes of an address with its query."""
MAX_PATH = 8 << 10
"""Bytes of an address before its query."""
MAX_ADDRESSES = 128 << 20
"""Bytes of the addresses of all requests that are being read and answered, apart from the first kilobytes of each."""
MAX_HEADERS = 64 << 10
"""Bytes of all headers of a request."""
NO_HTTP = "Invalid HTTP request received."
GRACE = 3
"""Seconds in which requests under way must be answered when the server is told to end; a large zip takes longer."""
IDLE = 300
"""Seconds after which an idle connection is closed."""


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
        for connection in server.server_state.connections:
            if isinstance(connection, OndHttpProtocol) and connection.flow.write_paused:
                connection.transport.abort()  # or a client that reads nothing would be waited for
        raise
    finally:
        listener.close()  # a server told to end while it starts leaves it open


def make_config(app: ASGIApp) -> uvicorn.Config:
    """Return uvicorn's settings for an application."""
    return uvicorn.Config(
        app,
        http=OndHttpProtocol,
        interface="asgi3",
        log_level="error",
        access_log=False,
        lifespan="off",
        proxy_headers=False,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=GRACE,
        ws="none",
    )


class OndHttpProtocol(HttpToolsProtocol):
    """A connection of a client, as uvicorn's server keeps it."""

    addresses = MemoryBudget(MAX_ADDRESSES)
    _broken = _in_body = False
    _address_bytes = 0
    _head_bytes = _unread = 0  # `_unread`: bytes that the parser keeps because an element is not complete

    def connection_made(self, transport: Any) -> None:
        """Start the timer that closes an idle connection; uvicorn starts it only after a response."""
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Free the connection; uvicorn's timer would keep one that broke for another five minutes."""
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self._free_address()
        self.pipeline.clear()

    def eof_received(self) -> Any:  # uvicorn says None
        """Answer the last request of a client that sends nothing more."""
        if self.cycle is None or self.cycle.response_complete or self.cycle.more_body:
            return None
        self.cycle.keep_alive = False
        return True

    def data_received(self, data: bytes) -> None:
        """Read a piece of a request."""
        self._unset_keepalive_if_required()
        self._unread += len(data)
        try:
            self.parser.feed_data(data)
            if self._unread > MAX_HEADERS:
                raise httptools.HttpParserError("an element has no end")
        except httptools.HttpParserUpgrade as error:
            self._read_without_upgrade(data[error.args[0] :])
        except httptools.HttpParserError:
            self._stop_reading()
        else:
            if self.cycle is None or self.cycle.response_complete or self.cycle.more_body:
                self._start_timer()

    def on_url(self, url: bytes) -> None:
        """Take a piece of the address."""
        self._unread = 0
        super().on_url(url)
        if len(self.url) > MAX_PATH:
            self._address_bytes += len(url)
            fits = self.addresses.take(len(url))
            if len(self.url) > MAX_ADDRESS or not fits:
                raise httptools.HttpParserInvalidURLError("the address is too long")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; one that comes after the body is ignored."""
        self._unread = 0
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > MAX_HEADERS:
            raise httptools.HttpParserError("the headers are too long")
        if not self._in_body:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start to answer; the query is cut off first, because httptools reads at most 64 kB of an address."""
        self._in_body = True
        if self.parser.should_upgrade():
            return
        path, _, query = self.url.partition(b"#")[0].partition(b"?")
        if len(path) > MAX_PATH:
            raise httptools.HttpParserInvalidURLError("the path is too long")
        self.url = path
        super().on_headers_complete()
        self.scope["query_string"] = query

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request; one that asks for another protocol is read again without that wish."""
        self._unread = self._head_bytes = 0
        self._in_body = False
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Go on with the next request, or refuse what came after the last one and is no HTTP."""
        last = not self.pipeline
        self._free_address()
        super().on_response_complete()
        if self._broken and last and not self.transport.is_closing():
            self.send_400_response(NO_HTTP)

    def send_400_response(self, msg: str) -> None:
        """Send the protocol's error object and close the connection."""
        body = Refusal("BadRequest", msg).encode()
        headers = [*self.server_state.default_headers, (b"content-type", b"application/json")]
        headers += [(b"content-length", b"%d" % len(body)), (b"connection", b"close")]
        lines = [b"%b: %b\r\n" % header for header in headers]
        self.transport.write(b"".join([STATUS_LINE[400], *lines, b"\r\n", body]))
        self.transport.close()

    def _free_address(self) -> None:
        self.addresses.free(self._address_bytes)
        self._address_bytes = 0

    def _start_timer(self) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def _stop_reading(self) -> None:
        """Refuse what is no HTTP, after the requests that came before it have been answered."""
        self._broken = True
        self.transport.pause_reading()
        if self.pipeline and self.cycle.more_body:
            self.pipeline.popleft()  # the broken request itself
        elif self.cycle is None or self.cycle.response_complete or self.cycle.more_body:
            self.send_400_response(NO_HTTP)

    def _read_without_upgrade(self, rest: bytes) -> None:
        """Read a request that asks for another protocol as one that does not; the parser leaves its body unread."""
        method = self.parser.get_method()
        if method == b"CONNECT":  # which asks for nothing else
            self._stop_reading()
            return
        lines = [b"%b: %b\r\n" % header for header in self.headers if header[0] not in (b"connection", b"upgrade")]
        self.parser = httptools.HttpRequestParser(self)
        head = [b"%b %b HTTP/1.1\r\n" % (method, self.url), *lines, b"connection: close\r\n\r\n"]
        self.data_received(b"".join([*head, rest]))
