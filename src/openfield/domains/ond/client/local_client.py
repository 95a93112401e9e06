"""A client whose requests are answered in this process: the same service and journal as a server has, without a socket.

It takes the place of `RestClient` where agents of the protocol are played, or compared with a baseline, without a
server.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from openfield.domain import Domain
from openfield.domains.ond.client.rest_client import RestClient
from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.server.routes import Api
from openfield.domains.ond.server.session_service import SessionService
from openfield.domains.ond.testset.builder import write_trials
from openfield.domains.ond.trials import find_directory
from openfield.errors import InvalidInput
from openfield.journal.lock import holding
from openfield.journal.writer import Journal
from openfield.serving.sessions import SessionDispatcher

LOCAL = "here"
"""The address that stands for a server in this process."""


class LocalClient(RestClient):
    """Answer the requests of a client from a data directory, or from tests built for it."""

    def __init__(self, domain: Domain[Any], run: Path, data: str = "", trials: int = 5, seed: int = 0) -> None:
        """Open the run file that records everything, and a data directory.

        Without one, so many tests are built from the seed and written beside the run file.
        """
        with ExitStack() as stack:
            begun = stack.enter_context(holding(run))
            journal = stack.enter_context(Journal(run))
            dispatcher = SessionDispatcher(journal, domain)
            stack.callback(dispatcher.close)
            self.root = data or str(write_trials(domain, domain.trials(trials, seed), run.with_suffix(".data")))
            if not Path(self.root).is_dir():
                raise InvalidInput(f"There is no directory {self.root}.")
            self._api = Api(SessionService(dispatcher, find_directory(self.root), domain.version))
            self._runner = stack.enter_context(asyncio.Runner())
            self._url = LOCAL
            self._open = stack.pop_all()
            begun()

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _ask(self, method: str, path: str, **request: Any) -> bytes:
        given = {name: str(value) for name, value in {**request.get("params", {}), **request.get("data", {})}.items()}
        for name, part in request.get("files", {}).items():
            given[name] = (part[1] if isinstance(part, tuple) else part).decode()
        try:
            answer = self._runner.run(self._api.answer(method, path, given))
        except Refusal as error:
            return self._read(path, error.status, error.encode())
        return self._read(path, answer.status, answer.body)
