"""Rarefaction: the expected Jaccard index of two agents at equal numbers of transitions, and sample coverage.

A human has 3 x 10^5 transitions and an agent 10^8, which limits their plain Jaccard index.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.tables.histograms import Array, Histogram
from openfield.objectives.tables.pairs import Pairs

EXACT = 1000
"""Counts up to this are computed factor by factor. Above it ln Gamma is used, which is accurate to 10^-6."""
POINTS = 12


class RarefiedJaccard(msgspec.Struct, frozen=True):
    """The expected overlap of two samples of equal size."""

    transitions: int
    """Drawn from each side without replacement."""
    jaccard: float
    """Expected images in common over expected images in all."""
    first_images: float
    second_images: float


def rarefy_pairs(pairs: Pairs, sizes: Sequence[int] | None = None) -> list[RarefiedJaccard]:
    """Compute the Jaccard index at equal numbers of transitions, up to the total of the agent with fewer.

    The default sizes are a dozen numbers of transitions up to the largest possible.

    Raises:
        InvalidInput: Counts are fractions, or index 0 stands for many images, or a size is larger than a total.
    """
    if pairs.overlap.union != int(pairs.times.sum()):
        raise InvalidInput("Index 0 stands for many images: how often each was met is not known, so none can be drawn.")
    first, second = _whole(pairs.first), _whole(pairs.second)
    most = int(min(pairs.totals))
    return [_at(first, second, pairs.times, number) for number in (sizes or default_sizes(most))]


def default_sizes(most: int) -> list[int]:
    """Return a dozen numbers of transitions up to the largest, evenly spaced on a log scale."""
    return sorted({max(1, round(most ** (step / POINTS))) for step in range(1, POINTS)} | {most})


def coverage_of(visits: Histogram) -> float:
    """Estimate from how often inputs were visited the probability that the next was met before (Good-Turing)."""
    once = int(visits.times[visits.values == 1].sum())
    return 1 - once / float(visits.total)


def _whole(counts: Array) -> Array:
    if not np.array_equal(counts, np.round(counts)):
        raise InvalidInput("Drawing transitions needs whole counts.")
    return counts.astype(np.int64)


def _at(first: Array, second: Array, times: Array, number: int) -> RarefiedJaccard:
    p, q = chance_met(first, number, times), chance_met(second, number, times)
    mine, theirs, both = float(times @ p), float(times @ q), float(times @ (p * q))
    return RarefiedJaccard(number, both / (mine + theirs - both), mine, theirs)


def chance_met(counts: Array, number: int, times: Array | None = None) -> Array:
    """Compute the probability that each input is met in a sample of transitions, drawn without replacement.

    Args:
        counts: How often each input was met.
        number: The size of the sample.
        times: How many inputs have each of the counts; one if not given.
    """
    total = int(counts.sum() if times is None else counts @ times)
    if not 1 <= number <= total:
        raise InvalidInput(f"{number:,} transitions cannot be drawn from {total:,}.")
    values, place = np.unique(counts, return_inverse=True)
    missed = np.array([_log_missed(int(value), total, number) for value in values.tolist()])
    chances: Array = -np.expm1(missed)
    return chances[place]


def _log_missed(count: int, total: int, number: int) -> float:
    """Return ln of the probability that none of `count` out of `total` is among `number` drawn."""
    if count > total - number:
        return -math.inf
    if count <= EXACT:
        return math.fsum(math.log1p(-number / (total - step)) for step in range(count))
    left = total - number
    return (
        math.lgamma(left + 1) - math.lgamma(left - count + 1) - math.lgamma(total + 1) + math.lgamma(total - count + 1)
    )
