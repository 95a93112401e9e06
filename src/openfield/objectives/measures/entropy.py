"""Input entropy H(O), and empowerment I(A; P | O): how much an agent's action says about the input that follows.

Computed from the histograms of `tables.counts`: plug-in values in nats, and corrections of their first-order bias.
Actions follow the agent's own policy; nothing is maximised.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from openfield.objectives.tables.counts import Counts
from openfield.objectives.tables.histograms import Array, Histogram, merge_histograms, tally
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


def empowerment(table: TableLike) -> float:
    """Compute I(A; P | O) = H(A | O) - H(A | O, P) in nats, one step ahead.

    The value lies between 0 and ln of the number of actions.

    Raises:
        InvalidInput: There is no positive count.
    """
    return empowerment_of(as_table(table).counts)


def empowerment_corrected(table: TableLike) -> float:
    """Compute empowerment without its first-order bias (K_oap - K_oa - K_op + K_o) / 2n."""
    return correct_empowerment(as_table(table).counts)


def correct_empowerment(counts: Counts) -> float:
    """Compute `empowerment_corrected` from histograms."""
    return max(0.0, empowerment_of(counts) - empowerment_bias(counts))


def empowerment_bias(counts: Counts) -> float:
    """Compute the first-order bias of empowerment (Miller-Madow)."""
    surplus = counts.triples.size - counts.pairs.size - counts.moves.size + counts.inputs.size
    return surplus / (2 * counts.total)


def empowerment_of(counts: Counts) -> float:
    """Compute empowerment from histograms: [S(o,a,p) - S(o,a) - S(o,p) + S(o)] / n with S the sum of v ln v.

    Equal counts in opposite terms cancel as whole numbers, before any logarithm: a table whose actions make no
    difference gives 0.0. The rest is taken relative to n, which the four terms allow because each sums to n.
    """
    total = counts.total
    terms = merge_histograms([counts.triples, counts.pairs, counts.moves, counts.inputs], signs=[1, -1, -1, 1])
    return max(0.0, -terms.sum_of(lambda count: count / total * log_ratio(total, terms.values)))
