"""Empowerment: how much an agent's action says about the input that follows, I(A; P | O).

Computed from the histograms of `tables.counts`. Actions follow the agent's own policy; nothing is maximised.
"""

from __future__ import annotations

from openfield.objectives.measures.entropy import log_ratio
from openfield.objectives.tables.counts import Counts
from openfield.objectives.tables.histograms import merge
from openfield.objectives.tables.table import TableLike, as_table


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
    surplus = counts.triples.size - counts.pairs.size - counts.moves.size + counts.inputs.size
    return max(0.0, empowerment_of(counts) - surplus / (2 * counts.total))


def empowerment_of(counts: Counts) -> float:
    """Compute empowerment from histograms: [S(o,a,p) - S(o,a) - S(o,p) + S(o)] / n with S the sum of v ln v.

    Equal counts in opposite terms cancel as whole numbers, before any logarithm: a table whose actions make no
    difference gives 0.0. What is left is taken relative to n, which the four terms allow because each sums to n.
    """
    total = counts.total
    terms = merge([counts.triples, counts.pairs, counts.moves, counts.inputs], signs=[1, -1, -1, 1])
    return max(0.0, -terms.sum_of(lambda count: count / total * log_ratio(total, terms.values)))
