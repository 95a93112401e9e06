"""The two sides of serving: a wire talks to foreign agents, a dispatcher gives each of them a trial."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from openfield.journal.writer import Durability
from openfield.options import RecordKind
from openfield.serving.remote import RemoteRollout


class Wire(Protocol):
    """A protocol foreign agents speak.

    Optional: `offer` says what agents get and where; `command(words, cell)` and `check_command(words)` say how a
    program learns of the wire, and whether it can, where not by host and port; `finished()` waits for what agents
    have to say after the last turn.
    """

    port: int
    """Where its agents expect it."""

    async def serve(self, dispatcher: Dispatcher, host: str, port: int, ready: Callable[[int], None]) -> None:
        """Serve until cancelled, and tell `ready` the port it listens on."""
        ...


class Dispatcher(Protocol):
    """Gives a trial to each agent that connects."""

    async def join(
        self, name: str | None = None, token: str | None = None, session: str | None = None
    ) -> RemoteRollout:
        """Return the rollout of an agent: the one it had, if it names a session, or the next free one.

        Args:
            name: What the agent calls itself.
            token: What it shows to be let in.
            session: The session it comes back to.

        Raises:
            AgentFault: The token is wrong, the session unknown, or no trial is left.
        """
        ...

    def close(self) -> None:
        """Record how every rollout ended. Trials that are not over can be resumed."""
        ...


class Serving(msgspec.Struct, frozen=True):
    """How a domain is served: which agents may come, and what the domain's own options say."""

    agent: str = "remote"
    token: str | None = None
    options: Any = None
    """What the domain's `prepare` left for its dispatcher: `CommandChanges.serving`."""
    durable: Durability = "episode"
    """How often the record waits for the disk."""
    record: RecordKind | None = None
    """What is kept of large arrays; None goes on as the run file was begun, or keeps digests."""
