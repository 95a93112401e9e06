"""Where an agent plays: its remote, and what is said there.

Stands under wire, which leads agents to their sessions; a session outlives a broken connection.
"""

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
    """Where an agent plays."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lock = asyncio.Lock()
        self.writer: asyncio.StreamWriter | None = None
        """The connection; None while there is none."""
        self.heard = self.replied = self.left = time.monotonic()
        """When the agent last said anything, when that was last taken for a reply, and when it last left."""
        self.remote: RemoteRollout | None = None
        """None where there is nothing left to play."""
        self.ended: RemoteRollout | None = None
        """That of the trial before, as long as more may be said of its last level."""
        self.world: World | None = None
        """What there is to see: the world of the last remote, also when all is over."""
        self.before: World | None = None
        """That of the trial before, until the agent has done something in the next one."""
        self.conversation = Conversation(Turn(ask=Ask.NONE))

    @property
    def played_out(self) -> bool:
        """Whether the last level of the trial has ended."""
        rollout = None if self.remote is None else self.remote.rollout
        return rollout is not None and rollout.turn.last is not None and rollout.world.over

    def take(self, remote: RemoteRollout | None) -> None:
        """Takes a remote: the first, or that of the next trial."""
        self.remote = remote
        if remote is not None:
            remote.__enter__()
            self.before, self.world = self.world, remote.rollout.world
            if self.ended is None:
                self.conversation.turn = remote.rollout.turn

    async def say(self, reply: Reply) -> None:
        """Says something of the trial before, or, with any reply that says nothing, goes on from it."""
        if self.ended is None or not self.ended.rollout.world.stays(reply):  # type: ignore[attr-defined]
            await self.finish()
            return
        try:
            await self.ended.reply(reply)
        except AgentFault as fault:  # it says too much: that trial has failed, which is no reason to end the next
            self._part(fault)

    async def finish(self) -> None:
        """Goes on from the trial before, if that is not done: nothing more is said of it."""
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
        """Goes on over another connection; the old one is closed."""
        if self.writer is not None and self.writer is not writer:
            self.writer.close()
        if self.writer is None:  # the time it was away is none of its own
            away = time.monotonic() - self.left
            self.heard, self.replied = self.heard + away, self.replied + away
        self.writer = writer
        if self.remote is not None:
            self.remote.__enter__()

    def leave(self, error: OpenfieldError | None = None) -> None:
        """Leaves the remote, because its trial is over, the connection broke, or the agent failed."""
        for remote in (self.ended, self.remote):
            if remote is not None:
                remote.__exit__(None, error, None)
                error = None
