"""HTTP on a connection: whole requests are answered one after the other, whatever is no HTTP with an error object.

Under `http.py`, whose uvicorn accepts the connections and ends them. Existing clients ask for feedback with all ids in
the address, and leave when an error is not JSON, so neither is left to a parser's limits. A request is only begun when
all of it is here: most clients send head and body in two packets, and to begin with the first costs a wait more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import httptools

from openfield.domains.ond.server.errors import Refusal
from openfield.domains.ond.server.http import Answerer
from openfield.domains.ond.server.request import Request, read_query
from openfield.domains.ond.server.routes import Answer, refuse

MOST_BYTES = 64 << 20
"""Of a request's body; 100 rounds of 1,000 samples and 400 classes fit."""
MOST_ADDRESS = 8 << 20
MOST_PATH = 8 << 10
"""Of an address before its query."""
MOST_HEADERS = 64 << 10
NOTHING = HTTPStatus.NO_CONTENT.value
LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}


class Connection(asyncio.Protocol):
    """A client's connection, as uvicorn's server keeps it."""

    def __init__(self, config: Any, server_state: Any, app_state: Any, _loop: Any = None) -> None:
        self._answer: Answerer = config.loaded_app
        self._patience: float = config.timeout_keep_alive
        self._server = server_state
        self._loop = _loop or asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[Request | Refusal] = deque()
        self._task: asyncio.Task[None] | None = None
        self._clogged = self._ending = self._refused = self._in_body = False
        self._unread = 0  # bytes since the parser told of anything

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        self._transport: Any = transport
        self._server.connections.add(self)
        self._used = self._loop.time()
        self._timer = self._loop.call_later(self._patience, self._look_after)

    def connection_lost(self, _: Exception | None) -> None:
        """The client is gone; what it asked last is done, and answered to nobody."""
        self._server.connections.discard(self)
        self._timer.cancel()
        self._waiting.clear()

    def eof_received(self) -> bool:
        """The client will ask nothing more; it is still answered."""
        self._ending = True
        return self._task is not None or bool(self._waiting)

    def data_received(self, data: bytes) -> None:
        """A further piece of what the client sends."""
        self._used = self._loop.time()
        self._unread += len(data)
        try:
            self._parser.feed_data(data)
            if self._unread > MOST_HEADERS:  # of a header, which the parser keeps until all of it is here
                raise httptools.HttpParserError("there is no end to it")
        except httptools.HttpParserUpgrade as error:
            self._stay(data[error.args[0] :])
        except httptools.HttpParserError:
            self._break_off()

    def pause_writing(self) -> None:
        """The client does not read its answers."""
        self._clogged = True

    def resume_writing(self) -> None:
        """The client reads again."""
        self._clogged = False
        self._go_on()

    def shutdown(self) -> None:
        """The server ends: what is being answered still is."""
        self._ending = True
        if self._task is None:
            self._transport.close()

    def on_message_begin(self) -> None:
        """A request begins."""
        self._url, self._head_bytes, self._body_bytes, self._unread = b"", 0, 0, 0
        self._refused = self._in_body = False
        self._headers: dict[bytes, bytes] = {}
        self._pieces: list[bytes] = []

    def on_url(self, url: bytes) -> None:
        """A further part of the address."""
        self._unread = 0
        self._url += url
        if len(self._url) > MOST_ADDRESS:
            raise httptools.HttpParserInvalidURLError("the address is too long")

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or one that comes after the body, where it has nothing to say."""
        self._unread = 0
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > MOST_HEADERS:
            raise httptools.HttpParserError("the headers are too long")
        if not self._in_body:
            self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """The body follows, if it is not too large."""
        self._in_body = True
        if self._parser.should_upgrade():
            return
        self._add_bytes(int(self._headers.get(b"content-length", b"0")))
        self._body_bytes = 0
        if self._headers.get(b"expect", b"").lower() == b"100-continue":
            self._ending = self._ending or self._refused  # no body may come, and what comes instead be taken for it
            if not self._refused and self._task is None:
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """A further piece of the body; to join each with those before would copy a large one a thousand times."""
        self._unread = 0
        self._add_bytes(len(body))
        if not self._refused:
            self._pieces.append(body)

    def on_message_complete(self) -> None:
        """The request is here. The first HTTP takes a connection for closed after it, and would wait for that."""
        self._unread = 0
        if self._ending or self._parser.should_upgrade():  # there was a last one already, or it is read again
            return
        request = None if self._refused else self._read()  # which may be no request after all
        self._ending = not self._parser.should_keep_alive() or self._parser.get_http_version() == "1.0"
        if request is not None:
            self._put(request)
        elif self._ending and self._task is None and not self._waiting:  # the refusal was not known to be the last
            self._transport.close()

    def _stay(self, rest: bytes) -> None:
        """Reads a request that asks for another protocol as one that does not; the parser leaves its body unread."""
        method, headers = self._parser.get_method(), self._headers.items()
        if method == b"CONNECT":  # which asks for nothing else
            self._break_off()
            return
        lines = [b"%b: %b\r\n" % header for header in headers if header[0] not in (b"connection", b"upgrade")]
        self._parser = httptools.HttpRequestParser(self)
        first, last = b"%b %b HTTP/1.1\r\n" % (method, self._url), b"connection: close\r\n\r\n"
        self.data_received(b"".join([first, *lines, last, rest]))

    def _break_off(self) -> None:
        """Refuses what is no HTTP, and reads no further, unless it comes after the client's last request."""
        if not self._ending:
            self._ending = True
            self._transport.pause_reading()
            self._put(Refusal("BadRequest", "Invalid HTTP request received."))

    def _add_bytes(self, count: int) -> None:
        """Counts the bytes of a body; the first that is too many has it refused, and the rest passed over."""
        self._body_bytes += count
        if self._body_bytes > MOST_BYTES and not self._refused:
            self._refused = True
            self._pieces.clear()
            if not self._ending:
                self._put(Refusal("BadRequest", f"The body is larger than {MOST_BYTES >> 20} MB."))

    def _read(self) -> Request:
        address = self._url
        if not address.startswith(b"/"):  # a proxy's form, whose host is of no interest
            parsed = httptools.parse_url(address)
            address = (parsed.path or b"/") + b"?" + (parsed.query or b"")
        path, _, query = address.partition(b"#")[0].partition(b"?")
        if len(path) > MOST_PATH or not path.isascii():
            raise httptools.HttpParserInvalidURLError("there is no such address")
        method, name = self._parser.get_method().decode(), path.decode()
        return Request(
            method, unquote(name) if "%" in name else name, read_query(query), self._headers, b"".join(self._pieces)
        )

    def _put(self, request: Request | Refusal) -> None:
        self._waiting.append(request)
        if self._task is not None or self._clogged:  # the next one is here before the last is answered
            self._transport.pause_reading()
        self._go_on()

    def _go_on(self) -> None:
        """Answers what waits, unless that is being done, or the client does not read."""
        if self._waiting and self._task is None and not self._clogged:
            self._task = self._loop.create_task(self._serve())
            self._server.tasks.add(self._task)  # which a server that ends waits for

    async def _serve(self) -> None:
        task = self._task
        try:
            while self._waiting and not self._clogged:
                request = self._waiting.popleft()
                answer = refuse(request) if isinstance(request, Refusal) else await self._answer(request)
                self._write(answer, isinstance(request, Request) and request.method == "HEAD")
        finally:
            self._task = None
            self._server.tasks.discard(task)

    def _write(self, answer: Answer, head_only: bool) -> None:
        """Sends an answer in one piece."""
        if self._transport.is_closing():
            return
        self._used = self._loop.time()
        last = self._ending and not self._waiting
        lines = [LINES[answer.status], *(b"%b: %b\r\n" % header for header in self._server.default_headers)]
        lines.append(f"content-type: {answer.type}\r\n".encode())
        lines += [f"{name}: {value}\r\n".encode("latin-1", "replace") for name, value in answer.headers]
        if answer.status != NOTHING:
            lines.append(b"content-length: %d\r\n" % len(answer.body))
        lines.append(b"connection: close\r\n\r\n" if last else b"\r\n")
        self._transport.write(b"".join(lines if head_only else [*lines, answer.body]))
        if last:
            self._transport.close()
        elif not self._waiting:
            self._transport.resume_reading()

    def _look_after(self) -> None:
        """Closes a connection that nobody uses; a timer for every request would cost more than this one."""
        idle = self._loop.time() - self._used if self._task is None else 0.0
        if idle >= self._patience:
            self._transport.close()
        else:
            self._timer = self._loop.call_later(self._patience - idle, self._look_after)
