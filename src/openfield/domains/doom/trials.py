"""How a trial is composed: labelled training once, then test episodes around the onset, all seeds from the trial.

Domains write trials with it. Worlds read a trial's episodes from a `TrialScript`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from openfield.course import Moment
from openfield.domains.doom.settings import DoomSettings
from openfield.trial import Phase, Trial, derive, gather_episodes

if TYPE_CHECKING:
    from openfield.domains.doom.domain import DoomDomain
    from openfield.domains.doom.maps.scenario import MapLayout

TRAINING_SEEDS = range(42_949_672)
TEST_SEEDS = range(42_949_672, 1 << 32)
"""Training and test never draw the same episode."""
FIRST_PART, MAX_PART = 20, 400
"""Episodes of a long trial whose maps are written together: before it begins, and later."""


class TrialScript:
    """The episodes of a trial before the first is played, by their numbers from 0 on."""

    def __init__(self, domain: DoomDomain, trial: Trial) -> None:
        self._task = domain.task
        self.phases: list[Phase] = [phase for phase in trial.phases for _ in range(phase.episodes)]
        self.moments: list[Moment[DoomSettings]] = domain.list_moments(trial)
        self.settings: list[DoomSettings] = [moment.settings for moment in self.moments]
        self._layouts: dict[int, MapLayout] = {}
        self.seeds = episode_seeds(trial, self.settings[0].episode_seed if self.settings else None)

    def __len__(self) -> int:
        return len(self.phases)

    def layouts(self, numbers: range | None = None) -> list[MapLayout]:
        """Return where everything is at the start of these episodes; of all if none are named."""
        return [self.layout(number) for number in (range(len(self)) if numbers is None else numbers)]

    def layout(self, number: int) -> MapLayout:
        """Return where everything is at the start of an episode. It is drawn when first asked for."""
        if number not in self._layouts:
            if len(self._layouts) > 2 * MAX_PART:
                self._layouts.clear()  # those of a long trial, most of which was played
            rng = random.Random(derive(self.seeds[number], "layout"))
            self._layouts[number] = self._task.lay_out(self.settings[number], rng)
        return self._layouts[number]

    def part(self, number: int) -> range:
        """Return the episodes whose maps are written together with this one's: all, unless the trial is long.

        The first part of a long trial is small, so that it begins at once.
        """
        if len(self) <= MAX_PART:
            return range(len(self))
        if number < FIRST_PART:
            return range(FIRST_PART)
        start = number - (number - FIRST_PART) % MAX_PART
        return range(start, min(start + MAX_PART, len(self)))


def compose(settings: DoomSettings, novelty: tuple[str, ...], seed: int, drawn: int | None = None) -> tuple[Phase, ...]:
    """Compose the test phases of a trial: normal, then one novel episode, then the rest in random order.

    The settings say how many episodes precede the novel one, unless that was drawn.
    """
    before = settings.before or int(0.3 * settings.episodes)
    before = before if before < settings.episodes else settings.episodes // 2
    before = before if drawn is None else drawn
    after = settings.episodes - before
    onset = min(after, 1) if novelty and settings.share else 0  # even the shortest trial has a novel episode
    novel = max(int(after * settings.share), onset) if onset else 0
    rest = [novelty] * (novel - onset) + [()] * (after - novel)
    random.Random(derive(seed, "order")).shuffle(rest)
    return gather_episodes([()] * before + [novelty] * onset + rest)


def compose_training(episodes: int, share: float, kinds: Sequence[tuple[str, ...]], seed: int) -> tuple[Phase, ...]:
    """Compose the training phases in random order; a share of the episodes has one of these novelties each."""
    rng = random.Random(derive(seed, "training order"))
    novel = [rng.choice(kinds) for _ in range(int(episodes * share))]
    drawn = [*novel, *[()] * (episodes - len(novel))]
    rng.shuffle(drawn)
    return gather_episodes(drawn, "training")


def episode_seeds(trial: Trial, forced: int | None) -> list[int]:
    """Draw the seed of every episode of a trial; no two are equal unless one is forced."""
    phases = [phase.name for phase in trial.phases for _ in range(phase.episodes)]
    if forced is not None:
        return [forced] * len(phases)
    rng = random.Random(derive(trial.seed, "episodes"))
    drawn: dict[int, None] = {}
    for name in phases:
        pool = TRAINING_SEEDS if name == "training" else TEST_SEEDS
        seed = rng.choice(pool)
        while seed in drawn:
            seed = rng.choice(pool)
        drawn[seed] = None
    return list(drawn)
