"""Estimate the objectives of episodes, or of counts where a table has no episodes, with 95 % intervals where they hold.

Episodes are the right unit to resample, because the steps within one depend on each other. Only the input entropy and
the excess of empowerment have intervals: in worlds whose truth is known these hold it (`bench_coverage`). Information
gain grows with the number of transitions and has no truth to hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from openfield.metrics.stats import t_quantile
from openfield.objectives.evaluation import NAMES, WITHOUT_UNIT, Unit, distinct_of, evaluate
from openfield.objectives.measures.excess import EmpowermentEstimate, describe_saturation, estimate_empowerment
from openfield.objectives.measures.permutations import DRAWS as SHUFFLES
from openfield.objectives.measures.rarefaction import coverage_of
from openfield.objectives.measures.similarity import divergence
from openfield.objectives.tables.histograms import Array
from openfield.objectives.tables.rows import Rows
from openfield.objectives.tables.table import Table, TableLike, as_table, make_table, summarise_table

DRAWS = 200
CHOICES = 20
"""Random choices of episodes over which values at a number of transitions are averaged."""
LARGE = 1 << 53
"""Counts above this are drawn from a normal distribution."""
MIN_EPISODES = 5
"""With fewer episodes than this no interval is given."""
MIN_COVERAGE = 0.9
"""With less of an agent's inputs seen so far (Good-Turing), the entropy has no interval."""
SIMILARITIES = ("jaccard", "jsd_nats")
GROWS = "no interval: it depends on the number of transitions"
EPISODES, COUNTS = "episode bootstrap", "Poisson bootstrap of counts; ignores time dependence"

Steps = Sequence[tuple[Hashable, Hashable]]
"""An episode: the key of every observation with the action taken on it. The last action may be None."""


class Interval(msgspec.Struct, frozen=True):
    """A value with its 95 % interval."""

    value: float | None
    low: float | None = None
    high: float | None = None
    note: str = ""


class Estimates(msgspec.Struct, frozen=True, kw_only=True):
    """The objectives of a group of episodes or of a table, in nats."""

    values: dict[str, Interval]
    excess: Interval = Interval(None)
    """Empowerment above its permutation null; the note says why it is missing."""
    empowerment: EmpowermentEstimate | None = None
    distinct: dict[str, int] = {}
    """Numbers of different inputs, actions, pairs, moves and transitions."""
    saturation: str = ""
    """Says in words that inputs hardly repeat; empty if they do."""


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


class EpisodeCounts:
    """The transitions of several episodes, added up; a weight for each row of each episode counts some of them."""

    def __init__(self, episodes: Sequence[Counted]) -> None:
        """Add up episodes that have a transition between them."""
        obs, action, next_obs, self.counts = (np.concatenate(columns) for columns in zip(*episodes, strict=True))
        self.size = len(episodes)
        self.episode = np.repeat(np.arange(self.size), [len(part.obs) for part in episodes])
        keys, place = np.unique(np.stack((obs, action, next_obs)), axis=1, return_inverse=True)
        self._keys, self._place = keys, place.reshape(-1)
        self.total = int(self.counts.sum())

    def add_up(self, times: Array) -> Array:
        """Return how often each distinct transition occurs, given how often each row of each episode occurs."""
        return np.bincount(self._place, times, self._keys.shape[1])

    def table(self, times: Array | None = None) -> Table:
        """Make the table of all rows, or of the rows with how often each occurs."""
        counts = self.add_up(self.counts if times is None else times).astype(np.int64)
        seen = counts > 0
        obs, action, next_obs = (part[seen] for part in self._keys)
        return make_table([Rows(obs, action, next_obs, counts[seen])])

    def thin(self, number: int, random: np.random.Generator) -> Array:
        """Draw a number of transitions: whole episodes in random order, and of the last one a random part."""
        order = random.permutation(self.size)
        sizes = np.bincount(self.episode, self.counts, self.size).astype(np.int64)
        ends = np.cumsum(sizes[order])
        whole = int(np.searchsorted(ends, number, side="right"))
        times = np.where(np.isin(self.episode, order[:whole]), self.counts, 0)
        left = number - (int(ends[whole - 1]) if whole else 0)
        if left:
            part = self.episode == order[whole]
            times[part] = random.multivariate_hypergeometric(self.counts[part], left)
        return times


