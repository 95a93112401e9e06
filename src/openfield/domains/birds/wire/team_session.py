"""The session of one agent: its trial and its conversation. It outlives a broken connection."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from openfield.core import Ask, Reply, Turn, World
from openfield.domains.birds.wire.conversation import Conversation
from openfield.errors import AgentFault, OpenfieldError

if TYPE_CHECKING:
    from openfield.serving.remote import RemoteRollout


class TeamSession:
    """What the server knows about one agent."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lock = asyncio.Lock()
        self.writer: asyncio.StreamWriter | None = None
        """The connection; None while the agent is away."""
        self.heard = self.replied = self.left = time.monotonic()
        """Times of the last request, of the last request that became a reply, and of the last disconnection."""
        self.remote: RemoteRollout | None = None
        """The trial in play; None if nothing is left to play."""
        self.ended: RemoteRollout | None = None
        """The trial before, as long as the agent may still report on its last level."""
        self.world: World | None = None
        """The world that queries read, also after the last trial."""
        self.before: World | None = None
        """The world of the trial before, until the agent has acted in the next one."""
        self.conversation = Conversation(Turn(ask=Ask.NONE))

    @property
    def played_out(self) -> bool:
        """True if the last level of the trial has ended."""
        rollout = None if self.remote is None else self.remote.rollout
        return rollout is not None and rollout.turn.last is not None and rollout.world.over

    def take(self, remote: RemoteRollout | None) -> None:
        """Take the rollout of the first or the next trial."""
        self.remote = remote
        if remote is not None:
            remote.__enter__()
            self.before, self.world = self.world, remote.rollout.world
            if self.ended is None:
                self.conversation.turn = remote.rollout.turn

    async def say(self, reply: Reply) -> None:
        """Record words about the last trial; any other reply goes on to the next trial."""
        if self.ended is None or not self.ended.rollout.world.stays(reply):  # type: ignore[attr-defined]
            await self.finish()
            return
        try:
            await self.ended.reply(reply)
        except AgentFault as fault:  # the last trial has failed; the next one goes on
            self._part(fault)

    async def finish(self) -> None:
        """Go on from the last trial, if that has not happened yet."""
        if self.ended is not None:
            await self.ended.reply(Reply())
            self._part()

    def _part(self, fault: AgentFault | None = None) -> None:
        remote, self.ended = self.ended, None
        if remote is not None:
            remote.__exit__(None, fault, None)
        if self.remote is not None:
            self.conversation.turn = self.remote.rollout.turn

    def return_to(self, writer: asyncio.StreamWriter) -> None:
        """Continue over another connection, and close the old one."""
        if self.writer is not None and self.writer is not writer:
            self.writer.close()
        if self.writer is None:  # the time away does not count
            away = time.monotonic() - self.left
            self.heard, self.replied = self.heard + away, self.replied + away
        self.writer = writer
        if self.remote is not None:
            self.remote.__enter__()

    def leave(self, error: OpenfieldError | None = None) -> None:
        """Release the rollout, because its trial is over, the connection broke, or the agent failed."""
        for remote in (self.ended, self.remote):
            if remote is not None:
                remote.__exit__(None, error, None)
                error = None
