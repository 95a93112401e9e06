"""A world made of episodes: the script of a trial played one episode after the other.

Domains with plain episodes give it a `Play` per episode; it does the bookkeeping every such world needs.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Generic, Protocol, TypeVar

from openfield.core import Ask, Ending, Reply, Truth, Turn
from openfield.course import Moment
from openfield.domain import Domain
from openfield.errors import OpenfieldError
from openfield.settings import Settings
from openfield.trial import Phase, Trial, derive, show_light

__all__ = ["EpisodicWorld", "Play"]

S = TypeVar("S", bound=Settings)
ACT, NONE = Ask.ACT, Ask.NONE  # looking up a member of an enumeration takes as long as calling a method


class Play(Protocol):
    """One episode."""

    observation: Any
    reward: float
    """Of the last move."""
    ended: Ending | None
    """A play may also have a `detail`, which becomes that of the truth, a `look`, and a `change(settings)`, which puts
    other settings in force from the next move on: a domain whose plays have it is `turnwise`."""

    @property
    def performance(self) -> float | None:
        """How well it went so far, from 0 to 1; None where there is no such number yet, or at all."""
        ...

    def move(self, action: Any) -> None:
        """Carry out an action. Raise `AgentProtocol` if there is no such action."""
        ...


class EpisodicWorld(Generic[S]):
    """Plays the episodes of a trial in order, each with settings and a generator of its own."""

    def __init__(self, domain: Domain[S], trial: Trial, start: Callable[[S, random.Random], Play]) -> None:
        self._domain = domain
        self._trial = trial
        self._start = start
        self._script = [phase for phase in trial.phases for _ in range(phase.episodes)]
        self._number, self._skipped = -1, 0
        self._settings_in = cache(partial(domain.settings_in, trial))  # they are the same in all episodes of a phase
        self._course = domain.course(trial)
        self._turnwise = self._course is not None and self._course.is_turnwise
        self._phase: Phase | None = None
        self._turns = 0
        self._moment: Moment[S]
        self._red_light: bool | float | None = None
        self.truth = Truth()

    @property
    def over(self) -> bool:
        """Whether the last episode of the script is played."""
        return self._number + 1 >= len(self._script)

    def skip(self, episodes: int) -> bool:
        """Let `reset` begin after `episodes`: they do not depend on each other. Return False if none is left.

        Where a change counts turns they do, and it returns False too.
        """
        self._skipped = episodes
        return episodes < len(self._script) and not self._turnwise

    def reset(self) -> Turn:
        """Start the first episode."""
        self._course = self._domain.course(self._trial)
        if self._course is not None:
            self._course.prepare()
        self._number, self._turns, self._phase = -1, 0, None
        while self._number < self._skipped - 1:
            self._begin_episode()
        return self._next()

    def step(self, reply: Reply) -> Turn:
        """Move in the episode, or start the next one."""
        play = self._play
        if play.ended is not None:
            return self._next()
        play.move(reply.action)
        if self._turnwise and self._course is not None:
            self._turns += 1
            if play.ended is None:
                moment = self._course.at(self._number, self._turns)
                if moment is not self._moment:
                    play.change(self._take(moment))  # type: ignore[attr-defined]
        return self._turn()

    def look(self, query: str) -> Any:
        """Read something of the episode under way."""
        if not hasattr(self._play, "look"):
            raise OpenfieldError(f"{self._domain.name} has nothing to look at.")
        return self._play.look(query)

    def close(self) -> None:
        """Do nothing: there is nothing to free."""

    def _next(self) -> Turn:
        settings = self._begin_episode()
        rng = random.Random(derive(self._trial.seed, "episode", self._number))
        self._play = self._start(settings, rng)
        return self._turn(first=True)

    def _begin_episode(self) -> S:
        """Go on to the next episode, and return the settings in force in it."""
        self._number += 1
        before, phase = self._phase, self._script[self._number]
        self._phase, self._phase_name = phase, phase.name
        if self._course is None:
            return self._take(Moment(self._settings_in(phase), bool(phase.novelty), None, ""))
        if phase is not before:
            self._course.enter(phase, self._number, self._turns)
        return self._take(self._course.at(self._number, self._turns))

    def _take(self, moment: Moment[S]) -> S:
        """Note what is true from the next move on, and return the settings in force."""
        self._moment = moment
        if self._trial.red_light:
            self._red_light = show_light(self._trial.red_light, moment.novel, moment.strength)
        return moment.settings

    def _turn(self, first: bool = False) -> Turn:
        play, ended = self._play, self._play.ended
        performance, detail = play.performance, getattr(play, "detail", None)
        truth, moment = self.truth, self._moment
        if (
            first
            or ended is not None
            or detail is not None
            or performance != truth.performance
            or moment.strength != truth.strength
        ):
            self.truth = Truth(
                novel=moment.novel,
                performance=performance,
                episode_over=ended is not None,
                detail=detail,
                strength=moment.strength,
                change=moment.change,
            )
        return Turn(
            ask=ACT if ended is None else NONE,
            observation=play.observation,
            reward=play.reward,
            phase=self._phase_name,
            first=first,
            last=ended,
            red_light=self._red_light,
        )
