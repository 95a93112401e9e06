"""The protocol over HTTP: an ASGI application that uvicorn serves, and `wire.py` answers.

A thin shell: parameters are gathered from form, query and JSON alike, sizes are limited, nothing else is decided here.
It speaks ASGI without a framework: metadata cost 0.185 ms of CPU with Starlette and cost 0.135 ms without.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec

from openfield.domains.ond.office import Office
from openfield.domains.ond.refusal import Refusal
from openfield.domains.ond.sheet import Shelf
from openfield.domains.ond.wire import Answer, Wire, refuse
from openfield.errors import AgentFault, InvalidInput, JournalError, MissingExtra
from openfield.groups import GroupDesk

if TYPE_CHECKING:
    from openfield.serve import Desk

MOST_BYTES = 64 << 20
"""Of a request's body; 100 rounds of 1,000 samples and 400 classes fit."""
PARAMETER = re.compile(rb';\s*([\w*-]+)=(?:"((?:[^"\\]|\\.)*)"|([^;\s]*))')
"""Of a part's header; a file's name may come before the part's, and may look like one."""
GRACE = 3
"""Seconds that requests under way have to be answered in when the server is told to end; a large zip takes longer."""
ROOTS = ("test", "session", "openapi.json")
LOG = logging.getLogger("openfield.ond")


class OndWire:
    """Serves the protocol."""

    port = 3307

    def __init__(self, shelf: Shelf | None = None, compat: bool = False) -> None:
        self._shelf, self._compat = shelf, compat

    async def serve(self, desk: Desk, host: str, port: int, ready: Callable[[int], None]) -> None:
        """Serves until cancelled."""
        from openfield.domains.ond.domain import DOMAIN
        from openfield.domains.ond.single import UNTIMED, make_single

        if isinstance(desk, GroupDesk) and self._shelf is not None:
            groups, shelf = desk, self._shelf
            office = Office(groups, shelf, DOMAIN.version, self._compat)
        else:
            groups, shelf = make_single(await desk.seat())
            office = Office(groups, shelf, DOMAIN.version, self._compat, lambda: UNTIMED)

        def listening(opened: int) -> None:
            count = shelf.count()
            self.offer = f"{count} {'test' if count == 1 else 'tests'} of {DOMAIN.name} on {host}:{opened}"
            ready(opened)

        await run_app(make_app(Wire(office), groups.check), host, port, listening)


App = Callable[[Any, Any, Any], Awaitable[None]]


class Request(msgspec.Struct, frozen=True):
    """A request as it came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[bytes, bytes]
    body: bytes

    @property
    def type(self) -> str:
        """Its content type."""
        return self.headers.get(b"content-type", b"").decode("latin-1")


def make_app(wire: Wire, check: Callable[[str | None], None]) -> App:
    """The protocol as an ASGI application."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        answer = await _answer(wire, check, scope, receive)
        sized = [("content-length", str(len(answer.body)))] if answer.status != 204 else []
        headers = [*answer.headers, ("content-type", answer.type), *sized]
        coded = [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers]
        await send({"type": "http.response.start", "status": answer.status, "headers": coded})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else answer.body})

    return app


async def run_app(app: App, host: str, port: int, ready: Callable[[int], None]) -> None:
    """Runs an application until cancelled; tells `ready` the port it listens on."""
    try:
        import uvicorn

        from openfield.domains.ond.transport import PatientProtocol
    except ImportError:
        raise MissingExtra("ond", "The server of ond") from None
    if not 0 <= port <= 65_535:
        raise InvalidInput(f"There is no port {port}; ports are 0 to 65535.")
    listener = socket.create_server(
        (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=512
    )
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # inherited; without it every answer waits 40 ms
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        log_level="warning",
        access_log=False,
        lifespan="off",
        proxy_headers=False,
        timeout_keep_alive=300,
        timeout_graceful_shutdown=GRACE,
        ws="none",
    )
    server = uvicorn.Server(config)
    task = asyncio.ensure_future(server.serve(sockets=[listener]))
    try:
        ready(listener.getsockname()[1])
        await asyncio.shield(task)
    except asyncio.CancelledError:
        server.should_exit = server.force_exit = True
        await task
        raise
    finally:
        listener.close()  # a server told to end while it starts leaves it open


