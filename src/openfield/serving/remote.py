"""A foreign agent's place in a trial: holds the rollout, takes replies off the event loop, knows who sits there.

Between wires, which do the talking, and rollouts; `serve` hands remotes out.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from openfield.core import Reply, Spec, Turn
from openfield.errors import OpenfieldError
from openfield.journal.receipt import Receipt
from openfield.rollout import Rollout


class RemoteRollout:
    """A foreign agent's place in a trial. As a context it books faults of the agent; a lost connection is none."""

    def __init__(
        self,
        rollout: Rollout,
        spec: Spec,
        seed: int,
        session: str = "",
        leave: Callable[[], None] = lambda: None,
    ) -> None:
        self.rollout = rollout
        self.spec = spec
        self.seed = seed
        self.session = session
        self.fault: OpenfieldError | None = None
        self.taken = False
        """Whether somebody sits here."""
        self.left = asyncio.Event()
        """Set when somebody left: the trial is over, the agent failed, or its connection broke."""
        self._leave = leave
        self._left_at = 0
        self._away = 0
        """Nanoseconds; when somebody left, and how long nobody sat here since the last reply."""
        self._closed = False
        self._one_at_a_time = threading.Lock()

    async def reply(self, reply: Reply, durable: bool = True) -> Turn:
        """Takes a reply off the event loop; with `durable`, returns when it is safely on disk."""
        answered: Receipt[Turn] = Receipt()
        _workers.submit(self._answer, reply, durable, answered)
        return await answered

    def take(self, reply: Reply, durable: bool = True) -> tuple[Turn, Receipt[None] | None]:
        """Takes a reply here and now, for worlds that answer at once; the second value is done when it is on disk."""
        with self._one_at_a_time:
            if self._closed:
                raise ConnectionError("this remote is closed; the agent may have come back over another connection")
            if self._away:
                self.rollout.excuse(self._away)
                self._away = 0
            turn = self.rollout.reply(reply)
            return turn, self.rollout.commit() if durable else None

    def _answer(self, reply: Reply, durable: bool, answered: Receipt[Turn]) -> None:
        """Takes a reply and leaves it to the journal to say so: the event loop is woken once, not twice."""
        try:
            turn, written = self.take(reply, durable)
        except BaseException as error:  # whatever it was, whoever waits must hear of it
            answered.settle(None, error)
            return
        if written is None:
            answered.settle(turn)
        else:
            written.then(lambda: answered.settle(turn, written.failure))

    def settle(self) -> None:
        """Waits for a reply under way; none is taken after it."""
        with self._one_at_a_time:
            self._closed = True

    async def hand_over(self) -> RemoteRollout:
        """The remote for an agent that comes back: whatever still happens on the old connection counts no more."""
        await asyncio.to_thread(self.settle)
        written = self.rollout.commit()
        if written is not None:
            await written
        heir = RemoteRollout(self.rollout, self.spec, self.seed, self.session, self._leave)
        heir._left_at, heir._away = self._left_at, self._away
        return heir

    def __enter__(self) -> RemoteRollout:
        if self._left_at:
            self._away += time.monotonic_ns() - self._left_at
            self._left_at = 0
        self.taken = True
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
