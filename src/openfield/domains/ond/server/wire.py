"""The wire of OND: serves the protocol's REST interface to the sessions of a run, or to the one test of a cell.

Importing this needs no extra; Starlette and uvicorn are imported when something is served.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from openfield.domains.ond.server.routes import Api
from openfield.domains.ond.server.session_service import SessionService
from openfield.domains.ond.server.single_test import serve_single
from openfield.domains.ond.testset.data_directory import DataDirectory
from openfield.errors import MissingExtra
from openfield.serving.sessions import SessionDispatcher

if TYPE_CHECKING:
    from openfield.domain import Domain
    from openfield.serving.wire import Dispatcher


class OndWire:
    """Serves the protocol."""

    port = 3307

    def __init__(self, domain: Domain[Any], directory: DataDirectory | None = None, compat: bool = False) -> None:
        """Make a wire. Without a directory of tests it serves the one test of a cell."""
        self._domain, self._directory, self._compat = domain, directory, compat

    async def serve(self, dispatcher: Dispatcher, host: str, port: int, ready: Callable[[int], None]) -> None:
        """Serve until cancelled."""
        try:
            from openfield.domains.ond.server.app import make_app
            from openfield.domains.ond.server.http import serve_http
        except ImportError:
            raise MissingExtra("ond", "The server of ond") from None
        if isinstance(dispatcher, SessionDispatcher) and self._directory is not None:
            service = SessionService(dispatcher, self._directory, self._domain.version, self._compat)
            check = dispatcher.check
        else:
            service = serve_single(await dispatcher.join(), self._domain.version, self._compat)
            check = _allow_all  # the program that was started for a cell is the only one that comes

        def listening(opened: int) -> None:
            count = service.directory.count()
            self.offer = f"{count} {'test' if count == 1 else 'tests'} of {self._domain.name} on {host}:{opened}"
            ready(opened)

        await serve_http(make_app(Api(service), check), host, port, listening)


def _allow_all(token: str | None) -> None:
    """Accept any token."""
