"""How a trial is composed: labelled training once, then test episodes around the onset, all seeds from the trial.

Used by the domains to write trials and by worlds to read them.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence

from openfield.core import PhaseName
from openfield.domains.doom.settings import DoomSettings
from openfield.trial import Phase, Trial, derive

TRAINING_SEEDS = range(42_949_672)
TEST_SEEDS = range(42_949_672, 1 << 32)
"""Training and test never meet the same episode."""


def compose(settings: DoomSettings, novelty: tuple[str, ...], seed: int) -> tuple[Phase, ...]:
    """The test phases of a trial: normal, then one novel episode, then the rest in random order."""
    before = episodes_before(settings)
    after = settings.episodes - before
    onset = min(after, 1) if novelty and settings.share else 0  # a trial that is to change does, however short it is
    novel = max(int(after * settings.share), onset) if onset else 0
    rest = [novelty] * (novel - onset) + [()] * (after - novel)
    random.Random(derive(seed, "order")).shuffle(rest)
    return gather([()] * before + [novelty] * onset + rest)


def episodes_before(settings: DoomSettings) -> int:
    """How many test episodes come before the onset."""
    before = settings.before or int(0.3 * settings.episodes)
    return before if before < settings.episodes else settings.episodes // 2


def compose_training(episodes: int, share: float, kinds: Sequence[tuple[str, ...]], seed: int) -> tuple[Phase, ...]:
    """Training phases: a share of the episodes has any of these novelties, the others are normal, in random order."""
    rng = random.Random(derive(seed, "training order"))
    novel = [rng.choice(kinds) for _ in range(int(episodes * share))]
    drawn = [*novel, *[()] * (episodes - len(novel))]
    rng.shuffle(drawn)
    return gather(drawn, "training")


def gather(episodes: Iterable[tuple[str, ...]], name: PhaseName = "test") -> tuple[Phase, ...]:
    """Phases of equal neighbours."""
    groups = itertools.groupby(episodes)
    return tuple(Phase(name, len(list(group)), novelty) for novelty, group in groups)


def episode_seeds(trial: Trial, forced: int | None) -> list[int]:
    """The seed of every episode of a trial, no two alike unless one is forced."""
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
