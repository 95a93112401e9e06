"""Connections of a server without a socket: a script sends pieces and sees what is written back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.server.app import MAX_BODIES, make_refusal
from openfield.domains.ond.server.http import HttpConnection
from openfield.domains.ond.server.parameters import RequestBody, has_body
from openfield.serving.listen import MemoryBudget
from support.ond.protocol import Wires, connect

GET = b"GET /a?b=%20c HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
Talk = Callable[[HttpConnection, Wires], Awaitable[None]]


class Asked(msgspec.Struct, frozen=True):
    """A request as an application sees it."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


Answer = Callable[[Asked], Awaitable[Response]]


async def echo(request: Asked) -> Response:
    """Answers with the path and the body."""
    return PlainTextResponse(request.path.encode() + request.body)


def make_echo(asked: list[Asked], answer: Answer = echo) -> ASGIApp:
    """An application that notes what it is asked."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, RequestBody(scope, receive, MemoryBudget(MAX_BODIES)).receive)
        try:
            body = await request.body() if has_body(request.headers) else b""
            found = Asked(request.method, scope["path"], dict(request.query_params), dict(request.headers), body)
            asked.append(found)
            response = await answer(found)
        except Refusal as error:
            response = make_refusal(error)
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    return app


def talk(script: Talk, answer: Answer = echo) -> list[Asked]:
    """Has a script talk to a connection; returns the requests that came of it."""
    asked: list[Asked] = []

    async def run() -> None:
        connection, wires = connect(make_echo(asked, answer))
        await script(connection, wires)
        connection.connection_lost(None)

    asyncio.run(run())
    return asked


def say(*pieces: bytes) -> tuple[bytes, bool, list[Asked]]:
    """What is answered to these pieces, whether the connection is closed then, and what was asked."""
    found: list[tuple[bytes, bool]] = []

    async def script(connection: HttpConnection, wires: Wires) -> None:
        for piece in pieces:
            if piece and not wires.closed:  # a socket gives no empty ones
                connection.data_received(piece)
            await settled()
        found.append((wires.written, wires.closed))

    asked = talk(script)
    return *found[0], asked


async def settled() -> None:
    """Lets everything happen that can without waiting for anybody."""
    for _ in range(20):
        await asyncio.sleep(0)
