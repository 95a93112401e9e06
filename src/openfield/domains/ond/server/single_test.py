"""One seat seen as a session's desk: for a program of the protocol that is started to play a single cell.

Stands in for `GroupDesk` and `Shelf`, so that the office need not know the difference.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from openfield.domains.ond.server.errors import Refusal
from openfield.domains.ond.server.remote import world_of
from openfield.domains.ond.testset.sheet import Shelf, Test
from openfield.errors import OpenfieldError
from openfield.serving.remote import Seat
from openfield.serving.sessions import Group, GroupDesk

UNTIMED = "1970-01-01 00:00:00.000000"
"""When everything happens in a cell: its record is the same whenever, and however fast, it is played."""


def make_single(seat: Seat) -> tuple[GroupDesk, Shelf]:
    """A desk and a shelf that know one test."""
    return cast(GroupDesk, _OneDesk(seat)), cast(Shelf, _OneShelf(world_of(seat).test))


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


class _OneDesk:
    def __init__(self, seat: Seat) -> None:
        self.groups: dict[str, Group] = {}
        self._seat = seat

    def check(self, token: str | None) -> None:
        """Whoever was started for the cell may come."""

    async def open(self, name: str, agent: str, trials: dict[str, Any], facts: dict[str, Any]) -> Group:
        self.groups[name] = Group(name, agent, 0, dict.fromkeys(trials, ""), dict(facts))
        return self.groups[name]

    async def note(self, group: Group, key: str, value: Any) -> None:
        group.facts[key] = value

    def at_hand(self, group: Group, trial: str) -> Seat:
        return self._seat

    async def take(self, group: Group, trial: str) -> Seat:
        return self._seat

    async def restart(self, group: Group, trial: str, carry: Any) -> Seat:
        raise Refusal("TestCompleted", "A test that is played as one cell cannot be started again.")

    async def recover(self) -> None:
        """A cell whose record cannot be written is over; whoever plays it is told."""

    async def begun(self, group: Group) -> list[str]:
        return list(group.trials)

    def finish(self, group: Group, trial: str, seat: Seat) -> None:
        seat.left.set()

    def steps(self, group: Group, trial: str) -> list[Any]:
        return []
