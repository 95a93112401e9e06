"""Information gain: how much an agent's experience could teach about its environment.

Computed from the histograms of `tables.counts`: the paper's Dirichlet gain, its two approximations by counts, and the
forms the paper leaves out (true counts, totals, per transition).
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.tables.counts import Counts
from openfield.objectives.tables.histograms import Array
from openfield.objectives.tables.table import TableLike, TableSummary, as_table, summarise_table

EULER = 0.57721566490153286061
HALF_LOG_TAU = 0.91893853320467274178
LARGE = 64.0
"""From this value on, four terms of the asymptotic series are accurate to 10^-19."""
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
    check_sizes(summarise_table(checked), num_obs, num_actions)
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


# Sums and differences of ln Gamma and digamma without cancellation. `scipy.special` costs 0.45 s to import and loses
# seven digits at 4 x 10^7 inputs.


def rise(steps: Array, start: float) -> Array:
    """Compute ln Gamma(x) - ln Gamma(start) - steps * (digamma(x) - 1), where x = start + steps.

    The last term adds `steps`, and `spread` subtracts them again. Without this a count of 2^53 would leave no digit of
    the gain.
    """
    end = start + steps
    if start < LARGE:
        return np.where(end < LARGE, _rise_small(steps, start), _rise_from_small(steps, start))
    base = (start - 0.5) * np.log1p(steps / start)
    risen: Array = base + stirling(end) - stirling(np.array(start)) + steps * (0.5 / end + _tail(end))
    return risen


def spread(counts: Array) -> Array:
    """Compute v * (digamma(1 + v) - 1) - ln Gamma(1 + v) for every count v."""
    small = np.minimum(counts, LARGE)
    exact = small * (digamma(1 + small) - 1) - np.array([math.lgamma(1 + count) for count in small.tolist()])
    wide = np.maximum(counts, LARGE)
    series: Array = 0.5 - HALF_LOG_TAU - 0.5 * np.log(wide) - wide * _tail(wide) - stirling(wide)
    return np.where(counts < LARGE, exact, series)


def digamma(x: Array) -> Array:
    """Compute the digamma function of positive numbers."""
    x = np.asarray(x, np.float64)
    shift = np.zeros_like(x)
    while (low := x < LARGE).any():
        shift[low] -= 1 / x[low]
        x = np.where(low, x + 1, x)
    value: Array = shift + np.log(x) - 0.5 / x - _tail(x)
    return value


def stirling(x: Array) -> Array:
    """Compute the difference between ln Gamma(x) and Stirling's formula, for large x."""
    y = 1 / (x * x)
    return (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y / 1680))) / x


def _tail(x: Array) -> Array:
    """Compute ln x - 1/(2x) - digamma(x), for large x."""
    y = 1 / (x * x)
    return y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y / 240)))


def _rise_small(steps: Array, start: float) -> Array:
    end = np.minimum(start + steps, LARGE)
    gammas = np.array([math.lgamma(x) for x in end.tolist()])
    risen: Array = gammas - math.lgamma(start) - (end - start) * (digamma(end) - 1)
    return risen


def _rise_from_small(steps: Array, start: float) -> Array:
    end = start + steps
    base = (start - 0.5) * np.log(end) - start + HALF_LOG_TAU - math.lgamma(start)
    return base + stirling(end) + steps * (0.5 / end + _tail(end))
