"""Go on with a recorded trial: play its recorded replies in a fresh world, and compare every turn with the record."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from openfield.core import Reply, Turn, World
from openfield.errors import AgentDiffers, ReplayMismatch, shorten
from openfield.journal.recorder import Recorder
from openfield.limit_guard import NEVER, UNLIMITED, Heartbeat
from openfield.record import NO_TURN, RawStep, is_same_reply, is_same_turn
from openfield.rollout import Rollout
from openfield.trial import Limits


def resume_rollout(
    world: World,
    past: Iterable[RawStep],
    limits: Limits = UNLIMITED,
    recorder: Recorder | None = None,
    heartbeat: Heartbeat | None = None,
    known: int = NEVER,
) -> Rollout:
    """Go on with a trial.

    Args:
        world: A fresh world of the trial.
        past: The recorded steps; none starts the trial.
        limits: What the agent may use up.
        recorder: Where new steps are written; None records nothing.
        heartbeat: Where a watchdog in another process sees by when the agent must answer.
        known: How many recorded steps the agent knows of. The turns after them are shown to it again, and it must
            answer as it did, unless `recall` passes them on.

    Raises:
        ReplayMismatch: A replayed turn differs from the recorded one; the message says which.
    """
    steps = iter(past)
    first = next(steps, None)
    if first is None:
        return Rollout(world, limits, recorder, heartbeat)
    rollout = ReplayedRollout(world, limits)
    rollout.replay(first, itertools.islice(steps, max(known - 1, 0)))
    rollout.rehearse(steps, recorder, heartbeat)
    return rollout


def recall(rollout: Rollout) -> Iterator[tuple[Turn, Reply]]:
    """Yield the recorded turns that the agent does not know of, each with its reply, instead of asking it again."""
    if isinstance(rollout, ReplayedRollout):
        yield from rollout.recall()


class ReplayedRollout(Rollout):
    """A trial with a recorded past. Nothing is recorded until all of that has been replayed."""

    _repeated: RawStep | None = None  # the recorded step that the agent must repeat next

    def replay(self, first: RawStep, steps: Iterable[RawStep]) -> None:
        """Play the recorded replies that the agent knows of."""
        self._clocked = True
        self._compare(first)
        for step in steps:
            self._repeat(step)

    def rehearse(self, steps: Iterator[RawStep], recorder: Recorder | None, heartbeat: Heartbeat | None) -> None:
        """Show the agent the turns of the remaining steps again, and let it play on after them."""
        self._book, self.guard.heartbeat = recorder, heartbeat
        self._past, self._repeated = steps, next(steps, None)
        self._go_live()

    def reply(self, reply: Reply) -> Turn:
        """Take a reply. One to a recorded turn must equal the recorded one."""
        step = self._repeated
        if step is None or self.over or self.failed:
            return super().reply(reply)
        try:
            self._rest()
            if not is_same_reply(reply, step.reply):
                raise AgentDiffers(f"Turn {self.turns}: the agent answers {shorten(reply)}, not what it did before.")
            self._go_on(step)
        except BaseException:
            self.failed = True
            raise
        return self.turn

    def recall(self) -> Iterator[tuple[Turn, Reply]]:
        """Yield the recorded turns that are left, each with its reply, and take that."""
        while (step := self._repeated) is not None:
            self._rest()
            if step.reply is not None:
                yield self.turn, step.reply
            self._go_on(step)

    def close(self, outcome: str = "cancelled", note: str = "") -> None:
        """Record how the trial ended, also if that was before all of its past was replayed, and close the world."""
        self._recorder = self._book
        super().close(outcome, note)

    def _rest(self) -> None:
        """Say that the agent is not being asked."""
        if self.guard.heartbeat is not None:
            self.guard.heartbeat[0] = 0

    def _go_on(self, step: RawStep) -> None:
        """Take a recorded reply, and record what follows if it was the last one."""
        self._repeat(step)
        self._repeated = next(self._past, None)
        self._go_live()

    def _repeat(self, step: RawStep) -> None:
        """Take a recorded reply, and compare the turn it leads to."""
        if step.reply is not None:
            self.guard.spend(step.took)
            self._take(step.reply, step.took)
        self._compare(step)

    def _compare(self, step: RawStep) -> None:
        shown_again = self.turn.last is not None and bytes(step.turn) == NO_TURN
        if not self.over and not shown_again and not is_same_turn(self.turn, step.turn):
            raise ReplayMismatch(f"Turn {self.turns} differs from the recorded one: the world or its data changed.")

    def _go_live(self) -> None:
        """Record everything from here on, if the agent has repeated all it must."""
        if self._repeated is None:
            self._recorder = self._book
            if self.turns >= self.guard.pause_at:
                self._pause()
        if not self.over:
            self.guard.start_clock()
