"""Bootstrap intervals for the objectives: over episodes, or over counts where a table has no episodes.

Episodes are the right unit to resample, because the steps within one depend on each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from openfield.errors import InvalidInput
from openfield.metrics.stats import t_quantile
from openfield.objectives.evaluation import NAMES, WITHOUT_UNIT, Unit, evaluate
from openfield.objectives.measures.information import EULER, PAPER_STEPS, rise
from openfield.objectives.measures.similarity import divergence
from openfield.objectives.tables.histograms import Array
from openfield.objectives.tables.rows import Rows
from openfield.objectives.tables.table import TableLike, as_table, make_table

DRAWS = 200
LARGE = 1 << 53
"""Counts above this are drawn from a normal distribution."""
MIN_EPISODES = 5
"""With fewer episodes than this no interval is given."""

MAX_VALUES = {"jaccard": 1.0, "jsd_nats": math.log(2)}

Steps = Sequence[tuple[Hashable, Hashable]]
"""An episode: the key of every observation with the action taken on it. The last action may be None."""


class Interval(msgspec.Struct, frozen=True):
    """A value with its 95 % interval."""

    value: float | None
    low: float | None = None
    high: float | None = None
    note: str = ""


class Counted(NamedTuple):
    """The transitions of one episode with how often each occurred; inputs and actions are numbers from 0."""

    obs: Array
    action: Array
    next_obs: Array
    counts: Array

    def renumbered(self, inputs: Array, actions: Array) -> Counted:
        """Return the episode with new numbers; `inputs` and `actions` hold the new number at the old one's place."""
        return Counted(inputs[self.obs], actions[self.action], inputs[self.next_obs], self.counts)


def count_episode(steps: Steps, inputs: dict[Hashable, int], actions: dict[Hashable, int]) -> Counted:
    """Count the transitions of an episode. New inputs and actions get the next numbers."""
    seen = np.array([inputs.setdefault(key, len(inputs)) for key, _ in steps], np.int64)
    taken = np.array([actions.setdefault(action, len(actions)) for _, action in steps[:-1]], np.int64)
    if len(seen) < 2:
        return Counted(*(np.empty(0, np.int64) for _ in range(4)))
    keys, counts = np.unique(np.stack((seen[:-1], taken, seen[1:])), axis=1, return_counts=True)
    return Counted(keys[0], keys[1], keys[2], counts)


def objectives_of_counted(
    episodes: Sequence[Counted], num_obs: int, *, draws: int = DRAWS, seed: int = 0
) -> dict[str, Interval]:
    """Compute the objectives of a group of episodes, with intervals from resampled episodes.

    Counts are kept per episode, so resampling episodes only changes the weights of rows.
    """
    if not any(len(part.obs) for part in episodes):
        return {name: Interval(None, note="no transitions") for name in NAMES}
    obs, action, next_obs, counts = (np.concatenate(columns) for columns in zip(*episodes, strict=True))
    episode = np.repeat(np.arange(len(episodes)), [len(part.obs) for part in episodes])
    distinct, place = np.unique(np.stack((obs, action, next_obs)), axis=1, return_inverse=True)
    place = place.reshape(-1)
    rows = Rows(distinct[0], distinct[1], distinct[2], np.bincount(place, counts).astype(np.int64))
    found = evaluate(make_table([rows]), num_obs=num_obs).values
    if len(episodes) < MIN_EPISODES:
        return {name: Interval(value, note=f"fewer than {MIN_EPISODES} episodes") for name, value in found.items()}
    random = np.random.default_rng(seed)

    def redraw() -> Array:
        chosen = random.multinomial(len(episodes), np.full(len(episodes), 1 / len(episodes)))
        return np.bincount(place, chosen[episode] * counts, len(rows.obs))

    return _intervals(found, _Keys(rows), redraw, num_obs, draws, len(episodes), "episode bootstrap")


def bootstrap_counts(
    table: TableLike, *, num_obs: int | None = None, draws: int = DRAWS, seed: int = 0
) -> dict[str, Interval]:
    """Compute the objectives with intervals from counts alone: every count is drawn from a Poisson distribution.

    These intervals are too narrow, because steps of an episode depend on each other. Their note says so.
    """
    checked = as_table(table)
    found = evaluate(checked, num_obs=num_obs).values
    keys = _Keys(Rows(checked.obs, checked.action, checked.next_obs, checked.count))
    random = np.random.default_rng(seed)

    total = max(2.0, float(checked.count.sum()))
    return _intervals(
        found,
        keys,
        lambda: _redrawn(checked.count, random),
        num_obs,
        draws,
        total,
        "Poisson bootstrap of counts; ignores time dependence",
    )


def in_unit(interval: Interval, name: str, unit: Unit) -> Interval:
    """Convert the interval of an objective from nats to a unit."""
    if unit == "nats" or name in WITHOUT_UNIT:
        return interval
    value, low, high = (
        None if number is None else number / math.log(2) for number in (interval.value, interval.low, interval.high)
    )
    return Interval(value, low, high, interval.note)


