"""The world of a trial: its episodes one after the other, on one engine.

The middle of the domain: rollouts step it, it plays episodes and tells nothing a trial does not grant.
"""

from __future__ import annotations

import functools
import random
from typing import TYPE_CHECKING, Any

from openfield.core import Ask, PhaseName, Reply, Truth, Turn
from openfield.domains.doom import engine as engines
from openfield.domains.doom import features, volume
from openfield.domains.doom.hints import hints_of
from openfield.domains.doom.play import ARENA, Play, Task
from openfield.domains.doom.reference import Reference
from openfield.domains.doom.scenario import map_name
from openfield.domains.doom.script import Script
from openfield.trial import Phase, Trial, derive

if TYPE_CHECKING:
    from openfield.domains.doom.domain import DoomDomain

NO_REWARD = Turn().reward
ACT, NONE = Ask.ACT, Ask.NONE
PHASES: dict[str, PhaseName] = {"training": "training", "test": "test"}
"""Defaults are left out of the record by identity: what came from another process must become the same object."""


class DoomWorld:
    """Plays the episodes of a trial."""

    def __init__(self, domain: DoomDomain, trial: Trial, large: bool = False) -> None:
        """Prepares a trial.

        Args:
            domain: Which task.
            trial: Which episodes.
            large: Whether the engine draws pictures for people.
        """
        self._domain = domain
        self._task: Task = domain.task
        self._trial = trial
        self._large = large
        self._script = Script(domain, trial)
        self._engine: engines.Engine | None = None
        self._number = -1
        self._ticks = 0
        self._onset_passed = False
        self.truth = Truth()

    @property
    def over(self) -> bool:
        """Whether the last episode is played."""
        return self._number + 1 >= len(self._script)

    def reset(self) -> Turn:
        """Starts the first episode."""
        if self._engine is None:
            self._engine = engines.take_engine(self._bound.wad, self._large)
        self._number, self._ticks, self._onset_passed = -1, 0, False
        return self._next()

    def step(self, reply: Reply) -> Turn:
        """Moves in the episode, or starts the next one."""
        if self._play.ended is not None:
            return self._next()
        self._play.move(reply.action)
        self._ticks += 1
        return self._turn()

    def look(self, query: str) -> Any:
        """`picture`: what the player sees, as an array."""
        return self._play.look(query)

    def close(self) -> None:
        """Lets the engine rest."""
        if self._engine is not None:
            engines.rest_engine(self._engine)
            self._engine = None

    @functools.cached_property
    def _bound(self) -> volume.Bound:
        return volume.bound(self._domain, self._trial, self._script)

    def _next(self) -> Turn:
        self._number += 1
        number, script = self._number, self._script
        seed, settings, layout = script.seeds[number], script.settings[number], script.layouts[number]
        if self._engine is None:
            raise RuntimeError("the world is closed")
        self._phase: Phase = script.phases[number]
        self._novel = bool(self._phase.novelty)
        self._onset_passed |= self._novel
        self._light = self._indicator()
        name = map_name(self._bound.first + number)
        self._play = Play(self._task, self._engine, name, seed, settings, layout)
        self._reference = Reference(self._task.name, layout.walls(), random.Random(derive(seed, "reference")))
        return self._turn(first=True)

    def _turn(self, first: bool = False) -> Turn:
        play, phase, settings = self._play, self._phase, self._script.settings[self._number]
        ended, performance = play.ended, play.performance
        observation = play.observe(settings.epoch + self._ticks * settings.tick)
        if first and self._task is ARENA and settings.observation == "features":
            hints = hints_of(phase.novelty, getattr(settings, "hint_level", -1))
            observation.update(features.first_features(self._script.layouts[self._number].walls(), hints))
        feedback: dict[str, Any] = {} if first else {"performance": performance}
        if ended is None:
            self.truth = Truth(novel=self._novel, performance=performance)
            if phase.name == "training" and not self._novel:
                feedback["label"] = {"action": self._reference.choose(play.scene)}
        else:
            detail = {"won": play.won, "ticks": play.ticks}
            self.truth = Truth(novel=self._novel, performance=performance, episode_over=True, detail=detail)
        return Turn(
            ask=ACT if ended is None else NONE,
            observation=observation,
            reward=play.reward or NO_REWARD,
            feedback=feedback or None,
            phase=PHASES[phase.name],
            first=first,
            last=ended,
            red_light=self._light,
        )

    def _indicator(self) -> bool | None:
        """Whether the episode is novel, or, where the light stays on, any was."""
        if not self._trial.red_light:
            return None
        return self._onset_passed if self._script.settings[self._number].light_stays else self._novel