async def _answer(wire: Wire, check: Callable[[str | None], None], scope: Any, receive: Any) -> Answer:
    """An answer to whatever came; what went wrong inside is logged here and not shown there."""
    try:
        request = await _read_request(scope, receive)
        shown, path = _find_token(request)
        check(shown)
        if path == "/openapi.json":
            from openfield.domains.ond.openapi import document

            return Answer(msgspec.json.encode(document()), type="application/json")
        return await wire.answer(request.method, path, read_parameters(request))
    except Refusal as error:
        return refuse(error)
    except asyncio.CancelledError:  # by the server, whose task ends with this answer
        return refuse(Refusal("ServerError", "The server ends; ask again when it is back.", 500))
    except AgentFault as error:
        return refuse(Refusal("BadRequest", str(error)))
    except JournalError as error:
        LOG.error("%s", error)
        return refuse(Refusal("StorageError", "The record cannot be written now; nothing of this was kept.", 500))
    except Exception:
        LOG.exception("a request of ond failed")
        return refuse(Refusal("ServerError", "The server failed on this request.", 500))


def _find_token(request: Request) -> tuple[str | None, str]:
    """The token a client shows, and the path without it.

    Existing clients can show none but by their server's address: `http://HOST:PORT/TOKEN`.
    """
    shown = request.headers.get(b"authorization", b"").decode("latin-1").removeprefix("Bearer ")
    first, _, rest = request.path.lstrip("/").partition("/")
    if rest and first not in ROOTS:
        return first, f"/{rest}"
    return shown or request.query.get("token"), request.path


async def _read_request(scope: Any, receive: Any) -> Request:
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length) > MOST_BYTES:
        raise Refusal("BadRequest", f"The body is larger than {MOST_BYTES >> 20} MB.")
    body = await _read_body(receive)
    query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True) if scope["query_string"] else ()
    return Request(scope["method"], scope["path"], dict(query), headers, body)


async def _read_body(receive: Any) -> bytes:
    """The pieces of a body, joined once: to add each to those before would copy a large body a thousand times."""
    pieces, size, more = list[bytes](), 0, True
    while more:
        event = await receive()
        pieces.append(event.get("body", b""))
        size += len(pieces[-1])
        more = event.get("more_body", False)
        if size > MOST_BYTES:
            raise Refusal("BadRequest", f"The body is larger than {MOST_BYTES >> 20} MB.")
    return b"".join(pieces)


def read_parameters(request: Request) -> dict[str, Any]:
    """Form fields and file parts, then query arguments, then keys of a JSON body, whatever the method."""
    body, kind = request.body, request.type.split(";")[0].strip().lower()
    found: dict[str, Any] = _read_json(body) if body and kind == "application/json" else {}
    found |= request.query
    if body and kind == "multipart/form-data":
        found |= read_multipart(body, request.type)
    if body and kind == "application/x-www-form-urlencoded":
        found |= dict(parse_qsl(_text("form", body), keep_blank_values=True))
    return found


def _read_json(body: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise Refusal("BadRequest", "The body is no JSON.") from None
    if not isinstance(found, dict):
        raise Refusal("BadRequest", "The body must be a JSON object.")
    return found


def read_multipart(body: bytes, content_type: str) -> dict[str, str]:
    """Fields and file parts of a multipart body, as text.

    The body is in memory already, so cutting it at its border is all there is to do: no spooled files, and 0.1 ms for
    400 kB.
    """
    border = re.search(r'boundary="?([^";,]+)"?', content_type)
    mark = b"--" + border[1].strip().encode("latin-1") if border else b""
    _, *parts = (b"\r\n" + body).split(b"\r\n" + mark) if border else [body]
    if not parts or not parts[-1].startswith(b"--"):
        raise Refusal("BadRequest", "The form cannot be read.")
    found: dict[str, str] = {}
    for part in parts[:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        named = [one[2] or one[3] or b"" for one in PARAMETER.finditer(head) if one[1].lower() == b"name"]
        if not named:
            raise Refusal("BadRequest", "A part of the form has no name.")
        key = named[0].decode("utf-8", "replace")
        found[key] = _text(key, content)
    return found


def _text(key: str, content: bytes) -> str:
    try:
        return content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        raise Refusal("BadRequest", f"'{key[:40]}' is no text.") from None
