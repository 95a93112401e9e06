"""The protocol over HTTP: uvicorn accepts connections, `transport.py` reads requests, `wire.py` answers them.

A thin shell: tokens are checked, failures become error objects, nothing else is decided here.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from openfield.domains.ond.server.errors import Refusal
from openfield.domains.ond.server.request import Request, read_parameters
from openfield.domains.ond.server.routes import Answer, Responder, refuse
from openfield.domains.ond.server.service import Office
from openfield.domains.ond.testset.sheet import Shelf
from openfield.errors import AgentFault, JournalError, MissingExtra
from openfield.serving.sessions import SessionDispatcher

if TYPE_CHECKING:
    from openfield.serving.wire import Dispatcher

GRACE = 3
"""Seconds that requests under way have to be answered in when the server is told to end; a large zip takes longer."""
ROOTS = ("test", "session", "openapi.json")
LOG = logging.getLogger("openfield.ond")

Answerer = Callable[[Request], Awaitable[Answer]]


class OndWire:
    """Serves the protocol."""

    port = 3307

    def __init__(self, shelf: Shelf | None = None, compat: bool = False) -> None:
        self._shelf, self._compat = shelf, compat

    async def serve(self, dispatcher: Dispatcher, host: str, port: int, ready: Callable[[int], None]) -> None:
        """Serves until cancelled."""
        from openfield.domains.ond.domain import DOMAIN
        from openfield.domains.ond.server.single_test import UNTIMED, make_single

        if isinstance(dispatcher, SessionDispatcher) and self._shelf is not None:
            groups, shelf = dispatcher, self._shelf
            office = Office(groups, shelf, DOMAIN.version, self._compat)
        else:
            groups, shelf = make_single(await dispatcher.join())
            office = Office(groups, shelf, DOMAIN.version, self._compat, lambda: UNTIMED)

        def listening(opened: int) -> None:
            count = shelf.count()
            self.offer = f"{count} {'test' if count == 1 else 'tests'} of {DOMAIN.name} on {host}:{opened}"
            ready(opened)

        await serve_http(make_answerer(Responder(office), groups.check), host, port, listening)


def make_answerer(responder: Responder, check: Callable[[str | None], None]) -> Answerer:
    """What answers whatever came; what went wrong inside is logged here and not shown there."""

    async def answer(request: Request) -> Answer:
        try:
            shown, path = _find_token(request)
            check(shown)
            if path == "/openapi.json":
                from openfield.domains.ond.server.openapi import document

                return Answer(msgspec.json.encode(document()), type="application/json")
            return await responder.answer(request.method, path, read_parameters(request))
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

    return answer


async def serve_http(answer: Answerer, host: str, port: int, ready: Callable[[int], None]) -> None:
    """Has requests answered until cancelled; tells `ready` the port it listens on."""
    try:
        import uvicorn

        from openfield.domains.ond.server.transport import Connection
    except ImportError:
        raise MissingExtra("ond", "The server of ond") from None
    listener = socket.create_server(
        (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=512
    )
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # inherited; without it every answer waits 40 ms
    config = uvicorn.Config(
        answer,  # which is no ASGI application: only our own connections call it
        http=Connection,
        interface="asgi3",
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


def _find_token(request: Request) -> tuple[str | None, str]:
    """The token a client shows, and the path without it.

    Existing clients can show none but by their server's address: `http://HOST:PORT/TOKEN`.
    """
    shown = request.headers.get(b"authorization", b"").decode("latin-1").removeprefix("Bearer ")
    first, _, rest = request.path.lstrip("/").partition("/")
    if rest and first not in ROOTS:
        return first, f"/{rest}"
    return shown or request.query.get("token"), request.path
