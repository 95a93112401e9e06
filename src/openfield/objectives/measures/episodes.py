"""How similar two sets of episodes are, say an agent's and a person's, with intervals from resampled episodes.

Beside `intervals`. Does for episodes what `similarity` does for tables; inputs are their keys and need no code book.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np

from openfield.objectives.measures.intervals import (
    DRAWS,
    FEWEST_EPISODES,
    Counted,
    Interval,
    Steps,
    count_episode,
    spread,
)
from openfield.objectives.measures.similarity import divergence
from openfield.objectives.tables.histograms import Array

HIGHEST = {"jaccard": 1.0, "jsd_nats": math.log(2)}


def compare_episodes(
    first: Sequence[Steps], second: Sequence[Steps], *, draws: int = DRAWS, seed: int = 0
) -> dict[str, Interval]:
    """Jaccard index and Jensen-Shannon divergence of the inputs acted on.

    Args:
        first: The one's episodes, the human's by custom.
        second: The other's.
        draws: How many times the episodes of both are drawn anew.
        seed: Of the draws.
    """
    inputs: dict[Hashable, int] = {}
    one, other = ([count_episode(steps, inputs, {}) for steps in episodes] for episodes in (first, second))
    return compare_counted(one, other, len(inputs), draws=draws, seed=seed)


def compare_counted(
    first: Sequence[Counted], second: Sequence[Counted], size: int, *, draws: int = DRAWS, seed: int = 0
) -> dict[str, Interval]:
    """As `compare_episodes` for episodes counted already, whose inputs are numbered from 0 to below `size`."""
    if not first or not second:
        return {name: Interval(None, note="no episodes of the human at this stage") for name in HIGHEST}
    both = _Visits(first, size), _Visits(second, size)
    found = _likeness(*(visits.counts(np.ones(visits.episodes)) for visits in both))
    if min(len(first), len(second)) < FEWEST_EPISODES:
        return {name: Interval(value, note=f"fewer than {FEWEST_EPISODES} episodes") for name, value in found.items()}
    random = np.random.default_rng(seed)
    drawn = [_likeness(*(visits.redraw(random) for visits in both)) for _ in range(draws)]
    fewest = min(len(first), len(second))
    return {
        name: spread(value, [draw[name] for draw in drawn], fewest, (0.0, HIGHEST[name]), "episode bootstrap")
        for name, value in found.items()
    }


class _Visits:
    """Which inputs were acted on in which episode."""

    def __init__(self, episodes: Sequence[Counted], size: int) -> None:
        self.episodes, self._size = len(episodes), size
        self._input = np.concatenate([episode.obs for episode in episodes])
        self._times = np.concatenate([episode.counts for episode in episodes])
        self._episode = np.repeat(np.arange(self.episodes), [len(episode.obs) for episode in episodes])

    def counts(self, weights: Array) -> Array:
        """How often each input was acted on, if every episode counts so many times."""
        return np.bincount(self._input, weights[self._episode] * self._times, self._size)

    def redraw(self, random: np.random.Generator) -> Array:
        """The same for episodes drawn anew."""
        return self.counts(random.multinomial(self.episodes, np.full(self.episodes, 1 / self.episodes)))


def _likeness(first: Array, second: Array) -> dict[str, float]:
    shared, union = np.count_nonzero((first > 0) & (second > 0)), np.count_nonzero((first > 0) | (second > 0))
    return {"jaccard": shared / union, "jsd_nats": divergence(first / first.sum(), second / second.sum())}
