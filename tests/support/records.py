"""Cells made by hand, for tests of everything that reads the record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from openfield.core import Belief
from openfield.journal.reader import CellRecord, Episode
from openfield.trial import Phase, Trial


def make_trial(seed: int = 0, novelty: Sequence[str] = ("swap",), **fields: Any) -> Trial:
    """A trial of a domain called `maze`."""
    phases = (Phase("training", 2), Phase("test", 2), Phase("test", 4, tuple(novelty)))
    return Trial(**{"domain": "maze", "version": 1, "seed": seed, "phases": phases} | fields)


def make_cell(
    training: Sequence[float | None] = (),
    before: Sequence[float | None] = (),
    after: Sequence[float | None] = (),
    beliefs: Sequence[float | None] = (),
    **fields: Any,
) -> CellRecord:
    """A cell with these performances; `beliefs` runs over all episodes, and 0.5 is a detection."""
    stretches = [("training", False, p) for p in training]
    stretches += [("test", False, p) for p in before] + [("test", True, p) for p in after]
    said = list(beliefs) + [None] * (len(stretches) - len(beliefs))
    episodes = tuple(
        Episode(
            number=number,
            phase=phase,
            novel=novel,
            turns=10,
            performance=performance,
            belief=None if belief is None else Belief(belief),
            detected=belief is not None and belief >= 0.5,
            ended="terminated",
        )
        for number, ((phase, novel, performance), belief) in enumerate(zip(stretches, said, strict=True))
    )
    given = {"id": "c0", "agent": "ada", "trial": make_trial(), "repeat": 0, "outcome": "done"}
    return CellRecord(**given | {"episodes": episodes} | fields)


def make_run(
    agents: Sequence[str] = ("ada", "bob"), trials: int = 10, episodes: int = 12, **fields: Any
) -> list[CellRecord]:
    """A whole run with plausible curves: later agents do worse and notice less."""
    return [
        _play(agent, rank, make_trial(seed, **fields), episodes)
        for rank, agent in enumerate(agents)
        for seed in range(trials)
    ]


def _play(agent: str, rank: int, trial: Trial, episodes: int) -> CellRecord:
    random = np.random.default_rng([trial.seed, rank])
    quarter, half = episodes // 4, episodes // 2
    delay, recovery = random.geometric(0.5 / (rank + 1)) - 1, 0.5 / (rank + 1)
    before = random.beta(8 / (rank + 1), 2, quarter)
    after = np.clip(0.25 + recovery * (1 - np.exp(-np.arange(half) / 4)) + random.normal(0, 0.08, half), 0, 1)
    doubt = random.beta(1, 9, 2 * quarter)
    belief = np.where(np.arange(half) >= delay, random.beta(9, 2, half), random.beta(2, 6, half))
    return make_cell(
        random.beta(5, 2, quarter).tolist(),
        before.tolist(),
        after.tolist(),
        [*doubt.tolist(), *belief.tolist()],
        id=f"{agent}-{trial.id}",
        agent=agent,
        trial=trial,
    )
