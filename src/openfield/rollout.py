"""Play one trial: show a turn, take a reply, record both, show the next turn.

The middle of plan -> rollout -> journal -> metrics -> report, and the only way into the journal.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from contextlib import suppress
from types import NoneType
from typing import TYPE_CHECKING, Any

import msgspec

from openfield.core import Agent, Ask, Reply, Truth, Turn, World
from openfield.errors import (
    AgentDiffers,
    AgentFault,
    AgentProtocol,
    AgentTimeout,
    Cancelled,
    OpenfieldError,
    ReplayMismatch,
    WorldFault,
    blame_agent,
    describe_error,
    shorten,
)
from openfield.record import (
    MAX_STEP,
    NO_TIME,
    NO_TURN,
    REPLY_ENCODER,
    UNWRITABLE,
    EpisodeEnd,
    EpisodeInProgress,
    RawStep,
    check_note,
    count_tokens,
    is_same_reply,
    is_same_turn,
    make_action_plain,
    make_plain,
)
from openfield.trial import Limits

if TYPE_CHECKING:
    from openfield.journal.receipt import Receipt
    from openfield.journal.recorder import Recorder

ACT, BELIEF = Ask.ACT, Ask.BELIEF  # looking up a member of an enumeration takes as long as calling a method
CUT_OFF = "Cut off by a limit on the agent:"
"""How the note of an attempt begins that a limit ended; the limit and its value follow."""
MAX_HESITATIONS = 1_000
"""How often in a row an agent may answer an ACT turn without acting."""
SAVE_SECONDS = 30.0
"""An agent is asked for its state at most this often: what was played since is played again when a run is resumed."""
NEVER = 1 << 62
"""A moment, or a number of turns, that is not reached."""
UNLIMITED = Limits(reply_seconds=None)
MICROSECONDS = -1024
"""Mask for times: what is below a microsecond is noise, and takes room in the record."""
Heartbeat = MutableSequence[int] | memoryview
"""A shared place for the moment by which the agent must answer, in nanoseconds; 0 while it is not asked."""


def drive(rollout: Rollout, agent: Agent) -> str:
    """Let an agent in this process reply until the trial is over, and return the outcome.

    A human player, or one who needs an endpoint, whose class has `may_leave = True`, may raise `Cancelled`; from others
    it is an error like any.
    """
    passed = (Cancelled,) if getattr(agent, "may_leave", False) else ()
    while not rollout.over:
        try:
            reply = agent(rollout.turn)
            # Compared one by one: to look a class up in a set would call the hash of an agent's metaclass.
            if type(reply) is Reply and not (
                (kind := type(reply.action)) is int or kind is str or kind is float or kind is NoneType
            ):
                reply = make_action_plain(reply, rollout.turns)
        except AgentFault as fault:
            if fault.reply_note is not None:
                rollout.keep_note(fault.reply_note)
            raise
        except passed:
            raise
        except BaseException as error:
            raise blame_agent(f"Turn {rollout.turns}: the agent raised", error) from error
        rollout.reply(reply)
    return rollout.outcome


class Rollout:
    """A trial under way. It has fewer than 30 attributes: with more, Python looks all of them up in a slower way."""

    turn: Turn
    """What the agent may see now."""
    turns: int
    """How many replies were taken."""
    over: bool
    outcome: str
    """How the trial ended, once it is over: `done` or `truncated`."""
    save: Callable[[], bytes] | None = None
    """Returns the agent's state, which is committed with a finished episode."""
    save_seconds: float = SAVE_SECONDS
    """How long no state is asked for after the last one; the end of the trial is always saved."""

    def __init__(
        self,
        world: World,
        limits: Limits = UNLIMITED,
        recorder: Recorder | None = None,
        heartbeat: Heartbeat | None = None,
    ) -> None:
        """Start a trial.

        Args:
            world: A fresh world of the trial.
            limits: What the agent may use up.
            recorder: Where steps are written; None records nothing.
            heartbeat: Where a watchdog in another process sees by when the agent must answer.
        """
        self.world = world
        self.turns, self.over, self.outcome = 0, False, "done"
        self._timed = bool(getattr(world, "timed", False))
        self._limits, self._deadline = limits, nanoseconds(limits.reply_seconds)
        self._recorder, self._book = recorder, recorder  # `_recorder` is None while a recorded past is replayed
        self._heartbeat = heartbeat
        self._past: Iterator[RawStep] = iter(())
        self._repeated: RawStep | None = None  # the recorded step that the agent must repeat next
        self._episode = EpisodeInProgress()
        self._hesitations = 0  # how many in a row
        self._stopping = self._late = self._failed = False
        self._limit = ""  # the limit that ended the trial: a note tells it from an agent that was free to leave
        self._pause_at = limits.episode_turns or NEVER
        self._tokens_left = limits.tokens or NEVER
        self._started = self._shown = self._saved = time.monotonic_ns()
        self._ends_at = nanoseconds(limits.trial_seconds, self._started)
        self._begin()
        self._clocked = self._timed or recorder is not None or heartbeat is not None or limits != UNLIMITED
        self._start_clock()

    @classmethod
    def resume(
        cls,
        world: World,
        past: Iterable[RawStep],
        limits: Limits = UNLIMITED,
        recorder: Recorder | None = None,
        heartbeat: Heartbeat | None = None,
        known: int = NEVER,
    ) -> Rollout:
        """Go on with a trial: replay its recorded past and compare every turn with the record.

        Args:
            world: A fresh world of the trial.
            past: The recorded steps; none starts the trial.
            limits: What the agent may use up.
            recorder: Where new steps are written; None records nothing.
            heartbeat: Where a watchdog in another process sees by when the agent must answer.
            known: How many recorded steps the agent knows of. The turns after them are shown to it again, and it must
                answer as it did, unless `recall` tells it of them.

        Raises:
            ReplayMismatch: A replayed turn differs from the recorded one; the message says which.
        """
        steps = iter(past)
        first = next(steps, None)
        if first is None:
            return cls(world, limits, recorder, heartbeat)
        rollout = cls(world, limits)
        rollout._clocked = True
        rollout._compare(first)
        for step in itertools.islice(steps, max(known - 1, 0)):
            rollout._repeat(step)
        rollout._book, rollout._heartbeat = recorder, heartbeat
        rollout._past, rollout._repeated = steps, next(steps, None)
        rollout._go_live()
        return rollout

    def reply(self, reply: Reply) -> Turn:
        """Take the reply to `turn`, record both, and return the next turn."""
        if self.over or self._failed:
            raise OpenfieldError(f"Turn {self.turns}: the trial has ended; it takes no further reply.")
        try:
            if self._repeated is not None:
                self._rehearse(reply, self._repeated)
            else:
                took = self._stop_clock() if self._clocked else 0
                if (
                    type(reply) is not Reply
                    or reply.belief is not None
                    or reply.note is not None
                    or reply.took is not NO_TIME
                ):
                    reply = self._check(reply)
                self._take(reply, took)
                if self._recorder is not None and self._recorder.due:
                    self._recorder.settle(took)
                if self.turns >= self._pause_at:
                    self._pause()
        except BaseException:
            self._failed = True
            raise
        if self._clocked:
            self._start_clock()
        return self.turn

    def stop(self) -> None:
        """End the rollout as cancelled with the next reply. A signal handler may call this."""
        self._stopping = True
        self._pause_at = 0

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stopping

    def cut(self) -> None:
        """End the trial between two episodes as truncated, because the agent's protocol lets it stop early."""
        self.over, self.outcome = True, "truncated"

    def truncate(self) -> None:
        """End the trial here as a limit does: with the episode in progress, if a turn of it was played."""
        self.cut()
        if self.turns > self._episode.first:
            self._end_episode(self.turn, self._truth, "truncated")

    def leave(self) -> bool:
        """End the trial as truncated for an agent that has left, and return whether its world lets it leave here."""
        farewell: Callable[[], Sequence[Reply] | None] = getattr(self.world, "farewell", lambda: None)
        replies = None if self.over or self._failed else farewell()
        if replies is None:
            return False
        for reply in replies:
            self.excuse(NEVER)
            self.reply(reply)
        if not self.over:
            self.cut()
        return True

    def excuse(self, nanoseconds: int) -> None:
        """Leave the time in which the agent was not connected out of what its next reply took."""
        now = time.monotonic_ns()
        self._shown = min(self._shown + nanoseconds, now)
        if self._heartbeat is not None and self._heartbeat[0]:
            self._heartbeat[0] = self._shown + self._deadline

    def keep_note(self, note: Any) -> None:
        """Record the note of an agent that failed to reply."""
        with suppress(ValueError):
            plain = check_note(note)
            if self._recorder is not None:
                took = (time.monotonic_ns() - self._shown) & MICROSECONDS
                self._recorder.write(Reply(note=plain), took, None, None)
                self.turns += 1

    def commit(self) -> Receipt[None] | None:
        """Hand over all turns so far to be made durable, and return a receipt that tells when they are."""
        return None if self._recorder is None else self._recorder.commit()

    def close(self, outcome: str = "cancelled", note: str = "") -> None:
        """Record how the trial ended, and close the world."""
        try:
            if self._book is not None:
                self._book.end(outcome, note or self._limit, (time.monotonic_ns() - self._started) / 1e9)
        finally:  # also where nothing can be written any more
            self.world.close()

    def _begin(self) -> None:
        try:
            self.turn, self._truth = self.world.reset(), self.world.truth
            if self._recorder is not None:
                self._recorder.write(None, 0, self.turn, self._truth)
        except Exception as error:
            raise WorldFault(f"The world could not start: {describe_error(error)}") from error
        self._episode.novel = self._truth.novel

    def _start_clock(self) -> None:
        self._shown = time.monotonic_ns()
        if self._heartbeat is not None and not self.over:
            self._heartbeat[0] = self._shown + self._deadline

    def _stop_clock(self) -> int:
        """Return how many nanoseconds the reply took.

        Raises:
            AgentTimeout: It took too long.
        """
        now = time.monotonic_ns()
        took = (now - self._shown) & MICROSECONDS
        if self._heartbeat is not None:
            self._heartbeat[0] = 0
        if took > self._deadline:
            raise AgentTimeout(f"Turn {self.turns}: no reply within {self._limits.reply_seconds:g} s.")
        if now > self._ends_at:
            self._late, self._pause_at = True, 0
        return took

    def _check(self, reply: Reply) -> Reply:
        """Return a reply as it can be read back from the record, and check that it is one."""
        if type(reply) is not Reply:
            raise AgentProtocol(f"Turn {self.turns}: the agent answered {shorten(reply)}; it must return a Reply.")
        check_further = getattr(self.world, "check_belief", None)
        try:
            plain = make_plain(reply)
            if plain.belief is not None and check_further is not None:
                check_further(plain.belief)
        except AgentProtocol as error:
            raise AgentProtocol(f"Turn {self.turns}: {error}") from None
        return plain

    def _take(self, reply: Reply, took: int) -> None:
        """Do what a reply means: move the world on, show the same turn again, or end the trial.

        An episode is over when the world goes on from its last turn. A world that shows that turn again, the very same
        object, has more said about the episode.
        """
        turn, truth, world = self.turn, self._truth, self.world
        bare = reply if reply.note is None else Reply(reply.action, reply.belief)  # a note is for the record only
        if reply.belief is not None:
            self._episode.belief = reply.belief
        again = reply.action is None and turn.ask is ACT
        shown: Turn | msgspec.Raw | None = None
        try:
            if turn.last is not None and world.over and not (getattr(world, "stays", None) or (lambda _: False))(bare):
                self.over = True
            elif again:
                shown = self._as_recorded(turn)
            elif reply.belief is None and turn.ask is BELIEF:
                raise AgentProtocol("a belief was asked for and the reply has none")
            else:
                self.turn = shown = world.step(Reply(reply.action, reply.belief, took / 1e9) if self._timed else bare)
                self._truth = world.truth
                if shown is turn and turn.last is not None:
                    again, shown = True, None
            if self._recorder is not None:
                self._recorder.write(reply, took, shown, None if self._truth is truth else self._truth)
        except Exception as error:
            raise self._blame(error, reply, took) from error
        self.turns += 1
        if reply.note is not None:
            self._count_tokens(reply.note)
        if again:
            self._count_hesitation()
            return
        self._hesitations = 0
        if turn.last is not None or truth.episode_over:
            self._end_episode(turn, truth, turn.last or "terminated")

    def _as_recorded(self, turn: Turn) -> Turn | msgspec.Raw:
        """Return the turn as it was when it was shown: the agent may have changed its observation since."""
        recorded = None if self._recorder is None else self._recorder.last_turn()
        return turn if recorded is None else recorded

    def _count_tokens(self, note: Any) -> None:
        self._tokens_left -= count_tokens(note)
        if self._tokens_left <= 0:
            self._pause_at = 0

    def _count_hesitation(self) -> None:
        self._hesitations += 1
        if self._hesitations >= MAX_HESITATIONS:
            raise AgentProtocol(f"Turn {self.turns}: {MAX_HESITATIONS} replies in a row without an action.")

    def _end_episode(self, turn: Turn, truth: Truth, ended: str) -> None:
        """Record the episode that ended with a turn, with the agent's state, and start the next one.

        The turn that ends a hidden episode already shows the next one. Its truth is that of the beginning.

        Raises:
            AgentFault: The agent could not be saved; the episode is recorded all the same.
        """
        episode, fault = self._episode, None
        novel = episode.novel if truth.episode_over and turn.last is None else truth.novel
        self._episode = EpisodeInProgress(episode.number + 1, self.turns, truth.novel)
        self._pause_at = self.turns + (self._limits.episode_turns or NEVER)
        # Asked after the assignment, which a signal may have interrupted.
        if self._stopping or self._late or self._tokens_left <= 0:
            self._pause_at = 0
        if self._recorder is None:
            return
        end = EpisodeEnd(
            cell=self._recorder.cell,
            attempt=self._recorder.attempt,
            number=episode.number,
            phase=turn.phase,
            novel=novel,
            turns=self.turns - episode.first,
            performance=truth.performance,
            belief=episode.belief,
            ended=ended,
            detail=truth.detail,
        )
        state, fault = self._save_agent()
        self._recorder.end_episode(end, state, hidden=turn.last is None)
        if fault is not None:
            raise fault

    def _save_agent(self) -> tuple[bytes | None, AgentFault | None]:
        """Return the agent's state if it is time for one, or what went wrong."""
        now = time.monotonic_ns()
        if self.save is None or not (self.over or now >= nanoseconds(self.save_seconds, self._saved)):
            return None, None
        try:
            state = self.save()
            self._saved = time.monotonic_ns()
            return state, None
        except AgentFault as fault:
            return None, type(fault)(f"Turn {self.turns}: {fault}")

    def _pause(self) -> None:
        """End the rollout between two turns, because of `stop` or because a limit was reached.

        An episode that ended by itself is recorded as it ended, with the reply to its last turn. One in which no turn
        was played is not recorded.
        """
        if self.over:
            return
        if self._stopping:
            raise Cancelled("Stopped on request.")
        if self.turn.last is None and not self._truth.episode_over:
            limit = "tokens" if self._tokens_left <= 0 else "trial_seconds" if self._late else "episode_turns"
            self._limit = f"{CUT_OFF} {limit} is {getattr(self._limits, limit)}."
            self.truncate()

    def _blame(self, error: Exception, reply: Reply, took: int) -> OpenfieldError:
        """Return whose fault an error is. What the agent said stays on record if it can be written."""
        place = f"Turn {self.turns}: "
        try:
            size = len(REPLY_ENCODER.encode(reply))
        except UNWRITABLE as reason:
            return AgentProtocol(f"{place}the reply cannot be recorded: {reason}.")
        if size > MAX_STEP:
            return AgentProtocol(f"{place}the reply has {size >> 20} MB; {MAX_STEP >> 20} MB are allowed.")
        if self._recorder is not None:
            self._recorder.write(reply, took, None, None)
            self.turns += 1
        if isinstance(error, AgentFault):
            return type(error)(f"{place}{error}")
        return WorldFault(f"{place}the world raised {describe_error(error)}")

    # Going on with a recorded trial.

    def _rehearse(self, reply: Reply, step: RawStep) -> None:
        """Check that the agent answers a recorded turn as it did, and go on to the next one."""
        if self._heartbeat is not None:
            self._heartbeat[0] = 0
        if not is_same_reply(reply, step.reply):
            raise AgentDiffers(f"Turn {self.turns}: the agent answers {shorten(reply)}, not what it did before.")
        self._go_on(step)

    def recall(self) -> Iterator[tuple[Turn, Reply]]:
        """Yield the recorded turns that the agent does not know of, each with its reply, instead of asking it again."""
        while (step := self._repeated) is not None:
            if self._heartbeat is not None:
                self._heartbeat[0] = 0
            if step.reply is not None:
                yield self.turn, step.reply
            self._go_on(step)

    def _go_on(self, step: RawStep) -> None:
        """Take a recorded reply, and record what follows if it was the last one."""
        self._repeat(step)
        self._repeated = next(self._past, None)
        self._go_live()

    def _repeat(self, step: RawStep) -> None:
        """Take a recorded reply, and compare the turn it leads to."""
        if step.reply is not None:
            self._started -= step.took
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
            self._ends_at = nanoseconds(self._limits.trial_seconds, self._started)
            if self.turns >= self._pause_at:
                self._pause()
        self._start_clock()


def nanoseconds(seconds: float | None, start: int = 0) -> int:
    """Return the moment so many seconds after a start; None is never reached."""
    return NEVER if seconds is None else start + int(seconds * 1e9)
