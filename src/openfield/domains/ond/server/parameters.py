"""The parameters of a request, however a client sends them: the one place that knows what existing clients do oddly.

Between `app.py` and Starlette's parsers. Parameters come as form fields, file parts, query arguments or keys of a JSON
body, whatever the method. Tokens come in the address, texts in UTF-16 or with a byte-order mark, addresses with the
name of a server as proxies send them or with a slash at the end, and forms with a text before them.
"""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import parse_qsl

from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, Headers, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message, Receive, Scope

from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.server.routes import read_object
from openfield.serving.listen import MemoryBudget

ROOTS = ("test", "session", "openapi.json", "docs")
"""How addresses begin; anything else before a slash is a token."""
MAX_PATH = 8 << 10
"""Characters of an address before its query."""
MAX_BODY = 64 << 20
"""Bytes of a body; 100 rounds of 1,000 samples and 400 classes fit."""
MAX_FIELD = 8 << 20
"""Bytes of a form field that is not a file."""
MAX_PARTS = 1_000
"""Parts of a form."""
CHARSETS = (b"utf-8", b"utf8", b"ascii", b"us-ascii", b"latin-1", b"iso-8859-1")
"""How a form may say its fields are encoded. Others may take very long to decode."""
logging.getLogger("python_multipart").addHandler(logging.NullHandler())  # its client learns what is wrong with a form


def adapt_address(scope: Scope) -> str | None:
    """Bring the address of a request to the protocol's form, and return the token that the client shows.

    Existing clients can show one only in the address of their server: `http://HOST:PORT/TOKEN`.
    """
    path: str = scope["path"]
    if path.startswith(("http://", "https://")):
        path = "/" + "/".join(path.split("/")[3:])
        scope["query_string"] = scope["query_string"].partition(b"#")[0]
    if len(path) > MAX_PATH:
        raise Refusal("BadRequest", "The address is too long.", headers={"connection": "close"})
    first, _, rest = path.lstrip("/").partition("/")
    in_path = bool(rest) and first not in ROOTS
    scope["path"] = "/" + (rest if in_path else path).strip("/")
    if in_path:
        return first
    if shown := Headers(scope=scope).get("authorization", "").removeprefix("Bearer "):
        return shown
    query: bytes = scope["query_string"]
    return dict(parse_qsl(query.decode("latin-1"))).get("token") if b"token=" in query else None


def has_body(headers: Headers) -> bool:
    """Return whether a request comes with a body."""
    return "content-length" in headers or "transfer-encoding" in headers


class RequestBody:
    """The body of a request as it is received, and the memory it takes until the request is answered."""

    def __init__(self, scope: Scope, receive: Receive, memory: MemoryBudget) -> None:
        self._headers, self._receive, self._memory = Headers(scope=scope), receive, memory
        self._size = 0

    async def receive(self) -> Message:
        """Return a piece of the body; refuse one that is too large, alone or together with the others."""
        if not self._size and int(self._headers.get("content-length", 0)) > MAX_BODY:
            raise self._refuse()
        message = await self._receive()
        piece: bytes = message.get("body", b"")
        first, self._size = not self._size, self._size + len(piece)
        if not self._memory.take(len(piece)):
            text = "The server is reading too many results now; post them again in a moment."
            raise Refusal("ServerBusy", text, 500, {"connection": "close"})
        if self._size > MAX_BODY:
            raise self._refuse()
        if first:
            message["body"] = self._skip_preamble(piece)
        return message

    def free(self) -> None:
        """Give back the memory."""
        self._memory.free(self._size)
        self._size = 0

    def _skip_preamble(self, piece: bytes) -> bytes:
        """Return the first piece of a form without the text before the form, which Starlette refuses."""
        border = parse_options_header(self._headers.get("content-type"))[1].get(b"boundary")
        return piece[max(piece.find(b"--" + border), 0) :] if border else piece

    def _refuse(self) -> Refusal:
        asks_first = "expect" in self._headers  # it sends no body now; the next request would be taken for it
        text = f"The body is larger than {MAX_BODY >> 20} MB."
        return Refusal("BadRequest", text, headers={"connection": "close"} if asks_first else None)


async def read_request_parameters(request: Request) -> dict[str, Any]:
    """Return form fields and file parts, then query arguments, then keys of a JSON body."""
    query: dict[str, Any] = dict(request.query_params)
    if not has_body(request.headers):
        return query
    kind, options = parse_options_header(request.headers.get("content-type"))
    body = await request.body()  # of other kinds too, which may be too large; a form is read faster in one piece
    if kind == b"application/json" and body:
        return read_object(body, "The body") | query
    if options.get(b"charset", b"utf-8").lower() not in CHARSETS:
        raise Refusal("BadRequest", "The form must be encoded in UTF-8.")
    try:
        form = request.form(max_files=MAX_PARTS, max_fields=MAX_PARTS, max_part_size=MAX_FIELD)
        async with form as parts:
            shown = {"original_client": "1"} if _is_original(request, parts) else {}
            return query | shown | {name: await _read_text(name, part) for name, part in parts.items()}
    except HTTPException as error:
        raise Refusal("BadRequest", f"The form cannot be read: {error.detail}") from None


def _is_original(request: Request, parts: FormData) -> bool:
    """Return whether the original's client opens a session: by its name, and a configuration as a file."""
    agent = request.headers.get("user-agent", "")
    return agent.startswith("python-requests/") and isinstance(parts.get("configuration"), UploadFile)


async def _read_text(name: str, part: str | UploadFile) -> str:
    """Return a part of a form as text."""
    if isinstance(part, str):
        return part.removeprefix("\ufeff")
    content = await part.read()
    try:
        return content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        raise Refusal("BadRequest", f"'{name[:40]}' is not text.") from None
