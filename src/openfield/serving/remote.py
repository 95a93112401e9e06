"""The rollout of a foreign agent: it takes replies, and knows whether the agent is connected.

Stands between wires, which talk to agents, and rollouts. Dispatchers make these.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from openfield.core import Reply, Spec, Turn
from openfield.errors import OpenfieldError
from openfield.journal.receipt import Receipt
from openfield.limit_guard import NEVER
from openfield.rollout import Rollout

QUICK_NANOSECONDS = 2_000_000
"""A world that takes no longer for a step is stepped on the event loop: a thread would cost more than the step."""
SLOW_TURNS = 1_000
"""The number of turns after a much longer step that are played in a thread."""
NANOSECONDS_PER_SLOW_TURN = 20_000
"""After a step that was a little longer they are fewer: the system may have held up this process for a moment."""


class RemoteRollout:
    """The rollout of a foreign agent. As a context manager it keeps its faults; a lost connection is not one."""

    def __init__(
        self, rollout: Rollout, spec: Spec, seed: int, session: str = "", leave: Callable[[], None] = lambda: None
    ) -> None:
        self.rollout = rollout
        self.spec = spec
        self.seed = seed
        self.session = session
        self.fault: OpenfieldError | None = None
        self.taken = False
        """Whether an agent is connected."""
        self.hung_up = False
        """Whether the agent itself has closed its connection; in some trials it may stop so."""
        self.left = asyncio.Event()
        """Set when the agent has left: the trial is over, the agent failed, or its connection broke."""
        self._leave = leave
        self._left_at = 0
        self._away = 0
        """Nanoseconds: when the agent left, and how long it was not connected since its last reply."""
        self._slow_until = rollout.turns + 1  # how fast a world is shows with its first step
        self.closed = False
        """Whether no further reply is taken: the agent has come back over another connection, or was forgotten."""
        self._one_at_a_time = threading.Lock()

    async def reply(self, reply: Reply, durable: bool = True) -> Turn:
        """Take a reply, off the event loop unless the world is quick. With `durable` wait until it is on disk."""
        await self.post(reply, durable)
        return self.rollout.turn

    def post(self, reply: Reply, durable: bool = True) -> Receipt[None]:
        """Take a reply as `reply` does, and return a receipt that is done when that is."""
        quick = self.rollout.turns >= self._slow_until and not self._one_at_a_time.locked()
        if quick:
            written = self.take(reply, durable)[1]
            if written is not None:
                return written
        answered: Receipt[None] = Receipt()
        if quick:
            answered.settle(None)
        else:
            _workers.submit(self._answer, reply, durable, answered)
        return answered

    def take(self, reply: Reply, durable: bool = True) -> tuple[Turn, Receipt[None] | None]:
        """Take a reply at once, for worlds that answer fast. The receipt is done when it is on disk."""
        with self._one_at_a_time:
            if self.closed:
                raise ConnectionError("this connection is closed; the agent may have come back over another one")
            if self._away:
                self.rollout.guard.excuse(self._away)
                self._away = 0
            began = time.monotonic_ns()
            turn = self.rollout.reply(reply)
            took = time.monotonic_ns() - began
            if took > QUICK_NANOSECONDS:
                self._slow_until = self.rollout.turns + min(took // NANOSECONDS_PER_SLOW_TURN, SLOW_TURNS)
            return turn, self.rollout.commit() if durable else None

    def _answer(self, reply: Reply, durable: bool, answered: Receipt[None]) -> None:
        """Take a reply, and let the journal report it: the event loop is woken once, not twice."""
        try:
            written = self.take(reply, durable)[1]
        except BaseException as error:  # the one that waits must hear of it, whatever it was
            answered.settle(None, error)
            return
        if written is None:
            answered.settle(None)
        else:
            written.then(lambda: answered.settle(None, written.failure))

    def leave(self) -> bool:
        """End the trial as truncated for an agent that has left, and return whether its world lets it leave here."""
        rollout = self.rollout
        closing_replies: Callable[[], Sequence[Reply] | None] = getattr(rollout.world, "closing_replies", lambda: None)
        replies = None if rollout.over or rollout.failed else closing_replies()
        if replies is None:
            return False
        for reply in replies:
            rollout.guard.excuse(NEVER)
            rollout.reply(reply)
        if not rollout.over:
            rollout.cut()
        return True

    def settle(self) -> None:
        """Wait for a reply under way, and take no further one."""
        with self._one_at_a_time:
            self.closed = True

    async def hand_over(self) -> RemoteRollout:
        """Return the rollout for an agent that comes back. The old connection no longer counts."""
        await asyncio.to_thread(self.settle)
        written = self.rollout.commit()
        if written is not None:
            await written
        heir = RemoteRollout(self.rollout, self.spec, self.seed, self.session, self._leave)
        heir._left_at, heir._away = self._left_at, self._away
        return heir

    @property
    def was_left(self) -> bool:
        """Whether an agent was connected and has left."""
        return not self.taken and self._left_at > 0

    def is_idle(self, before: float) -> bool:
        """Return whether no agent has been connected since a moment of the monotonic clock."""
        return self.was_left and self._left_at < before * 1e9

    def __enter__(self) -> RemoteRollout:
        if self._left_at:
            self._away += time.monotonic_ns() - self._left_at
            self._left_at = 0
        self.taken, self.hung_up = True, False
        self.left.clear()
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OpenfieldError):
            self.fault = error
        elif isinstance(error, Exception) and not isinstance(error, OSError | EOFError):
            self.fault = OpenfieldError(f"The wire failed: {type(error).__name__}: {error}")
        self.taken, self._left_at = False, time.monotonic_ns()
        self.left.set()
        self._leave()


_workers = ThreadPoolExecutor(thread_name_prefix="remote")
"""Where worlds step; as many at a time as Python thinks good for this machine."""
