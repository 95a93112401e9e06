"""The episodes of a trial before the first is played: their phases, settings, seeds and layouts.

Between trials, which say how many of what, and worlds, which play them one after the other.
"""

from __future__ import annotations

import functools
import random
from typing import TYPE_CHECKING

from openfield.domains.doom.maps.scenario import Layout
from openfield.domains.doom.settings import DoomSettings
from openfield.domains.doom.trials import episode_seeds
from openfield.trial import Phase, Trial, derive

if TYPE_CHECKING:
    from openfield.domains.doom.domain import DoomDomain


class Script:
    """All of them, by their numbers from 0 on."""

    def __init__(self, domain: DoomDomain, trial: Trial) -> None:
        self._task = domain.task
        self.phases: list[Phase] = [phase for phase in trial.phases for _ in range(phase.episodes)]
        by_phase = {phase: domain.settings_in(trial, phase) for phase in trial.phases}
        self.settings: list[DoomSettings] = [by_phase[phase] for phase in self.phases]
        self.seeds = episode_seeds(trial, self.settings[0].episode_seed if self.settings else None)

    def __len__(self) -> int:
        return len(self.phases)

    @functools.cached_property
    def layouts(self) -> list[Layout]:
        """Where everything is at the start of each."""
        pairs = zip(self.settings, self.seeds, strict=True)
        return [self._task.lay_out(settings, random.Random(derive(seed, "layout"))) for settings, seed in pairs]
