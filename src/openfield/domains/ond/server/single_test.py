"""One remote seen as a session's dispatcher: for a program of the protocol that is started to play a single cell.

Stands in for `SessionDispatcher` and `Shelf`, so that the office need not know the difference.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from openfield.domains.ond.server.errors import Refusal
from openfield.domains.ond.server.remote import world_of
from openfield.domains.ond.testset.sheet import Shelf, Test
from openfield.errors import OpenfieldError
from openfield.serving.remote import RemoteRollout
from openfield.serving.sessions import Session, SessionDispatcher

UNTIMED = "1970-01-01 00:00:00.000000"
"""When everything happens in a cell: its record is the same whenever, and however fast, it is played."""


def make_single(remote: RemoteRollout) -> tuple[SessionDispatcher, Shelf]:
    """A dispatcher and a shelf that know one test."""
    return cast(SessionDispatcher, _OneDispatcher(remote)), cast(Shelf, _OneShelf(world_of(remote).test))


class _OneShelf:
    def __init__(self, test: Test) -> None:
        self._test, self.root = test, Path()

    def count(self) -> int:
        return 1

    def has_area(self, protocol: str, area: str) -> bool:
        return area == self._test.area and protocol == self._test.metadata["protocol"]

    def list_file(self, protocol: str, area: str) -> None:
        return None

    def names(self, protocol: str, area: str) -> list[str]:
        return [self._test.name]

    def has(self, protocol: str, area: str, name: str) -> bool:
        return name == self._test.name

    def has_metadata(self, protocol: str, area: str, name: str) -> bool:
        return name == self._test.name

    def load(self, protocol: str, area: str, name: str) -> tuple[Test, dict[str, str]]:
        if name != self._test.name:
            raise OpenfieldError("There is no such test.")
        return self._test, {}


class _OneDispatcher:
    def __init__(self, remote: RemoteRollout) -> None:
        self.groups: dict[str, Session] = {}
        self._seat = remote

    def check(self, token: str | None) -> None:
        """Whoever was started for the cell may come."""

    async def open(self, name: str, agent: str, trials: dict[str, Any], facts: dict[str, Any]) -> Session:
        self.groups[name] = Session(name, agent, 0, dict.fromkeys(trials, ""), dict(facts))
        return self.groups[name]

    async def note(self, group: Session, key: str, value: Any) -> None:
        group.facts[key] = value

    def at_hand(self, group: Session, trial: str) -> RemoteRollout:
        return self._seat

    async def take(self, group: Session, trial: str) -> RemoteRollout:
        return self._seat

    async def restart(self, group: Session, trial: str, carry: Any) -> RemoteRollout:
        raise Refusal("TestCompleted", "A test that is played as one cell cannot be started again.")

    async def recover(self) -> None:
        """A cell whose record cannot be written is over; whoever plays it is told."""

    async def begun(self, group: Session) -> list[str]:
        return list(group.trials)

    def finish(self, group: Session, trial: str, remote: RemoteRollout) -> None:
        remote.left.set()

    def steps(self, group: Session, trial: str) -> list[Any]:
        return []