def objectives_of_counted(episodes: Sequence[Counted], num_obs: int, *, draws: int = DRAWS, seed: int = 0) -> Estimates:
    """Compute the objectives of a group of episodes, with intervals from resampled episodes.

    Args:
        episodes: The episodes.
        num_obs: Distinct inputs of the environment.
        draws: How many times episodes are resampled.
        seed: The seed of resampling and shuffling.
    """
    if not any(len(part.obs) for part in episodes):
        return _nothing("no transitions")
    together = EpisodeCounts(episodes)
    table = together.table()
    if len(episodes) < MIN_EPISODES:
        return _estimate(table, num_obs, SHUFFLES, seed, None, f"fewer than {MIN_EPISODES} episodes")
    random = np.random.default_rng(seed)

    def redraw() -> Array:
        chosen = random.multinomial(len(episodes), np.full(len(episodes), 1 / len(episodes)))
        return together.add_up(chosen[together.episode] * together.counts)

    drawn = _Redrawn(table, redraw, draws, len(episodes))
    return _estimate(table, num_obs, SHUFFLES, seed, drawn, EPISODES)


def estimate_counts(
    table: TableLike,
    *,
    num_obs: int | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    shuffles: int = SHUFFLES,
) -> Estimates:
    """Compute the objectives of a table, with intervals from counts alone: each is drawn from a Poisson distribution.

    These intervals ignore that steps of an episode depend on each other. Their note says so. Without draws there are
    none, and without shuffles of the actions there is no null. Other arguments are those of `objectives_of_counted`.
    """
    checked = as_table(table)
    if not draws:
        return _estimate(checked, num_obs, shuffles, seed, None, "")
    random = np.random.default_rng(seed)
    drawn = _Redrawn(checked, lambda: _redrawn(checked.count, random), draws, max(2.0, float(checked.count.sum())))
    return _estimate(checked, num_obs, shuffles, seed, drawn, COUNTS)


def count_table(table: Table) -> Counted:
    """Return the transitions of a table as those of one episode."""
    return Counted(table.obs, table.action, table.next_obs, table.count)


def objectives_at(episodes: Sequence[Counted], number: int, num_obs: int | None) -> dict[str, float]:
    """Compute the objectives at a number of transitions: the mean over random choices of whole episodes.

    Values at equal numbers can be compared; those of all transitions depend on how many there are.
    """
    together, random = EpisodeCounts(episodes), np.random.default_rng(0)
    if number >= together.total:
        return _known(evaluate(together.table(), num_obs=num_obs).values)
    found = [
        _known(evaluate(together.table(together.thin(number, random)), num_obs=num_obs).values) for _ in range(CHOICES)
    ]
    return {name: math.fsum(each[name] for each in found) / CHOICES for name in found[0]}


def _known(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None and name != "empowerment"}


def in_unit(interval: Interval, name: str, unit: Unit) -> Interval:
    """Convert the interval of an objective from nats to a unit."""
    if unit == "nats" or name in WITHOUT_UNIT:
        return interval
    value, low, high = (
        None if number is None else number / math.log(2) for number in (interval.value, interval.low, interval.high)
    )
    return Interval(value, low, high, interval.note)


class _Redrawn:
    """Input entropy and empowerment of resampled counts."""

    def __init__(self, table: Table, redraw: Callable[[], Array], draws: int, units: float) -> None:
        """Resample the counts of a table.

        Args:
            table: The table.
            redraw: Returns new counts of its rows.
            draws: How many times to resample.
            units: How many episodes or transitions were resampled.
        """
        groups = _number(table.obs), _number(table.obs, table.action), _number(table.obs, table.next_obs)
        found = [_pair_of(groups, counts) for counts in (redraw() for _ in range(draws)) if counts.sum() > 0]
        self.entropies, self.empowerments = np.array(found).reshape(-1, 2).T
        self._units = units

    @property
    def enough(self) -> bool:
        """Whether there are enough draws to say how much values vary."""
        return len(self.entropies) > 1

    def width(self, drawn: Array) -> float:
        """Return half the width of Student's interval, from the standard deviation of resampled values."""
        units = self._units
        return t_quantile(units - 1) * float(np.std(drawn, ddof=1)) * math.sqrt(units / (units - 1))


