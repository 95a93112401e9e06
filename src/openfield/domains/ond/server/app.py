"""The server of the protocol as a Starlette application: its routes, who may use them, and errors as its objects.

`wire.py` serves it. The requests themselves are in `routes.py`; their parameters are read in `parameters.py`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from importlib import resources

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.server.parameters import RequestBody, adapt_address, read_request_parameters
from openfield.domains.ond.server.routes import OPERATIONS, Api, describe
from openfield.errors import AgentFault, JournalError
from openfield.serving.listen import MemoryBudget, is_own_host, is_own_origin

MAX_BODIES = 256 << 20
"""Bytes of the bodies of all requests that are being read and answered."""
LOG = logging.getLogger("openfield.ond")
FindApi = Callable[[str | None], Api]


def make_rest_app(find_api: FindApi, names: Iterable[str] = ()) -> Starlette:
    """Return the application that serves the API of those who show a token.

    Args:
        find_api: Returns the API for a token; raises `AgentFault` for an unknown token.
        names: What the server is called, beside `localhost` and its addresses.
    """
    description = Response(msgspec.json.encode(describe()), media_type="application/json")
    page = resources.files("openfield.domains.ond.server").joinpath("docs.html").read_text("utf-8")
    docs = HTMLResponse(page, headers={"content-security-policy": "default-src 'self' 'unsafe-inline'"})
    routes = [Route(path, answer_request, methods=list(operations)) for path, operations in OPERATIONS.items()]
    return Starlette(
        routes=[*routes, Route("/openapi.json", description), Route("/docs", docs)],
        middleware=[Middleware(RequestGuard, find_api=find_api, names=names)],
        exception_handlers={HTTPException: refuse_address},
    )


class RequestGuard:
    """Checks the host, the origin and the token of every request before its address is looked up and its body read.

    A page of a foreign site in the browser of a person who runs a server is not a client: it could reach the server
    under a name of its own, or from its own origin.
    """

    def __init__(self, app: ASGIApp, find_api: FindApi, names: Iterable[str]) -> None:
        self._app, self._find_api = app, find_api
        self._names = {"localhost", *(name.lower() for name in names)}
        self._memory = MemoryBudget(MAX_BODIES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it; a body that is not read ends the connection."""
        headers, body = Headers(scope=scope), RequestBody(scope, receive, self._memory)
        try:
            self._check_site(headers.get("host", ""), headers.get("origin"))
            scope["api"] = self._find_api(adapt_address(scope))
        except AgentFault as error:
            unread = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
            refusal = Refusal("BadRequest", str(error), headers={"connection": "close"} if unread else None)
            await make_refusal(refusal)(scope, receive, send)
        except Refusal as error:
            await make_refusal(error)(scope, receive, send)
        else:
            try:
                await self._app(scope, body.receive, send)
            finally:
                body.free()

    def _check_site(self, host: str, origin: str | None) -> None:
        """Check that the request is for this server, and not from a page of another one."""
        if host and not is_own_host(host, self._names):
            raise AgentFault(f"This server has another name than {host[:80]!r}. Start it with --hostname and this one.")
        if not is_own_origin(origin, host):
            raise AgentFault("Pages of other sites may not use this server.")


async def answer_request(request: Request) -> Response:
    """Answer a request of the protocol. An error inside is logged here and not shown to the client."""
    api: Api = request.scope["api"]
    try:
        found = await api.answer(request.method, request.scope["path"], await read_request_parameters(request))
        return Response(found.body, found.status, found.headers, found.media_type)
    except ClientDisconnect:
        return Response()  # to nobody: the client left before it had sent all
    except Refusal as error:
        return make_refusal(error)
    except asyncio.CancelledError:  # by the server, whose task ends with this response
        return make_refusal(Refusal("ServerError", "The server ends; ask again when it is back.", 500))
    except AgentFault as error:
        return make_refusal(Refusal("BadRequest", str(error)))
    except JournalError as error:
        LOG.error("%s", error)
        text = "The record cannot be written now; nothing of this was kept."
        return make_refusal(Refusal("StorageError", text, 500))
    except Exception:
        LOG.exception("a request of ond failed")
        return make_refusal(Refusal("ServerError", "The server failed on this request.", 500))


async def refuse_address(request: Request, error: Exception) -> Response:
    """Refuse a request for which there is no route."""
    if not isinstance(error, HTTPException) or error.status_code != 405:
        return make_refusal(Refusal("NotFound", "There is nothing at this address.", 404))
    allowed = ", ".join(sorted((error.headers or {}).get("Allow", "").split(", ")))
    return make_refusal(Refusal("MethodNotAllowed", f"This address answers {allowed}.", 405, {"allow": allowed}))


def make_refusal(error: Refusal) -> Response:
    """Return a refusal as a response."""
    return Response(error.encode(), error.status, error.headers, "application/json")
