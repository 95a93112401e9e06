"""Serve the viewer: on a port of this machine, in the foreground or beside a run."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlencode

import uvicorn
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from openfield.errors import InvalidInput
from openfield.provenance.trust import user_key
from openfield.report.render import compile_templates
from openfield.serving.listen import check_exposure, fastest_loop, is_local, refuse_place
from openfield.view.access import Access
from openfield.view.app import make_app
from openfield.view.library import Library

PORT = 7464
"""The port that is taken unless another one is asked for; any free one if it is in use."""
GRACE = 1
"""Seconds in which requests under way must be answered when the server ends."""


class ViewServer:
    """A server of the viewer, which listens from the start and serves on request."""

    def __init__(
        self,
        library: Library,
        host: str = "127.0.0.1",
        port: int | None = None,
        token: str | None = None,
        routes: Iterable[BaseRoute] = (),
        open_paths: Iterable[str] = (),
    ) -> None:
        """Listen on a port.

        Args:
            library: The run files that it shows.
            host: The address to listen on.
            port: The port; 0 takes a free one, None the usual one if that is free.
            token: A secret that lets people in; if empty, one that works once is drawn.
            routes: Further routes, such as those of play.
            open_paths: Prefixes of addresses that need no session.
        """
        check_exposure(host, token is not None)
        self.library = library
        library.editable = is_local(host)
        self._listener = open_port(host, port)
        self.host, self.port = host, int(self._listener.getsockname()[1])
        self.access = Access(token, {host, socket.gethostname(), socket.getfqdn()}, _derive_key())
        self.app = make_app(library, self.access, routes, open_paths)
        self._server = uvicorn.Server(configure(self.app))
        self.app.state.is_closing = lambda: self._server.should_exit

    @property
    def origin(self) -> str:
        """The address of the server without a path."""
        return name_origin(self.host, self.port)

    def address(self, path: str = "/") -> str:
        """Return an address with a token, which lets in the first browser that opens it."""
        sign = "&" if "?" in path else "?"
        return f"{self.origin}{path}{sign}{urlencode({'token': self.access.draw_token()})}"

    def serve(self, ready: Callable[[], None] | None = None) -> None:
        """Serve until interrupted."""

        async def serve() -> None:
            compile_templates()  # a fifth of a second now; beside the first pages it would cost them twice that
            if ready is not None:
                asyncio.get_running_loop().call_soon(ready)
            try:
                await self._server.serve(sockets=[self._listener])
            finally:
                await self.app.state.frames.close()

        try:
            with asyncio.Runner(loop_factory=fastest_loop()) as runner:
                runner.run(serve())
        finally:
            self._listener.close()

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Serve in a thread as long as the block goes on."""
        thread = threading.Thread(target=self.serve, name="viewer", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.stop()
            thread.join()

    def stop(self) -> None:
        """End the server soon; any thread may say so."""
        self._server.should_exit = True


def name_origin(host: str, port: int) -> str:
    """Return the address of a server without a path; one that listens everywhere is called by its machine's name."""
    shown = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, host)  # noqa: S104
    return f"http://{f'[{shown}]' if ':' in shown else shown}:{port}"


def open_port(host: str, port: int | None) -> socket.socket:
    """Open the port; the usual one may be in use, then another one is as good."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for wanted in (PORT, 0) if port is None else (port,):
        try:
            listener = socket.create_server((host, wanted), family=family, backlog=128)
        except OSError as error:
            if wanted == PORT and port is None:
                continue
            raise refuse_place(error, host, port) from None
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    raise InvalidInput(f"No port of {host} is free.")


def _derive_key() -> bytes | None:
    """Return what cookies are signed with: a page that was open goes on when the server is started again."""
    with suppress(InvalidInput):
        key = user_key()
        return key and hashlib.sha256(b"cookies of the viewer" + key).digest()
    return None


def configure(app: ASGIApp) -> uvicorn.Config:
    """Return how uvicorn serves an application of ours."""
    return uvicorn.Config(
        app,
        interface="asgi3",
        log_level="critical",
        access_log=False,
        lifespan="off",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        ws="websockets-sansio",
    )
