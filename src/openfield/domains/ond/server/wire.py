"""The wire of OND: serves the protocol's REST interface to the sessions of a run, or to the one test of a cell.

Importing this needs no extra; Starlette and uvicorn are imported when something is served. For the one test of a cell,
`CellDispatcher` and `CellDirectory` take the places of `SessionDispatcher` and `DataDirectory`.
"""

from __future__ import annotations

import hmac
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.server.routes import Api
from openfield.domains.ond.server.session_service import ServiceRules, SessionService, count_disclosures, world_of
from openfield.domains.ond.testset.data_directory import DataDirectory
from openfield.domains.ond.testset.test import Test
from openfield.errors import AgentFault, MissingExtra, OpenfieldError
from openfield.serving.remote import RemoteRollout
from openfield.serving.sessions import Session, SessionDispatcher

if TYPE_CHECKING:
    from openfield.domain import Domain
    from openfield.serving.wire import Dispatcher


class OndWire:
    """Serves the protocol."""

    port = 3307

    def __init__(
        self,
        domain: Domain[Any],
        directory: DataDirectory | None = None,
        rules: ServiceRules | None = None,
        teams: Mapping[str, str] | None = None,
        names: Sequence[str] = (),
    ) -> None:
        """Make a wire.

        Args:
            domain: The domain that is served.
            directory: Its tests; without one the wire serves the one test of a cell.
            rules: What clients may do.
            teams: The teams by their tokens.
            names: What the server is called, beside its addresses and `localhost`.
        """
        self._domain, self._directory, self._rules = domain, directory, rules
        self._teams, self._names = teams or {}, names

    async def serve(self, dispatcher: Dispatcher, host: str, port: int, ready: Callable[[int], None]) -> None:
        """Serve until cancelled."""
        try:
            from openfield.domains.ond.server.app import make_rest_app
            from openfield.domains.ond.server.http import serve_http
        except ImportError:
            raise MissingExtra("ond", "The server of ond") from None
        if isinstance(dispatcher, SessionDispatcher) and self._directory is not None:
            teams = TeamApis(dispatcher, self._make_service, self._teams)
            count, find_api = self._directory.count(), teams.find
        else:  # the program that was started for a cell is the only one that comes
            single = Api(serve_single(await dispatcher.join(), self._domain.version))
            count, find_api = 1, lambda token: single

        def listening(opened: int) -> None:
            self.offer = f"{count} {'test' if count == 1 else 'tests'} of {self._domain.name} on {host}:{opened}"
            ready(opened)

        names = (host, socket.gethostname(), *self._names)
        await serve_http(make_rest_app(find_api, names), host, port, listening)

    def _make_service(self, dispatcher: SessionDispatcher, team: str | None) -> SessionService:
        directory = cast(DataDirectory, self._directory)
        return SessionService(dispatcher, directory, self._domain.version, self._rules, team)


class TeamApis:
    """The API of each team, found by its token."""

    def __init__(
        self,
        dispatcher: SessionDispatcher,
        make_service: Callable[[SessionDispatcher, str | None], SessionService],
        teams: Mapping[str, str],
    ) -> None:
        """Make an API for each team, and one for clients of no team: they show the server's own token.

        Args:
            dispatcher: Keeps the sessions and knows the server's own token.
            make_service: Makes the service of a team.
            teams: The teams by their tokens.
        """
        count_disclosures(dispatcher)
        by_name = {name: Api(make_service(dispatcher, name)) for name in set(teams.values())}
        self._apis = {token.encode(): by_name[name] for token, name in teams.items()}
        self._others = Api(make_service(dispatcher, None))
        self._check, self._closed = dispatcher.check, bool(teams) and not dispatcher.needs_token

    def find(self, token: str | None) -> Api:
        """Return the API for a token; raise `AgentFault` if there is none."""
        shown = (token or "").encode()
        for known, api in self._apis.items():
            if hmac.compare_digest(known, shown):
                return api
        if self._closed:
            raise AgentFault("The token is wrong.")
        self._check(token)
        return self._others


UNTIMED = "1970-01-01 00:00:00.000000"
"""When everything happens in a cell: its record is the same whenever, and however fast, it is played."""


def serve_single(remote: RemoteRollout, version: int) -> SessionService:
    """Return the service for the one test that a remote agent plays."""
    dispatcher = cast(SessionDispatcher, CellDispatcher(remote))
    rules = ServiceRules(compat=world_of(remote).compat, scorings=None)
    return SessionService(dispatcher, CellDirectory(world_of(remote).test), version, rules, clock=lambda: UNTIMED)


class CellDirectory(DataDirectory):
    """A directory with one test."""

    def __init__(self, test: Test) -> None:
        super().__init__(Path())
        self._test = test

    def has_area(self, protocol: str, area: str) -> bool:
        """Return whether the test is of this protocol and area."""
        return area == self._test.area and protocol == self._test.metadata["protocol"]

    def list_file(self, protocol: str, area: str) -> None:
        """Return None: the test is in no published list."""

    def names(self, protocol: str, area: str) -> list[str]:
        """Return the name of the test, if it is of this protocol and area."""
        return [self._test.name] if self.has_area(protocol, area) else []

    def has(self, protocol: str, area: str, name: str) -> bool:
        """Return whether this is the name of the test."""
        return name == self._test.name

    has_metadata = has

    def load(self, protocol: str, area: str, name: str) -> tuple[Test, dict[str, str]]:
        """Return the test."""
        if name != self._test.name:
            raise OpenfieldError("There is no such test.")
        return self._test, {}


class CellDispatcher:
    """A dispatcher of sessions that all play the test of one cell."""

    def __init__(self, remote: RemoteRollout) -> None:
        self.groups: dict[str, Session] = {}
        self._remote = remote

    async def open(
        self, name: str, agent: str, trials: dict[str, Any], facts: dict[str, Any], caution: str = ""
    ) -> Session:
        """Enter a session. No caution is kept: the trial of the cell says by which rules it is played."""
        self.groups[name] = Session(name, agent, 0, dict.fromkeys(trials, ""), dict(facts))
        return self.groups[name]

    async def note(self, session: Session, key: str, value: Any) -> None:
        """Keep a fact of a session."""
        session.facts[key] = value

    async def caution(self, session: Session, key: str, text: str) -> None:
        """Do nothing: the trial of the cell says by which rules it is played."""

    def at_hand(self, session: Session, trial: str) -> RemoteRollout:
        """Return the rollout of the cell."""
        return self._remote

    async def take(self, session: Session, trial: str) -> RemoteRollout:
        """Return the rollout of the cell."""
        return self._remote

    async def restart(self, session: Session, trial: str, carry: Any) -> RemoteRollout:
        """Refuse: a cell is played once."""
        raise Refusal("TestCompleted", "A test that is played as one cell cannot be started again.")

    async def recover(self) -> None:
        """Do nothing: a cell whose record cannot be written is over, and its player is told."""

    async def begun(self, session: Session) -> list[str]:
        """Return the tests of a session."""
        return list(session.trials)

    def finish(self, session: Session, trial: str, remote: RemoteRollout) -> None:
        """Tell the player of the cell that the agent has finished."""
        remote.left.set()

    async def leave(self, session: Session) -> None:
        """Do nothing: the cell goes on until its test is completed."""

    def steps(self, session: Session, trial: str) -> list[Any]:
        """Return nothing: the steps of a cell are recorded by its player."""
        return []
