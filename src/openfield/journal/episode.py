"""The episode under way: which one it is, where it began, what is believed in it, and how its end is booked.

A part of rollout, which plays turns and leaves it to this when an episode has ended.
"""

from __future__ import annotations

from collections.abc import Callable

from openfield.core import Belief, Truth, Turn
from openfield.errors import AgentFault
from openfield.journal.steps import EpisodeEnd, Recorder

Save = Callable[[], bytes]
"""Gives the agent's state, or raises an `AgentFault`."""


class EpisodeInProgress:
    """The episode under way."""

    def __init__(self) -> None:
        self.novel = False
        """Whether it began in a changed world."""
        self.first = 0
        """How many turns had been taken when it began."""
        self.belief: Belief | None = None
        """What the agent said last of its world."""
        self._number = 0

    def end(
        self, turn: Turn, truth: Truth, ended: str, turns: int, recorder: Recorder | None, save: Save | None
    ) -> None:
        """Books the episode that ended with a turn, the agent's state with it, and starts counting the next one.

        The turn that ends a hidden episode already shows the next one, so what it began with is what was true of it.

        Raises:
            AgentFault: The agent could not be saved; the episode is finished all the same.
        """
        novel = self.novel if truth.episode_over and turn.last is None else truth.novel
        self.novel = truth.novel
        if recorder is not None:
            episode = EpisodeEnd(
                cell=recorder.cell,
                attempt=recorder.attempt,
                number=self._number,
                phase=turn.phase,
                novel=novel,
                turns=turns - self.first,
                performance=truth.performance,
                belief=self.belief,
                ended=ended,
                detail=truth.detail,
            )
            state, fault = _saved(save, turns)
            recorder.end_episode(episode, state, turns + 1, hidden=turn.last is None)
            if fault is not None:
                raise fault
        self._number += 1
        self.first = turns
        self.belief = None


def _saved(save: Save | None, turns: int) -> tuple[bytes | None, AgentFault | None]:
    """The agent's state, or what went wrong."""
    if save is None:
        return None, None
    try:
        return save(), None
    except AgentFault as fault:
        return None, type(fault)(f"Turn {turns}: {fault}")