def _pair_of(groups: tuple[Array, Array, Array], counts: Array) -> tuple[float, float]:
    total = float(counts.sum())
    inputs, pairs, moves = (_sum_log(np.bincount(group, counts)) for group in groups)
    return math.log(total) - inputs / total, max(0.0, (_sum_log(counts) - pairs - moves + inputs) / total)


def _estimate(
    table: Table, num_obs: int | None, shuffles: int, seed: int, drawn: _Redrawn | None, note: str
) -> Estimates:
    """Put together values and intervals; without draws there are no intervals, and the note says why."""
    counts, summary = table.counts, summarise_table(table)
    found = evaluate(summary, num_obs=num_obs).values
    known = estimate_empowerment(table.columns, counts, draws=shuffles, seed=seed)
    values = {
        name: Interval(value, note=GROWS if value is not None else "not defined") for name, value in found.items()
    }
    entropy = found["input_entropy"]
    if drawn is not None and not drawn.enough:
        drawn, note = None, "too few transitions to draw from"
    if entropy is not None:
        covered = coverage_of(counts.inputs)
        values["input_entropy"] = _around_entropy(entropy, covered, drawn, note, counts.inputs.size)
    values["empowerment"] = Interval(known.value, note="no interval: mostly bias if visits are few; see the excess")
    return Estimates(
        values=values,
        excess=_around_excess(known, drawn, note, table.num_actions),
        empowerment=known,
        distinct=distinct_of(summary),
        saturation=describe_saturation(counts),
    )


def _around_entropy(value: float, covered: float, drawn: _Redrawn | None, note: str, inputs: int) -> Interval:
    """Return the entropy with its interval, which reaches up by the bias that the draws show."""
    if drawn is None:
        return Interval(value, note=note)
    if covered < MIN_COVERAGE:
        return Interval(value, note=f"no interval: only {covered:.0%} of what would be met was seen")
    width, bias = drawn.width(drawn.entropies), max(0.0, value - float(drawn.entropies.mean()))
    return Interval(value, max(0.0, value - width), value + width + bias, note)


def _around_excess(known: EmpowermentEstimate, drawn: _Redrawn | None, note: str, actions: int) -> Interval:
    """Return the excess with its interval, which reaches up by how much the excess may be too low."""
    if known.excess is None:
        return Interval(None, note=known.reason)
    if drawn is None:
        return Interval(known.excess, note=note)
    width = drawn.width(drawn.empowerments)
    low, high = known.excess - width, min(known.excess + known.low_by + width, math.log(actions))
    return Interval(known.excess, min(low, known.excess), max(high, known.excess), note)


def _nothing(note: str) -> Estimates:
    return Estimates(values={name: Interval(None, note=note) for name in NAMES}, excess=Interval(None, note=note))


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


def compare_counted(first: Sequence[Counted], second: Sequence[Counted], size: int) -> dict[str, Interval]:
    """Compute the Jaccard index and the Jensen-Shannon divergence of the inputs two agents acted on.

    `size` inputs are numbered from 0. There are no intervals: both depend on how much was played.
    """
    if not first or not second:
        return {name: Interval(None, note="no episodes of the human at this stage") for name in SIMILARITIES}
    one, other = (_visits(episodes, size) for episodes in (first, second))
    shared, union = np.count_nonzero((one > 0) & (other > 0)), np.count_nonzero((one > 0) | (other > 0))
    found = {"jaccard": shared / union, "jsd_nats": divergence(one / one.sum(), other / other.sum())}
    return {name: Interval(value, note=GROWS) for name, value in found.items()}


def _visits(episodes: Sequence[Counted], size: int) -> Array:
    """Count how often each input was acted on."""
    inputs, times = (np.concatenate([getattr(each, name) for each in episodes]) for name in ("obs", "counts"))
    return np.bincount(inputs, times, size)
