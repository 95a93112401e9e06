"""The wire of OND: serves the protocol's REST interface to the sessions of a run, or to the one test of a cell.

Importing this needs no extra; Starlette and uvicorn are imported when something is served.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from openfield.domains.ond.server.routes import Api
from openfield.domains.ond.server.service import Office
from openfield.domains.ond.testset.sheet import Shelf
from openfield.errors import MissingExtra
from openfield.serving.sessions import SessionDispatcher

if TYPE_CHECKING:
    from openfield.domain import Domain
    from openfield.serving.wire import Dispatcher


class OndWire:
    """Serves the protocol."""

    port = 3307

    def __init__(self, domain: Domain[Any], shelf: Shelf | None = None, compat: bool = False) -> None:
        """Make a wire.

        Args:
            domain: The domain whose tests are served.
            shelf: The tests; without them, the wire serves the one test of a cell.
            compat: Whether to accept what old clients post.
        """
        self._domain, self._shelf, self._compat = domain, shelf, compat

    async def serve(self, dispatcher: Dispatcher, host: str, port: int, ready: Callable[[int], None]) -> None:
        """Serve until cancelled."""
        try:
            from openfield.domains.ond.server.app import make_app
            from openfield.domains.ond.server.http import serve_http
        except ImportError:
            raise MissingExtra("ond", "The server of ond") from None
        service, check, count = await self._open(dispatcher)

        def listening(opened: int) -> None:
            self.offer = f"{count()} {'test' if count() == 1 else 'tests'} of {self._domain.name} on {host}:{opened}"
            ready(opened)

        await serve_http(make_app(Api(service), check), host, port, listening)

    async def _open(self, dispatcher: Dispatcher) -> tuple[Office, Callable[[str | None], None], Callable[[], int]]:
        """Return the sessions of a dispatcher, the check of its token, and the number of tests."""
        from openfield.domains.ond.server.single_test import UNTIMED, make_single

        version = self._domain.version
        if isinstance(dispatcher, SessionDispatcher) and self._shelf is not None:
            service = Office(dispatcher, self._shelf, version, self._compat)
            return service, dispatcher.check, self._shelf.count
        single, shelf = make_single(await dispatcher.join())
        return Office(single, shelf, version, self._compat, lambda: UNTIMED), single.check, shelf.count
