"""HTTP as uvicorn reads it, but for two things: long addresses are read, and what is no HTTP gets an error object.

Under `http.py`. Existing clients ask for feedback with all ids in the address, and leave when an error is not JSON.
"""

from __future__ import annotations

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from openfield.domains.ond.refusal import Refusal
from openfield.domains.ond.wire import refuse

PARSED = 60_000
"""Bytes of an address that the parser's 16-bit offsets can take, with some to spare."""
MOST_ADDRESS = 8 << 20
MOST_HEADERS = 64 << 10


class PatientProtocol(HttpToolsProtocol):
    """A connection."""

    def on_message_begin(self) -> None:
        """A request begins."""
        self._header_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A further part of the address."""
        if len(self.url) + len(url) > MOST_ADDRESS:
            raise httptools.HttpParserInvalidURLError("the address is too long")
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header."""
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > MOST_HEADERS:
            raise httptools.HttpParserError("the headers are too long")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The request can be answered; a query the parser could not take is handed on beside it."""
        path, _, query = self.url.partition(b"?")
        if len(self.url) <= PARSED or len(path) > PARSED:
            super().on_headers_complete()
            return
        self.url = path
        super().on_headers_complete()
        self.scope["query_string"] = query.partition(b"#")[0]

    def send_400_response(self, msg: str) -> None:
        """Says what is wrong as the protocol says it."""
        answer = refuse(Refusal("BadRequest", msg))
        head = f"content-type: {answer.type}\r\ncontent-length: {len(answer.body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + head.encode() + answer.body)
        self.transport.close()
