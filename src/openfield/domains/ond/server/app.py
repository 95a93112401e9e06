"""The server of the protocol as a Starlette application: tokens, addresses, and errors as the protocol's objects.

`wire.py` serves it; the requests themselves are in `routes.py`. Their parameters are read from forms, the query and
JSON bodies alike, within a limit of bytes.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from importlib import resources
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from python_multipart.multipart import parse_options_header
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.server.routes import Api, describe, read_object
from openfield.errors import AgentFault, JournalError

ROOTS = ("test", "session", "openapi.json", "docs")
"""How addresses begin; anything else before a slash is a token."""
LOG = logging.getLogger("openfield.ond")


def make_app(api: Api, check: Callable[[str | None], None]) -> Starlette:
    """Return the application that serves an API; `check` raises an error for a token that is not the right one."""
    description = Response(msgspec.json.encode(describe()), media_type="application/json")
    page = resources.files("openfield.domains.ond.server").joinpath("docs.html").read_text("utf-8")
    docs = HTMLResponse(page, headers={"content-security-policy": "default-src 'self' 'unsafe-inline'"})
    routes = [Route("/openapi.json", description), Route("/docs", docs), Route("/{path:path}", Endpoint(api))]
    return Starlette(routes=routes, middleware=[Middleware(TokenGuard, check=check)])


class TokenGuard:
    """Checks the token of every request before its address is looked up."""

    def __init__(self, app: ASGIApp, check: Callable[[str | None], None]) -> None:
        self._app, self._check = app, check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        token, scope["path"] = _find_token(scope)
        try:
            self._check(token)
        except AgentFault as error:
            await make_refusal(Refusal("BadRequest", str(error)))(scope, receive, send)
        else:
            await self._app(scope, receive, send)


class Endpoint:
    """Answers requests of the protocol. An error inside is logged here and not shown to the client."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; a client that left before it had sent all is answered nothing."""
        request = Request(scope, receive)
        try:
            found = await self._api.answer(request.method, scope["path"], await read_parameters(request))
            response = Response(found.body, found.status, found.headers, found.media_type)
        except ClientDisconnect:
            return
        except Refusal as error:
            response = make_refusal(error)
        except asyncio.CancelledError:  # by the server, whose task ends with this response
            response = make_refusal(Refusal("ServerError", "The server ends; ask again when it is back.", 500))
        except AgentFault as error:
            response = make_refusal(Refusal("BadRequest", str(error)))
        except JournalError as error:
            LOG.error("%s", error)
            text = "The record cannot be written now; nothing of this was kept."
            response = make_refusal(Refusal("StorageError", text, 500))
        except Exception:
            LOG.exception("a request of ond failed")
            response = make_refusal(Refusal("ServerError", "The server failed on this request.", 500))
        await response(scope, receive, send)


def make_refusal(error: Refusal) -> Response:
    """Return a refusal as a response."""
    return Response(error.encode(), error.status, error.headers, "application/json")


def _find_token(scope: Scope) -> tuple[str | None, str]:
    """Return the token that a client shows, and the path without it.

    Existing clients can show one only in the address of their server: `http://HOST:PORT/TOKEN`.
    """
    path: str = scope["path"]
    first, _, rest = path.lstrip("/").partition("/")
    if rest and first not in ROOTS:
        return first, f"/{rest}"
    shown = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1").removeprefix("Bearer ")
    return shown or read_query(scope).get("token"), path


MAX_BODY = 64 << 20
"""Bytes of a body; 100 rounds of 1,000 samples and 400 classes fit."""
DISPOSITION = re.compile(rb"\r\ncontent-disposition:([^\r\n]*)", re.IGNORECASE)
"""The header that names a part of a form."""
BOM = b"\xef\xbb\xbf"


def read_query(scope: Scope) -> dict[str, str]:
    """Return the arguments in an address."""
    query = scope["query_string"]
    return dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True)) if query else {}


async def read_parameters(request: Request) -> dict[str, Any]:
    """Return form fields and file parts, then query arguments, then keys of a JSON body, whatever the method."""
    query: dict[str, Any] = read_query(request.scope)
    body = await read_body(request)
    if not body:
        return query
    content_type = request.headers.get("content-type", "")
    kind = content_type.split(";")[0].strip().lower()
    if kind == "application/json":
        return read_object(body, "The body") | query
    if kind == "multipart/form-data":
        return query | read_multipart(body, content_type)
    if kind == "application/x-www-form-urlencoded":
        return query | dict(parse_qsl(_decode("form", body), keep_blank_values=True))
    return query


async def read_body(request: Request) -> bytes:
    """Return the body of a request; refuse one that is too large."""
    headers = request.headers
    if "content-length" not in headers and "transfer-encoding" not in headers:
        return b""
    pieces, size = list[bytes](), int(headers.get("content-length", 0))
    if size <= MAX_BODY:
        size = 0
        async for piece in request.stream():
            size += len(piece)
            pieces.append(piece)
            if size > MAX_BODY:
                break
    if size > MAX_BODY:
        asks_first = "expect" in headers  # such a client sends no body now, and the next request would be taken for it
        text = f"The body is larger than {MAX_BODY >> 20} MB."
        raise Refusal("BadRequest", text, headers={"connection": "close"} if asks_first else None)
    return b"".join(pieces)


def read_multipart(body: bytes, content_type: str) -> dict[str, str]:
    """Return the fields and file parts of a multipart body as text; refuse one that is no form.

    The body is in memory, so that it is only cut at its border: 0.02 ms for 100 rows. A parser of pieces takes 0.25 ms.
    """
    border = parse_options_header(content_type)[1].get(b"boundary")
    _, *parts = (b"\r\n" + body).split(b"\r\n--" + border) if border else [body]
    if not parts or not parts[-1].startswith(b"--"):
        raise Refusal("BadRequest", "The form cannot be read.")
    found: dict[str, str] = {}
    for head, _, content in (part.partition(b"\r\n\r\n") for part in parts[:-1]):
        disposition = DISPOSITION.search(head)
        name = parse_options_header(disposition[1])[1].get(b"name") if disposition else None
        if name is None:
            raise Refusal("BadRequest", "A part of the form has no name.")
        key = name.decode("utf-8", "replace")
        found[key] = _decode(key, content)
    return found


def _decode(key: str, content: bytes) -> str:
    try:
        wide = content[:2] in (b"\xff\xfe", b"\xfe\xff")
        return content.decode("utf-16") if wide else content.removeprefix(BOM).decode()
    except UnicodeDecodeError:
        raise Refusal("BadRequest", f"'{key[:40]}' is no text.") from None
