"""Play one trial: show a turn, take a reply, record both, show the next turn.

The middle of plan -> rollout -> journal -> metrics -> report, and the only way into the journal.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import NoneType
from typing import TYPE_CHECKING

import msgspec

from openfield.core import Agent, Ask, Reply, Truth, Turn, World
from openfield.errors import (
    AgentFault,
    AgentProtocol,
    Cancelled,
    OpenfieldError,
    WorldFault,
    blame_agent,
    describe_error,
    shorten,
)
from openfield.limit_guard import UNLIMITED, Heartbeat, LimitGuard
from openfield.record import (
    NO_TIME,
    EpisodeEnd,
    EpisodeInProgress,
    check_note,
    explain_unwritable,
    make_plain,
)
from openfield.trial import Limits

if TYPE_CHECKING:
    from openfield.journal.receipt import Receipt
    from openfield.journal.recorder import Recorder

__all__ = ["Rollout", "drive"]

ACT, BELIEF = Ask.ACT, Ask.BELIEF  # looking up a member of an enumeration takes as long as calling a method


def drive(rollout: Rollout, agent: Agent) -> str:
    """Let an agent in this process reply until the trial is over, and return the outcome.

    A human player, or one who needs an endpoint, whose class has `may_leave = True`, may raise `Cancelled`; from others
    it is an error like any.
    """
    passed = (Cancelled,) if getattr(agent, "may_leave", False) else ()
    while not rollout.over:
        try:
            reply = agent(rollout.turn)
        except AgentFault as fault:
            rollout._keep_note(fault)
            raise
        except passed:
            raise
        except BaseException as error:
            raise blame_agent(f"Turn {rollout.turns}: the agent raised", error) from error
        rollout.reply(reply)
    return rollout.outcome


class Rollout:
    """A trial under way."""

    turn: Turn
    """What the agent may see now."""
    turns: int
    """How many replies were taken."""
    over: bool
    outcome: str
    """How the trial ended, once it is over: `done` or `truncated`."""
    failed: bool
    """Whether a reply could not be taken, so that no other is."""
    guard: LimitGuard
    """What holds the agent to its limits."""
    save: Callable[[bool], bytes | None] | None = None
    """Returns the agent's state, to be committed with a finished episode, or None. Takes whether the trial is over."""

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
        self.world, self._recorder = world, recorder
        self.turns, self.over, self.failed, self.outcome = 0, False, False, "done"
        self.guard = LimitGuard(limits, heartbeat)
        self._limit = ""  # the limit that ended the trial
        self._timed = bool(getattr(world, "timed", False))
        self._clocked = self._timed or recorder is not None or self.guard.is_needed
        try:
            self.turn, self._truth = world.reset(), world.truth
            if recorder is not None:
                recorder.write(None, 0, self.turn, self._truth)
        except Exception as error:
            raise WorldFault(f"The world could not start: {describe_error(error)}") from error
        self._episode = EpisodeInProgress(novel=self._truth.novel)
        self._episode.note(self._truth)
        if self._clocked:
            self.guard.start_clock()

    def reply(self, reply: Reply) -> Turn:
        """Take the reply to `turn`, record both, and return the next turn."""
        if self.over or self.failed:
            raise OpenfieldError(f"Turn {self.turns}: the trial has ended; it takes no further reply.")
        try:
            took = self.guard.stop_clock(self.turns) if self._clocked else 0
            # Compared one by one: to look a class up in a set would call the hash of an agent's metaclass.
            if (
                type(reply) is not Reply
                or reply.belief is not None
                or reply.note is not None
                or reply.took is not NO_TIME
                or not ((kind := type(reply.action)) is int or kind is str or kind is float or kind is NoneType)
            ):
                reply = self._check(reply)
            self._take(reply, took)
            if self._recorder is not None and self._recorder.due:
                self._recorder.settle()
            if self.turns >= self.guard.pause_at:
                self._pause()
        except BaseException:
            self.failed = True
            raise
        if self._clocked and not self.over:
            self.guard.start_clock()
        return self.turn

    def stop(self) -> None:
        """End the rollout as cancelled with the next reply. A signal handler may call this."""
        self.guard.stop()

    def cut(self) -> None:
        """End the trial between two episodes as truncated, because the agent's protocol lets it stop early."""
        self.over, self.outcome = True, "truncated"

    def truncate(self) -> None:
        """End the trial here as a limit does: with the episode in progress, if a turn of it was played."""
        self.cut()
        if self.turns > self._episode.first:
            self._end_episode(self.turn, self._truth, "truncated")

    def commit(self) -> Receipt[None] | None:
        """Hand over all turns so far to be made durable, and return a receipt that says when they are."""
        return None if self._recorder is None else self._recorder.commit()

    def close(self, outcome: str = "cancelled", note: str = "") -> None:
        """Record how the trial ended, and close the world."""
        try:
            if self._recorder is not None:
                self._recorder.end(outcome, note or self._limit, self.guard.seconds)
        finally:  # also where nothing can be written any more
            self.world.close()

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
        """Act on a reply: move the world on, show the same turn again, or end the trial.

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
        if reply.note is not None and self.guard.count_tokens(reply.note) and self._recorder is not None:
            self._recorder.hurry()
        if again:
            self.guard.count_hesitation(self.turns)
        elif turn.last is not None or truth.episode_over:
            self._end_episode(turn, truth, turn.last or "terminated")
        now = self._truth
        if now.strength is not None and now is not truth and not (now.episode_over and self.turn.last is None):
            self._episode.note(now)  # the truth of a hidden end is that of the next episode

    def _as_recorded(self, turn: Turn) -> Turn | msgspec.Raw:
        """Return the turn as it was when it was shown: the agent may have changed its observation since."""
        recorded = None if self._recorder is None else self._recorder.last_turn()
        return turn if recorded is None else recorded

    def _end_episode(self, turn: Turn, truth: Truth, ended: str) -> None:
        """Record the episode that ended with a turn, with the agent's state, and start the next one.

        The turn that ends a hidden episode already shows the next one. Its truth is that of the beginning.

        Raises:
            AgentFault: The agent could not be saved; the episode is recorded all the same.
        """
        episode, state, fault = self._episode, None, None
        hidden = truth.episode_over and turn.last is None
        novel = episode.novel if hidden or episode.strength is not None else truth.novel
        self._episode = EpisodeInProgress(episode.number + 1, self.turns, hidden and truth.novel)
        self.guard.begin_episode(self.turns)
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
            belief=truth.belief or episode.belief,
            ended=ended,
            detail=truth.detail,
            strength=episode.strength,
            change=episode.change,
        )
        try:
            state = None if self.save is None else self.save(self.over)
        except AgentFault as error:
            fault = type(error)(f"Turn {self.turns}: {error}")
        self._recorder.end_episode(end, state, hidden=turn.last is None)
        if fault is not None:
            raise fault

    def _pause(self) -> None:
        """End the rollout between two turns, because of `stop` or because a limit was reached.

        An episode that ended by itself is recorded as it ended, with the reply to its last turn. One in which no turn
        was played is not recorded.
        """
        if self.over:
            return
        if self.guard.stopping:
            raise Cancelled("Stopped on request.")
        if self.turn.last is None and not self._truth.episode_over:
            self._limit = self.guard.describe_limit()
            self.truncate()

    def _blame(self, error: Exception, reply: Reply, took: int) -> OpenfieldError:
        """Return whose fault an error is. What the agent said stays on record if it can be written."""
        place = f"Turn {self.turns}: "
        if refusal := explain_unwritable(reply):
            return AgentProtocol(f"{place}the reply {refusal}.")
        if self._recorder is not None:
            self._recorder.write(reply, took, None, None)
            self.turns += 1
        if isinstance(error, AgentFault):
            return type(error)(f"{place}{error}")
        return WorldFault(f"{place}the world raised {describe_error(error)}")

    def _keep_note(self, fault: AgentFault) -> None:
        """Record the note of an agent that failed to reply, if it left one."""
        if fault.reply_note is not None and self._recorder is not None:
            with suppress(ValueError):
                self._recorder.write(Reply(note=check_note(fault.reply_note)), self.guard.waited, None, None)
                self.turns += 1