class _Keys:
    """The input, pair and move of each distinct key. Computes the objectives for any counts of the keys."""

    def __init__(self, rows: Rows) -> None:
        self.input = _number(rows.obs)
        self.pair = _number(rows.obs, rows.action)
        self.move = _number(rows.obs, rows.next_obs)
        self._total = float(rows.counts.sum())
        self._actions = len(np.unique(rows.action))

    def values(self, counts: Array, num_obs: int | None) -> dict[str, float]:
        """Compute the objectives of the keys with these counts."""
        total = float(counts.sum())
        pairs, inputs = np.bincount(self.pair, counts), np.bincount(self.input, counts)
        sums = [_sum_log(counts), _sum_log(pairs), _sum_log(np.bincount(self.move, counts)), _sum_log(inputs)]
        branches = np.bincount(np.bincount(self.pair, counts > 0).astype(np.int64))
        found = {
            "input_entropy": np.log(total) - sums[3] / total,
            "info_gain_sqrt_counts": float(np.sqrt(pairs).sum()) / total,
            "info_gain_log_counts": float(np.log1p(pairs).sum()) / total,
            "empowerment": max(0.0, (sums[0] - sums[1] - sums[2] + sums[3]) / total),
        }
        if num_obs is not None:
            size = np.arange(1, len(branches), dtype=np.float64)
            gains = rise(size, float(num_obs)) - size * EULER
            found["info_gain_dirichlet"] = float(branches[1:] @ gains) / PAPER_STEPS
        return found

    def bounds(self, num_obs: int | None) -> dict[str, tuple[float, float]]:
        """Return the smallest and largest possible value of each objective for this number of transitions."""
        total = self._total
        once = 0.0 if num_obs is None else float(rise(np.ones(1), float(num_obs))[0]) - EULER
        return {
            "input_entropy": (0.0, math.log(min(total, num_obs or total))),
            "info_gain_dirichlet": (0.0, total * once / PAPER_STEPS),
            "info_gain_sqrt_counts": (1 / math.sqrt(total), 1.0),
            "info_gain_log_counts": (math.log1p(total) / total, math.log(2)),
            "empowerment": (0.0, math.log(self._actions)),
        }


def spread(value: float, drawn: Sequence[float], episodes: float, bounds: tuple[float, float], note: str) -> Interval:
    """Return a value with Student's interval, cut at the bounds, from the standard deviation of resampled values.

    A resample misses a third of the episodes, so the mean of the draws differs from the value. This shift comes from
    the resampling and is left out. The interval is for the average value of as many episodes; see
    `design/intervals.md`.

    Raises:
        InvalidInput: There are fewer than two draws.
    """
    if len(drawn) < 2:
        raise InvalidInput("An interval needs at least two draws.")
    width = t_quantile(episodes - 1) * float(np.std(drawn, ddof=1)) * math.sqrt(episodes / (episodes - 1))
    low, high = max(value - width, bounds[0]), min(value + width, bounds[1])
    return Interval(value, min(value, low), max(value, high), note)


def _intervals(
    found: Mapping[str, float | None],
    keys: _Keys,
    redraw: Callable[[], Array],
    num_obs: int | None,
    draws: int,
    episodes: float,
    note: str,
) -> dict[str, Interval]:
    drawn = [keys.values(counts, num_obs) for counts in (redraw() for _ in range(draws)) if counts.sum() > 0]
    bounds = keys.bounds(num_obs)
    if len(drawn) < 2:
        return {name: Interval(value, note="too few transitions to draw from") for name, value in found.items()}
    return {
        name: Interval(None, note="not defined")
        if value is None
        else spread(value, [draw[name] for draw in drawn], episodes, bounds[name], note)
        for name, value in found.items()
    }


def _redrawn(counts: Array, random: np.random.Generator) -> Array:
    """Draw every count from a Poisson distribution, large ones from a normal one, as NumPy's Poisson ends near 2^63."""
    drawn: Array = random.poisson(np.minimum(counts, float(LARGE))).astype(np.float64)
    large = counts > LARGE
    drawn[large] = random.normal(counts[large], np.sqrt(counts[large].astype(np.float64)))
    return drawn


def _number(*columns: Array) -> Array:
    """Number rows from 0; equal rows get equal numbers."""
    if len(columns) == 1:
        return np.unique(columns[0], return_inverse=True)[1]
    return np.unique(np.stack(columns), axis=1, return_inverse=True)[1].reshape(-1)


def _sum_log(counts: Array) -> float:
    """Compute the sum of v ln v."""
    positive = counts[counts > 0]
    return float((positive * np.log(positive)).sum())


def compare_counted(
    first: Sequence[Counted], second: Sequence[Counted], size: int, *, draws: int = DRAWS, seed: int = 0
) -> dict[str, Interval]:
    """Compute the Jaccard index and the Jensen-Shannon divergence of the inputs two agents acted on.

    `size` inputs are numbered from 0. The episodes of both agents are resampled for the intervals.
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
