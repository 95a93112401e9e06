"""Hold an agent to its limits: seconds, turns, tokens, and replies without an action.

A rollout asks its guard before and after every reply. The heartbeat shows the deadline of a reply to a watchdog in
another process.
"""

from __future__ import annotations

import time
from collections.abc import MutableSequence
from typing import Any

from openfield import clock
from openfield.clock import monotonic_ns
from openfield.errors import AgentProtocol, AgentTimeout
from openfield.trial import Limits

CUT_OFF = "Cut off by a limit on the agent:"
"""How the note of an attempt begins that a limit ended; the limit and its value follow."""
MAX_HESITATIONS = 1_000
"""How often in a row an agent may answer an ACT turn without acting."""
NEVER = 1 << 62
"""A moment, or a number of turns, that is not reached."""
UNLIMITED = Limits(reply_seconds=None)
MICROSECONDS = -1024
"""Mask for times: digits below a microsecond are noise, and take room in the record."""
Heartbeat = MutableSequence[int] | memoryview
"""A shared place for the moment by which the agent must answer, in nanoseconds; 0 while it is not asked."""


class LimitGuard:
    """Measures what an agent consumes in a trial, and says when its rollout must pause."""

    def __init__(self, limits: Limits = UNLIMITED, heartbeat: Heartbeat | None = None) -> None:
        """Begin to measure the time of a trial.

        Args:
            limits: What the agent may use up.
            heartbeat: Where a watchdog in another process sees by when the agent must answer.
        """
        self.limits, self.heartbeat = limits, heartbeat
        self.stopping = False
        """Whether `stop` was called."""
        self.pause_at = limits.episode_turns or NEVER
        """The number of turns from which on the rollout pauses after a reply: it was stopped, or a limit is reached."""
        self._deadline = nanoseconds(limits.reply_seconds)
        self._tokens_left = limits.tokens or NEVER
        self._hesitations = self._hesitated_at = 0
        self._late = False
        self._started = self._shown = monotonic_ns()
        self._ends_at = nanoseconds(limits.trial_seconds, self._started)

    @property
    def is_needed(self) -> bool:
        """Whether there is a limit or a watchdog, so that replies must be timed."""
        return self.heartbeat is not None or self.limits != UNLIMITED

    @property
    def seconds(self) -> float:
        """How long the trial has taken, with the recorded replies that were replayed."""
        return (monotonic_ns() - self._started) / 1e9

    @property
    def waited(self) -> int:
        """Nanoseconds since the turn was shown."""
        return (monotonic_ns() - self._shown) & MICROSECONDS

    def start_clock(self) -> None:
        """Begin to time a reply: the agent is shown a turn now."""
        self._shown = time.monotonic_ns() - clock.stopped  # `monotonic_ns`, without a call that costs 3 % of a step
        if self.heartbeat is not None:
            self.heartbeat[0] = self._shown + self._deadline

    def stop_clock(self, turn: int) -> int:
        """Return how many nanoseconds the reply to a turn took.

        Raises:
            AgentTimeout: It took too long.
        """
        now = time.monotonic_ns() - clock.stopped
        took = (now - self._shown) & MICROSECONDS
        if self.heartbeat is not None:
            self.heartbeat[0] = 0
        if took > self._deadline:
            raise AgentTimeout(f"Turn {turn}: no reply within {self.limits.reply_seconds:g} s.")
        if now > self._ends_at:
            self._late, self.pause_at = True, 0
        return took

    def excuse(self, nanoseconds: int) -> None:
        """Leave the time in which the agent was not connected out of the time of its next reply."""
        self._shown = min(self._shown + nanoseconds, monotonic_ns())
        if self.heartbeat is not None and self.heartbeat[0]:
            self.heartbeat[0] = self._shown + self._deadline

    def spend(self, nanoseconds: int) -> None:
        """Count the time of a recorded reply against the trial."""
        self._started -= nanoseconds
        self._ends_at -= nanoseconds

    def count_tokens(self, note: Any) -> int:
        """Count the tokens that the note of a reply names, and return them; an agent may note anything else."""
        named = (note.get(name) for name in ("tokens_in", "tokens_out")) if isinstance(note, dict) else ()
        tokens = sum(count for count in named if type(count) is int and count > 0)
        self._tokens_left -= tokens
        if self._tokens_left <= 0:
            self.pause_at = 0
        return tokens

    def count_hesitation(self, turns: int) -> None:
        """Count a reply without an action, the last of this many replies.

        Raises:
            AgentProtocol: There were too many in a row.
        """
        self._hesitations = self._hesitations + 1 if turns == self._hesitated_at + 1 else 1
        self._hesitated_at = turns
        if self._hesitations >= MAX_HESITATIONS:
            raise AgentProtocol(f"Turn {turns}: {MAX_HESITATIONS} replies in a row without an action.")

    def begin_episode(self, turns: int) -> None:
        """Count the turns of an episode that begins after this many."""
        self.pause_at = turns + (self.limits.episode_turns or NEVER)
        # Asked after the assignment, which a signal may have interrupted.
        if self.stopping or self._late or self._tokens_left <= 0:
            self.pause_at = 0

    def stop(self) -> None:
        """Pause after the next reply. A signal handler may call this."""
        self.stopping = True
        self.pause_at = 0

    def describe_limit(self) -> str:
        """Return the note of an attempt that a limit ends: it differs from that of an agent that was free to leave."""
        limit = "tokens" if self._tokens_left <= 0 else "trial_seconds" if self._late else "episode_turns"
        return f"{CUT_OFF} {limit} is {getattr(self.limits, limit)}."


def nanoseconds(seconds: float | None, start: int = 0) -> int:
    """Return the moment that many seconds after a start; None is never reached."""
    return NEVER if seconds is None else start + int(seconds * 1e9)
