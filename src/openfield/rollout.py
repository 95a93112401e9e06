"""A trial under way: it shows a turn, takes a reply, and has both written down before it goes on.

The middle of plan -> rollout -> journal -> metrics -> report, and the only way into the journal.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from types import MethodType
from typing import Any, NamedTuple

import msgspec

from openfield.core import Agent, Ask, Belief, Reply, Truth, Turn, World
from openfield.errors import (
    AgentDiffers,
    AgentFault,
    AgentProtocol,
    AgentTimeout,
    Cancelled,
    OpenfieldError,
    ReplayMismatch,
    WorldFault,
)
from openfield.journal.episode import EpisodeInProgress, Save
from openfield.journal.receipt import Receipt
from openfield.journal.replay import NO_TURN, UNWRITABLE, check_belief, is_same_reply, is_same_turn
from openfield.journal.steps import CHUNK_BYTES, REPLY_ENCODER, STEP_ENCODER, LargeArray, RawStep, Recorder, write_step
from openfield.runner.deadline import NEVER, Heartbeat, crash, nanoseconds, shorten
from openfield.trial import Limits

MOST_HESITATIONS = 1_000
"""How often in a row an agent may answer an ACT turn without acting."""
COSTLY_REPLY = 100_000_000
"""Nanoseconds; a reply that took longer is made durable at once, for a few milliseconds, rather than with its chunk."""
UNLIMITED = Limits(reply_seconds=None)
MICROSECONDS = -1024
"""Times are kept to about a microsecond: the nanoseconds below are noise, and cost 0.3 calls a turn to write down."""


def drive(rollout: Rollout, agent: Agent) -> str:
    """Has an agent that lives here reply until the trial is over; returns the outcome."""
    if not rollout.over:
        ask = agent.__call__ if type(agent.__call__) is MethodType else agent  # calling an object takes 0.5 calls more
        rollout.reply(_Resident(ask))  # type: ignore[arg-type]
    return rollout.outcome


class _Resident(NamedTuple):
    """Takes the place of a reply: all replies from here on are asked of this, which saves passing each of them on."""

    ask: Callable[[Turn], Reply]


class Rollout:
    """A trial under way."""

    turn: Turn
    """What the agent may see now."""
    turns: int
    """Replies taken so far."""
    over: bool
    outcome: str
    """How the trial ended, once it is over: `done` or `truncated`."""
    reply: Callable[[Reply], Turn]
    """Takes the reply to `turn` and returns the next turn."""
    save: Save | None = None
    """Gives the agent's state, which is committed with each finished episode."""

    def __init__(
        self,
        world: World,
        limits: Limits = UNLIMITED,
        recorder: Recorder | None = None,
        past: Iterable[RawStep] = (),
        rehearse_from: int = NEVER,
        heartbeat: Heartbeat | None = None,
    ) -> None:
        """Opens a trial, or goes on with one.

        Args:
            world: A fresh world of the trial.
            limits: What the agent may use up.
            recorder: Where steps are written; None records nothing.
            past: What was recorded before: it is replayed and compared turn by turn.
            rehearse_from: The number of recorded steps the agent knows of. The turns after them are shown to it again,
                and it must answer as it did; by default it knows of all.
            heartbeat: Where a watchdog outside sees by when the agent must answer.

        Raises:
            ReplayMismatch: A replayed turn differs from the recorded one; the message says which.
        """
        steps = iter(past)
        self.world = world
        self.turns, self.over, self.outcome = 0, False, "done"
        self._timed = bool(getattr(world, "timed", False))
        self._stays: Callable[[Reply], bool] = getattr(world, "stays", None) or (lambda _: False)
        self._limits = limits
        self._started = time.monotonic_ns()
        self._recorder: Recorder | None = None  # None while the past is replayed; `_book` is where the end is written
        self._book = recorder
        self._truth = Truth()
        self._episode = EpisodeInProgress()
        self._away = 0  # nanoseconds of the reply that is awaited in which there was nobody to give it
        self._hesitations = self._hesitated_at = 0  # in a row, and before which turn the last of them was
        self._stopping = self._late = False
        self._pause_at = limits.episode_turns or NEVER
        self._open(next(steps, None), recorder)
        for step in itertools.islice(steps, max(rehearse_from - 1, 0)):
            self._repeat(step)
        life = self._live(steps, recorder, heartbeat)
        self.reply = life.send
        next(life)

    def stop(self) -> None:
        """Ends the rollout as cancelled with the next reply; safe to call from a signal handler."""
        self._stopping = True
        self._pause_at = 0

    @property
    def stopping(self) -> bool:
        """Whether somebody said stop."""
        return self._stopping

    def cut(self) -> None:
        """Ends the trial between two episodes as truncated, because the agent's protocol lets it stop early."""
        self.over, self.outcome = True, "truncated"

    def excuse(self, nanoseconds: int) -> None:
        """Leaves the time an agent was away, because its connection had broken, out of what its next reply took."""
        self._away += nanoseconds

    def commit(self) -> Receipt[None] | None:
        """Hands over all turns so far to be made durable; the receipt says when they are."""
        return None if self._recorder is None else self._recorder.commit(self.turns + 1)

    def close(self, outcome: str = "cancelled", note: str = "") -> None:
        """Writes down what is left and how it ended, and closes the world."""
        try:
            if self._book is not None:
                steps = self._book.written if self._recorder is None else self.turns + 1
                self._book.end(outcome, note, steps, (time.monotonic_ns() - self._started) / 1e9)
        finally:  # also where nothing can be written any more
            self.world.close()

    def _live(
        self, past: Iterator[RawStep], recorder: Recorder | None, heartbeat: Heartbeat | None
    ) -> Generator[Turn, Reply | _Resident, None]:
        """Takes replies until the trial is over.

        The common reply, an action inside an episode, is handled here and over local names: this loop is what a turn
        costs. `_take` says what every reply means and handles the others.
        """
        try:
            ask = yield from self._rehearse(past, heartbeat)
            world, step, limits, self._recorder = self.world, self.world.step, self._limits, recorder
            if self.turns >= self._pause_at:
                self._pause()
            write, buffer = STEP_ENCODER.encode_into, (recorder.buffer if recorder else bytearray())
            timed, clock, act, recording = self._timed, time.monotonic_ns, Ask.ACT, recorder is not None
            deadline, curfew = nanoseconds(limits.reply_seconds), nanoseconds(limits.trial_seconds, self._started)
            stamped = bool(recorder or timed or heartbeat or min(deadline, curfew) < NEVER)
            remarkable, has_curfew, costly = min(deadline, COSTLY_REPLY), curfew < NEVER, False
            bounded = has_curfew or limits.episode_turns is not None
            episode = self._episode
            turn, truth, turns, over, took, size = self.turn, self._truth, self.turns, self.over, 0, len(buffer)
            while not over:
                if stamped:
                    shown = clock()
                    if heartbeat:
                        heartbeat[0] = shown + deadline
                if ask is None:
                    reply = yield turn
                    if self._away:
                        shown, self._away = min(shown + self._away, clock()) if stamped else 0, 0
                    if type(reply) is _Resident:
                        ask = reply.ask
                        continue
                else:
                    try:
                        reply = ask(turn)
                    except (AgentFault, Cancelled):
                        raise
                    except BaseException as error:
                        raise crash(f"Turn {turns}: the agent raised", error) from error
                if type(reply) is not Reply:
                    raise AgentProtocol(f"Turn {turns}: the agent answered {shorten(reply)}; it must return a Reply.")
                if stamped:
                    now = clock()
                    took = (now - shown) & MICROSECONDS
                    if heartbeat:
                        heartbeat[0] = 0
                    if took > remarkable:
                        if took > deadline:
                            raise AgentTimeout(f"Turn {turns}: no reply within {limits.reply_seconds:g} s.")
                        costly = recording
                    if has_curfew and now > curfew:
                        self._late, self._pause_at = True, 0
                if (belief := reply.belief) is not None and (
                    type(belief) is not Belief
                    or type(belief.novel) is not float
                    or not 0.0 <= belief.novel <= 1.0
                    or belief.level is not None
                ):
                    self._check(belief)
                if turn.ask is not act or reply.action is None or truth.episode_over:
                    self._take(reply, took)
                    turn, truth, turns, over = self.turn, self._truth, self.turns, self.over
                else:
                    try:
                        self.turn = turn = step(Reply(reply.action, reply.belief, took / 1e9) if timed else reply)
                        if recording:
                            if belief is not None:
                                episode.belief = belief
                            known, truth = truth, world.truth
                            if truth is known:
                                write((reply, took, turn), buffer, -1)
                            else:
                                self._truth = truth
                                write((reply, took, turn, truth), buffer, -1)
                        elif bounded:
                            self._truth = truth = world.truth
                    except LargeArray:
                        del buffer[size:]
                        write_step((reply, took, turn, truth), buffer)
                        self._truth = truth
                    except Exception as error:
                        raise self._blame(error, reply, took, size) from error
                    self.turns = turns = turns + 1
                if recording:
                    size = len(buffer)
                    if size > CHUNK_BYTES and recorder:
                        recorder.flush(turns + 1)
                        size = 0
                    if costly and recorder:
                        recorder.commit(turns + 1)
                        costly = False
                if turns >= self._pause_at:
                    self._pause()
                    over = self.over
        finally:
            self.reply = self._refuse
        yield turn

    def _refuse(self, reply: Reply) -> Turn:
        raise OpenfieldError(f"Turn {self.turns}: the trial has ended; it takes no further reply.")

    def _check(self, belief: object) -> None:
        """Sees that a belief can be read back from the record; the plainest ones are let through before this."""
        try:
            check_belief(belief)
        except (*UNWRITABLE, msgspec.DecodeError) as error:
            raise AgentProtocol(f"Turn {self.turns}: {shorten(belief)} is no belief: {error}.") from None

    def _take(self, reply: Reply, took: int) -> None:
        """Does what a reply means: end the trial, show the same turn again, or move the world on.

        An episode is over when the world goes on from its last turn: one that shows it again has more said about it.
        """
        turn, truth, size = self.turn, self._truth, len(self._recorder.buffer) if self._recorder else 0
        if reply.belief is not None:
            self._episode.belief = reply.belief
        hesitates = turn.ask is Ask.ACT and reply.action is None
        lingers = False
        try:
            if turn.last is not None and self.world.over and not self._stays(reply):
                self.over = True
                self._write((reply, took, None))
            elif hesitates:
                self._write((reply, took, self._as_written(turn)))
            elif turn.ask is Ask.BELIEF and reply.belief is None:
                raise AgentProtocol("a belief was asked for and the reply has none")
            else:
                stamped = Reply(reply.action, reply.belief, took / 1e9) if self._timed else reply
                self._show(self.world.step(stamped))
                lingers = turn.last is not None and self.turn is turn
                self._write((reply, took, None if lingers else self.turn, self._truth))
        except Exception as error:
            raise self._blame(error, reply, took, size) from error
        self.turns += 1
        if hesitates or lingers:
            self._count_hesitation()
        elif turn.last is not None or truth.episode_over:
            self._end_episode(turn, truth, turn.last or "terminated")

    def _show(self, turn: Turn) -> None:
        self.turn, self._truth = turn, self.world.truth

    def _as_written(self, turn: Turn) -> Turn | msgspec.Raw:
        """The turn the agent has before it as it was when it was shown, whatever the agent has done to it since."""
        written = None if self._recorder is None else self._recorder.last_turn(self.turns + 1)
        return turn if written is None else written

    def _write(self, step: tuple[Any, ...]) -> None:
        if self._recorder is not None:
            write_step(step, self._recorder.buffer)

    def _end_episode(self, turn: Turn, truth: Truth, ended: str) -> None:
        self._episode.end(turn, truth, ended, self.turns, self._recorder, self.save)
        self._pause_at = self.turns + (self._limits.episode_turns or NEVER)
        if self._stopping or self._late:  # asked after the assignment, which a signal may have interrupted
            self._pause_at = 0

    def _pause(self) -> None:
        """Ends the rollout between two turns, because somebody said stop or a limit was reached.

        An episode that ended by itself is booked as it ended, with the reply to its last turn; one that nobody has
        played a turn of is not booked at all.
        """
        if self.over:
            return
        if self._stopping:
            raise Cancelled("Stopped on request.")
        if self.turn.last is None and not self._truth.episode_over:
            self.over, self.outcome = True, "truncated"
            if self.turns > self._episode.first:
                self._end_episode(self.turn, self._truth, "truncated")

    def _count_hesitation(self) -> None:
        in_a_row = self._hesitated_at == self.turns - 1
        self._hesitations = self._hesitations + 1 if in_a_row else 1
        self._hesitated_at = self.turns
        if self._hesitations >= MOST_HESITATIONS:
            raise AgentProtocol(f"Turn {self.turns}: {MOST_HESITATIONS} replies in a row without an action.")

    def _blame(self, error: Exception, reply: Reply, took: int, size: int) -> OpenfieldError:
        """Whose fault an error is; what the agent said stays on record if it can be written."""
        place = f"Turn {self.turns}: "
        if self._recorder is not None:
            del self._recorder.buffer[size:]
        try:
            encoded = REPLY_ENCODER.encode(reply)
        except UNWRITABLE as reason:
            return AgentProtocol(f"{place}the reply cannot be recorded: {reason}.")
        if self._recorder is not None and encoded:
            self._write((reply, took, None))
            self.turns += 1
        if isinstance(error, AgentFault):
            return type(error)(f"{place}{error}")
        return WorldFault(f"{place}the world raised {type(error).__name__}: {error}")

    def _open(self, recorded: RawStep | None, recorder: Recorder | None) -> None:
        """Shows the first turn, and compares it or writes it down."""
        try:
            self._show(self.world.reset())
            self._episode.novel = self._truth.novel
            if recorded is None and recorder is not None:
                write_step((None, 0, self.turn, self._truth), recorder.buffer)
        except Exception as error:
            raise WorldFault(f"The world could not start: {type(error).__name__}: {error}") from error
        if recorded is not None:
            self._compare(recorded)

    def _rehearse(
        self, past: Iterator[RawStep], heartbeat: Heartbeat | None
    ) -> Generator[Turn, Reply | _Resident, Callable[[Turn], Reply] | None]:
        """Shows the agent turns it has answered before and sees that it answers them again as it did."""
        ask: Callable[[Turn], Reply] | None = None
        for step in past:
            if heartbeat:
                heartbeat[0] = nanoseconds(self._limits.reply_seconds, time.monotonic_ns())
            reply = (yield self.turn) if ask is None else self._asked(ask)
            if isinstance(reply, _Resident):
                ask = reply.ask
                reply = self._asked(ask)
            if heartbeat:
                heartbeat[0] = 0
            if not is_same_reply(reply, step.reply):
                raise AgentDiffers(f"Turn {self.turns}: the agent answers {shorten(reply)}, not what it did before.")
            self._repeat(step)
        return ask

    def _asked(self, ask: Callable[[Turn], Reply]) -> Reply:
        try:
            return ask(self.turn)
        except (AgentFault, Cancelled):
            raise
        except BaseException as error:
            raise crash(f"Turn {self.turns}: the agent raised", error) from error

    def _repeat(self, step: RawStep) -> None:
        """Does what was done before, and compares what comes of it."""
        if step.reply is not None:
            self._started -= step.took
            self._take(step.reply, step.took)
        self._compare(step)

    def _compare(self, step: RawStep) -> None:
        lingers = self.turn.last is not None and bytes(step.turn) == NO_TURN
        if not self.over and not lingers and not is_same_turn(self.turn, step.turn):
            raise ReplayMismatch(f"Turn {self.turns} differs from the recorded one: the world or its data changed.")
