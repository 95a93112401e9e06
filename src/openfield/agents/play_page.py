"""How a person plays a trial in a browser: what a domain, or `key_page` for it, sends to the page and receives."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, Protocol, runtime_checkable

from openfield.core import Reply, Turn, World


class PlayPage(Protocol):
    """How a person plays one trial in a browser: what the page shows, and what the person's acts mean.

    It reads no clock and uses no network. It may show only what a turn shows an agent.
    """

    kind: str
    """Which controls the page has: `keys`, `sling`, `conversation`, `labels` or `line`."""

    def describe(self) -> dict[str, Any]:
        """Return what the page must know before the first turn, as plain data."""
        ...

    def show(self, turn: Turn, world: World) -> dict[str, Any]:
        """Return what the page shows of a turn: plain data and arrays of pixels; `picture` is shown large.

        Args:
            turn: The turn.
            world: The world that draws it.
        """
        ...

    def act(self, act: Any, turn: Turn) -> Generator[Reply, Turn, None]:
        """Yield the replies that an act of the person means. Each is answered with the turn it leads to.

        Args:
            act: What the page sent: plain data from a browser that may send anything.
            turn: The turn that is shown.

        Raises:
            AgentProtocol: It is not an act; the message says what would be one.
        """
        ...


@runtime_checkable
class FilmsPlay(Protocol):
    """A play page whose acts take time in the world: a shot is watched, and clicked at while the bird flies."""

    film_milliseconds: float
    """How long each picture is shown."""

    def preview(self, act: Any) -> Iterable[Any]:
        """Return pictures of the consequences of an act if the person did nothing more. The world is not changed."""
        ...

    def pictures(self, seen: int = 0) -> Iterable[Any]:
        """Return the pictures since the last act, without the first ones, which a preview has shown."""
        ...
