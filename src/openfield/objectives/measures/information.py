"""Information gain: how much an agent's experience could teach about its environment.

Computed from the histograms of `tables.counts`: the paper's Dirichlet gain, its two approximations by counts, and the
forms the paper leaves out (true counts, totals, per transition).
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.measures.gamma import EULER, rise, spread
from openfield.objectives.tables.counts import Counts
from openfield.objectives.tables.histograms import Array
from openfield.objectives.tables.summary import TableSummary, summarise
from openfield.objectives.tables.table import TableLike, as_table

PAPER_STEPS = 100_000_000
"""The paper divides by this number, whatever the number of transitions."""

Mode = Literal["seen", "counts"]


def info_gain_dirichlet(table: TableLike, num_obs: int, num_actions: int | None = None) -> float:
    """Compute the paper's information gain: nats learned about next inputs, divided by 10^8 steps.

    Every distinct transition counts once.

    Args:
        table: The transitions.
        num_obs: Distinct inputs of the environment over all agents, the size of the Dirichlet distribution.
        num_actions: Actions of the environment. It is only checked and changes no number.

    Raises:
        InvalidInput: There is no positive count, or the table has more inputs or actions than these numbers.
    """
    return info_gain_total(table, num_obs, num_actions) / PAPER_STEPS


def info_gain_total(table: TableLike, num_obs: int, num_actions: int | None = None, *, mode: Mode = "seen") -> float:
    """Compute the nats learned about next inputs, from a flat Dirichlet prior for every input and action.

    Args:
        table: The transitions.
        num_obs: Distinct inputs of the environment.
        num_actions: Actions of the environment; only checked.
        mode: `seen` lets every distinct transition count once, as the paper does; `counts` uses the true counts.
    """
    checked = as_table(table)
    counts = checked.counts
    check_sizes(summarise(checked), num_obs, num_actions)
    return gain_seen(counts, num_obs) if mode == "seen" else gain_counts(counts, num_obs)


def info_gain_per_transition(table: TableLike, num_obs: int, *, mode: Mode = "seen") -> float:
    """Compute the nats learned, divided by the number of transitions of the table."""
    return info_gain_total(table, num_obs, mode=mode) / as_table(table).counts.total


def info_gain_sqrt_counts(table: TableLike) -> float:
    """Compute the sum of sqrt n(o, a) over all pairs seen, divided by the number of transitions."""
    return sqrt_counts(as_table(table).counts)


def info_gain_log_counts(table: TableLike) -> float:
    """Compute the sum of ln(1 + n(o, a)) over all pairs seen, divided by the number of transitions."""
    return log_counts(as_table(table).counts)


def sqrt_counts(counts: Counts) -> float:
    """Compute `info_gain_sqrt_counts` from histograms."""
    return counts.pairs.sum_of(np.sqrt) / counts.total


def log_counts(counts: Counts) -> float:
    """Compute `info_gain_log_counts` from histograms."""
    return counts.pairs.sum_of(np.log1p) / counts.total


def gain_seen(counts: Counts, num_obs: int) -> float:
    """Compute the Dirichlet gain where each distinct transition counts once.

    It depends only on k(o, a), the number of different next inputs of each pair.
    """

    def gain(branches: Array) -> Array:
        return rise(branches, float(num_obs)) - branches * EULER

    return max(0.0, counts.branches.sum_of(gain))  # with one input there is nothing to learn, not less


def gain_counts(counts: Counts, num_obs: int) -> float:
    """Compute the Dirichlet gain from the true counts."""
    return math.fsum((counts.pairs.sum_of(lambda count: rise(count, float(num_obs))), counts.triples.sum_of(spread)))


def check_sizes(table: TableSummary, num_obs: int, num_actions: int | None = None) -> None:
    """Check that an environment has at least the inputs and actions that its table has.

    Raises:
        InvalidInput: The numbers are smaller, or not positive, or `num_obs` is not whole.
    """
    if not isinstance(num_obs, int | np.integer):
        raise InvalidInput(f"{table.name}: the number of inputs is {num_obs!r}; it must be a whole number.")
    if num_obs < 1:
        raise InvalidInput(f"{table.name}: the number of inputs is {num_obs}; it must be positive.")
    if num_actions is not None and num_actions < 1:
        raise InvalidInput(f"{table.name}: the number of actions is {num_actions}; it must be positive.")
    for kind, seen, said in (("inputs", table.num_inputs, num_obs), ("actions", table.num_actions, num_actions)):
        if said is not None and said < seen:
            raise InvalidInput(
                f"{table.name}: {seen:,} distinct {kind} were seen; the environment is said to have {said:,}."
            )
