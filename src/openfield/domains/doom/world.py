"""The world of a trial: its episodes one after the other, on one engine.

The middle of the domain: rollouts step it, it plays episodes and tells nothing a trial does not grant.
"""

from __future__ import annotations

import functools
import random
from typing import TYPE_CHECKING, Any

from openfield.core import Ask, PhaseName, Reply, Truth, Turn
from openfield.domains.doom import features
from openfield.domains.doom.agents.expert_policy import Reference
from openfield.domains.doom.engine import process as engines
from openfield.domains.doom.engine import shared_wads as volume
from openfield.domains.doom.episode import ARENA, Play, Task
from openfield.domains.doom.hints import hints_of
from openfield.domains.doom.maps.scenario import Layout, map_name
from openfield.domains.doom.trial_script import Script
from openfield.trial import Phase, Trial, derive

if TYPE_CHECKING:
    from openfield.domains.doom.domain import DoomDomain

NO_REWARD = Turn().reward
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
        play = self._play
        if play.ended is not None:
            return self._next()
        play.move(reply.action)
        self._ticks += 1
        return self._turn() if play.ended is None else self._last_turn()

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
        phase = script.phases[number]
        self._phase = PHASES[phase.name]
        self._novel = bool(phase.novelty)
        self._labelled = self._phase == "training" and not self._novel
        self._onset_passed |= self._novel
        self._light = self._indicator()
        self._settings = settings
        name = map_name(self._bound.first + number)
        self._play = Play(self._task, self._engine, name, seed, settings, layout)
        self._reference = Reference(self._task.name, layout.walls(), random.Random(derive(seed, "reference")))
        return self._first_turn(phase, layout)

    def _first_turn(self, phase: Phase, layout: Layout) -> Turn:
        """The turn an episode starts with: what an arena says only once, and nothing of how it goes."""
        observation = self._play.observe(self._ticks)
        if self._task is ARENA and self._settings.observation == "features":
            hints = hints_of(phase.novelty, getattr(self._settings, "hint_level", -1))
            observation.update(features.first_features(layout.walls(), hints))
        self.truth = Truth(novel=self._novel, performance=self._play.performance)
        return Turn(
            observation=observation,
            feedback=self._label() if self._labelled else None,
            phase=self._phase,
            first=True,
            red_light=self._light,
        )

    def _turn(self) -> Turn:
        """A turn in the midst of an episode, of which there are many: each line here shows in how fast they are."""
        performance = self._play.performance
        self.truth = Truth(novel=self._novel, performance=performance)
        feedback: dict[str, Any] = {"performance": performance}
        if self._labelled:
            feedback.update(self._label())
        return Turn(
            observation=self._play.observe(self._ticks), feedback=feedback, phase=self._phase, red_light=self._light
        )

    def _last_turn(self) -> Turn:
        """The turn an episode ends with."""
        play = self._play
        detail = {"won": play.won, "ticks": play.ticks}
        self.truth = Truth(novel=self._novel, performance=play.performance, episode_over=True, detail=detail)
        return Turn(
            ask=Ask.NONE,
            observation=self._play.observe(self._ticks),
            reward=play.reward or NO_REWARD,
            feedback={"performance": play.performance},
            phase=self._phase,
            last=play.ended,
            red_light=self._light,
        )

    def _label(self) -> dict[str, Any]:
        """What the reference agent would do now."""
        return {"label": {"action": self._reference.choose(self._play.scene)}}

    def _indicator(self) -> bool | None:
        """Whether the episode is novel, or, where the light stays on, any was."""
        if not self._trial.red_light:
            return None
        return self._onset_passed if self._script.settings[self._number].light_stays else self._novel
