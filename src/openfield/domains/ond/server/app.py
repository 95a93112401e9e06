"""The server of the protocol as a Starlette application: tokens, addresses, and errors as the protocol's objects.

`wire.py` serves it; the requests themselves are in `routes.py`. Their parameters are read from forms, the query and
JSON bodies alike, within a limit of bytes.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
from collections.abc import Callable, Iterable
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
from openfield.serving.listen import MemoryBudget

ROOTS = ("test", "session", "openapi.json", "docs")
"""How addresses begin; anything else before a slash is a token."""
LOG = logging.getLogger("openfield.ond")
FindApi = Callable[[str | None], Api]


def make_app(find_api: FindApi, names: Iterable[str] = ()) -> Starlette:
    """Return the application that serves the API of those who show a token.

    Args:
        find_api: Returns the API for a token; raises `AgentFault` if there is none.
        names: What the server is called, beside `localhost` and its addresses.
    """
    description = Response(msgspec.json.encode(describe()), media_type="application/json")
    page = resources.files("openfield.domains.ond.server").joinpath("docs.html").read_text("utf-8")
    docs = HTMLResponse(page, headers={"content-security-policy": "default-src 'self' 'unsafe-inline'"})
    routes = [Route("/openapi.json", description), Route("/docs", docs), Route("/{path:path}", Endpoint())]
    return Starlette(routes=routes, middleware=[Middleware(RequestGuard, find_api=find_api, names=names)])


class RequestGuard:
    """Checks the host, the origin and the token of every request before its address is looked up and its body read.

    A page of a foreign site in the browser of a person who runs a server is no client: it could reach the server under
    a name of its own, or from its own origin.
    """

    def __init__(self, app: ASGIApp, find_api: FindApi, names: Iterable[str]) -> None:
        self._app, self._find_api = app, find_api
        self._names = {"localhost", *(name.lower() for name in names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it; a body that is not read ends the connection."""
        headers = dict(scope["headers"])
        try:
            self._check_site(headers.get(b"host", b"").decode("latin-1"), headers.get(b"origin", b"").decode("latin-1"))
            token, scope["path"] = _find_token(scope)
            scope["api"] = self._find_api(token)
        except AgentFault as error:
            unread = headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers
            refusal = Refusal("BadRequest", str(error), headers={"connection": "close"} if unread else None)
            await make_refusal(refusal)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _check_site(self, host: str, origin: str) -> None:
        """Check that the request is for this server, and not from a page of another one."""
        if host and not self._is_ours(host):
            raise AgentFault(f"This server has another name than {host[:80]!r}. Start it with --hostname and this one.")
        if origin and origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower()):
            raise AgentFault("Pages of other sites may not use this server.")

    def _is_ours(self, host: str) -> bool:
        """Return whether a name is ours; an address is, because no foreign site can be called by it."""
        name = host.lower().partition("]")[0].strip("[") if host.startswith("[") else host.lower().partition(":")[0]
        if name in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


class Endpoint:
    """Answers requests of the protocol. An error inside is logged here and not shown to the client."""

    def __init__(self) -> None:
        self._memory = MemoryBudget(MAX_BODIES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; a client that left before it had sent all is answered nothing."""
        body = RequestBody(Request(scope, receive), self._memory)
        try:
            response = await self._answer(scope, body)
        finally:
            body.free()
        if response is not None:
            await response(scope, receive, send)

    async def _answer(self, scope: Scope, body: RequestBody) -> Response | None:
        api: Api = scope["api"]
        try:
            found = await api.answer(scope["method"], scope["path"], await read_parameters(body))
            response = Response(found.body, found.status, found.headers, found.media_type)
        except ClientDisconnect:
            return None
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
        return response


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
MAX_BODIES = 256 << 20
"""Bytes of the bodies of all requests that are being read and answered."""
DISPOSITION = re.compile(rb"\r\ncontent-disposition:([^\r\n]*)", re.IGNORECASE)
"""The header that names a part of a form."""
BOM = b"\xef\xbb\xbf"


def read_query(scope: Scope) -> dict[str, str]:
    """Return the arguments in an address."""
    query = scope["query_string"]
    return dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True)) if query else {}


async def read_parameters(source: RequestBody) -> dict[str, Any]:
    """Return form fields and file parts, then query arguments, then keys of a JSON body, whatever the method."""
    query: dict[str, Any] = read_query(source.request.scope)
    body = await source.read()
    if not body:
        return query
    content_type = source.request.headers.get("content-type", "")
    kind = content_type.split(";")[0].strip().lower()
    if kind == "application/json":
        return read_object(body, "The body") | query
    if kind == "multipart/form-data":
        return query | read_multipart(body, content_type)
    if kind == "application/x-www-form-urlencoded":
        return query | dict(parse_qsl(_decode("form", body), keep_blank_values=True))
    return query


class RequestBody:
    """The body of a request, and the memory it takes until the request is answered."""

    def __init__(self, request: Request, memory: MemoryBudget) -> None:
        self.request = request
        self._memory, self._size = memory, 0

    async def read(self) -> bytes:
        """Return the body; refuse one that is too large, alone or together with the others."""
        headers = self.request.headers
        if "content-length" not in headers and "transfer-encoding" not in headers:
            return b""
        pieces = list[bytes]()
        if int(headers.get("content-length", 0)) > MAX_BODY:
            raise self._refuse()
        async for piece in self.request.stream():
            self._size += len(piece)
            pieces.append(piece)
            if not self._memory.take(len(piece)):
                told = "The server is reading too many results now; post them again in a moment."
                raise Refusal("ServerBusy", told, 500, {"connection": "close"})
            if self._size > MAX_BODY:
                raise self._refuse()
        return b"".join(pieces)

    def free(self) -> None:
        """Give back the memory."""
        self._memory.free(self._size)
        self._size = 0

    def _refuse(self) -> Refusal:
        asks_first = "expect" in self.request.headers  # it sends no body now; the next request would be taken for it
        text = f"The body is larger than {MAX_BODY >> 20} MB."
        return Refusal("BadRequest", text, headers={"connection": "close"} if asks_first else None)


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
