"""The server of the protocol as a Starlette application: tokens, addresses, and errors as the protocol's objects.

`wire.py` serves it; the requests themselves are in `routes.py`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from importlib import resources

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.server.forms import read_parameters, read_query
from openfield.domains.ond.server.openapi import describe
from openfield.domains.ond.server.routes import Api
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
