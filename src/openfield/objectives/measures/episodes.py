"""Similarity of two sets of episodes, say an agent's and a human's, with bootstrap intervals over episodes.

Does for episodes what `similarity` does for tables. Inputs are compared by their keys, so no code book is needed.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np

from openfield.objectives.measures.intervals import (
    DRAWS,
    MIN_EPISODES,
    Counted,
    Interval,
    Steps,
    count_episode,
    spread,
)
from openfield.objectives.measures.similarity import divergence
from openfield.objectives.tables.histograms import Array

MAX_VALUES = {"jaccard": 1.0, "jsd_nats": math.log(2)}


def compare_episodes(
    first: Sequence[Steps], second: Sequence[Steps], *, draws: int = DRAWS, seed: int = 0
) -> dict[str, Interval]:
    """Compute the Jaccard index and the Jensen-Shannon divergence of the inputs two agents acted on.

    Args:
        first: Episodes of the first agent, usually the human.
        second: Episodes of the second agent.
        draws: How many times the episodes of both are resampled.
        seed: The seed of the draws.
    """
    inputs: dict[Hashable, int] = {}
    one, other = ([count_episode(steps, inputs, {}) for steps in episodes] for episodes in (first, second))
    return compare_counted(one, other, len(inputs), draws=draws, seed=seed)


def compare_counted(
    first: Sequence[Counted], second: Sequence[Counted], size: int, *, draws: int = DRAWS, seed: int = 0
) -> dict[str, Interval]:
    """Compare counted episodes as `compare_episodes` does.

    Args:
        first: Counted episodes of the first agent.
        second: Counted episodes of the second agent.
        size: Number of different inputs; they are numbered from 0.
        draws: How many times the episodes of both are resampled.
        seed: The seed of the draws.
    """
    if not first or not second:
        return {name: Interval(None, note="no episodes of the human at this stage") for name in MAX_VALUES}
    both = _Visits(first, size), _Visits(second, size)
    found = _likeness(*(visits.counts(np.ones(visits.episodes)) for visits in both))
    if min(len(first), len(second)) < MIN_EPISODES:
        return {name: Interval(value, note=f"fewer than {MIN_EPISODES} episodes") for name, value in found.items()}
    random = np.random.default_rng(seed)
    drawn = [_likeness(*(visits.redraw(random) for visits in both)) for _ in range(draws)]
    fewest = min(len(first), len(second))
    return {
        name: spread(value, [draw[name] for draw in drawn], fewest, (0.0, MAX_VALUES[name]), "episode bootstrap")
        for name, value in found.items()
    }


class _Visits:
    """How often each input was acted on in each episode."""

    def __init__(self, episodes: Sequence[Counted], size: int) -> None:
        self.episodes, self._size = len(episodes), size
        self._input = np.concatenate([episode.obs for episode in episodes])
        self._times = np.concatenate([episode.counts for episode in episodes])
        self._episode = np.repeat(np.arange(self.episodes), [len(episode.obs) for episode in episodes])

    def counts(self, weights: Array) -> Array:
        """Count how often each input was acted on, with a weight for every episode."""
        return np.bincount(self._input, weights[self._episode] * self._times, self._size)

    def redraw(self, random: np.random.Generator) -> Array:
        """Count the same for resampled episodes."""
        return self.counts(random.multinomial(self.episodes, np.full(self.episodes, 1 / self.episodes)))


def _likeness(first: Array, second: Array) -> dict[str, float]:
    shared, union = np.count_nonzero((first > 0) & (second > 0)), np.count_nonzero((first > 0) | (second > 0))
    return {"jaccard": shared / union, "jsd_nats": divergence(first / first.sum(), second / second.sum())}
