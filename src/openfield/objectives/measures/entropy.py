"""Input entropy: how evenly an agent spread its time over the inputs it met.

Computed from the histograms of `tables.counts`: the plug-in value in nats, and the Miller-Madow correction.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from openfield.objectives.tables.counts import Counts
from openfield.objectives.tables.histograms import Array, Histogram, tally
from openfield.objectives.tables.images import visits_of
from openfield.objectives.tables.table import Table, TableLike, as_table

Inputs = Literal["sources", "all"]


def input_entropy(table: TableLike, *, inputs: Inputs = "sources") -> float:
    """Compute H(O) in nats, over the inputs an agent acted on.

    Args:
        table: The transitions.
        inputs: `sources` counts every input once per action taken on it, as the paper does, so the last input of an
            episode never counts. `all` counts both ends of every transition.

    Raises:
        InvalidInput: There is no positive count.
    """
    return entropy_of(input_histogram(as_table(table), inputs))


def input_entropy_corrected(table: TableLike, *, inputs: Inputs = "sources") -> float:
    """Compute input entropy plus the Miller-Madow term (K - 1) / 2n, its first-order bias."""
    return correct_entropy(input_histogram(as_table(table), inputs))


def entropy_of(visits: Histogram) -> float:
    """Compute the entropy in nats of the distribution that these counts make; exactly 0 for a single input.

    Every term is positive and accurate to the last digit, unlike ln n - (1/n) sum v ln v, which cancels.
    """
    total, values = visits.total, visits.values
    return visits.sum_of(lambda count: count / total * log_ratio(total, values))


def correct_entropy(visits: Histogram) -> float:
    """Compute the entropy of these counts plus the Miller-Madow term."""
    return entropy_of(visits) + (visits.size - 1) / (2 * visits.total)


def log_ratio(total: float, count: Array) -> Array:
    """Compute ln(total / count), accurate also where the two are close.

    Pass whole numbers beyond 2^53 as integers: their difference is then exact.
    """
    ratio: Array = np.log1p((total - count) / count)
    return ratio


def input_histogram(table: Table, inputs: Inputs = "sources") -> Histogram:
    """Return the histogram of how often each input was visited."""
    counts: Counts = table.counts
    return counts.inputs if inputs == "sources" else tally(visits_of(table, inputs)[1])
