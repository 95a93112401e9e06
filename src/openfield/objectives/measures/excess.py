"""Empowerment beside its permutation null: how much of the plug-in value is more than bias.

Start at `estimate_empowerment`, which needs the rows of a table and nothing else. `bench_coverage` holds the rule for
"not identifiable" against worlds whose empowerment is known.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.measures.entropy import empowerment_bias, empowerment_of
from openfield.objectives.measures.permutations import DRAWS, permute_actions
from openfield.objectives.tables.counts import Counts, count_columns
from openfield.objectives.tables.histograms import Array
from openfield.objectives.tables.rows import Columns

TOLERANCE = 0.05
"""The largest mean error of an excess that is printed, as a share of ln(actions)."""
ROUNDING = 1e-9
"""Shuffled values that are lower than the plug-in value by no more than this count as equal to it."""

SATURATED = 0.9
"""The share of distinct inputs from which they are said to hardly repeat."""


class EmpowermentEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """The plug-in empowerment of a table in nats, what shuffled actions give, and the difference."""

    value: float
    """The plug-in value, as published."""
    null: float | None = None
    """The mean value if actions are shuffled within inputs."""
    band: tuple[float, float] | None = None
    """Where 95 % of the shuffled values lie."""
    p: float | None = None
    """(1 + k) / (1 + draws), with k the number of shuffled values that are not below the plug-in value."""
    excess: float | None = None
    """The plug-in value minus the mean of the shuffled ones; None if it is not identifiable."""
    reason: str = ""
    """Why there is no excess."""
    visits: float
    """Transitions per pair of input and action seen."""
    draws: int = 0
    error: float | None = None
    """About how far the excess may be from the truth on average."""
    low_by: float = 0.0
    """How much the excess may be too low on average."""


def estimate_empowerment(
    columns: Columns, counts: Counts | None = None, *, draws: int = DRAWS, seed: int = 0
) -> EmpowermentEstimate:
    """Estimate empowerment from the rows of a table.

    Args:
        columns: The rows in any order.
        counts: The histograms of the rows, if they are at hand.
        draws: How many times actions are shuffled; 0 leaves the null out.
        seed: The seed of the shuffles.

    Raises:
        InvalidInput: There are no rows.
    """
    if not len(columns.obs):
        raise InvalidInput("There are no transitions.")
    counts = counts or count_columns(columns)
    value, visits = empowerment_of(counts), counts.total / counts.pairs.size
    plain = EmpowermentEstimate(value=value, visits=visits)
    if not draws:
        return msgspec.structs.replace(plain, reason="the null was not computed")
    try:
        shuffled = permute_actions(columns, draws, seed)
    except InvalidInput as refused:
        return msgspec.structs.replace(plain, reason=str(refused).rstrip(".").lower())
    null = float(shuffled.mean())
    low, high = np.percentile(shuffled, (2.5, 97.5))
    reached = int((shuffled >= value - ROUNDING).sum())
    actions = len(np.unique(columns.action))
    bias = _bias_of(counts, null, actions)
    error = bias + _sampling_error(columns, value)
    known = actions > 1 and error <= TOLERANCE * math.log(actions)
    few = f"too few visits ({visits:.2g} per input-action pair)" if actions > 1 else "only one action was taken"
    return msgspec.structs.replace(
        plain,
        null=null,
        band=(float(low), float(high)),
        p=(1 + reached) / (1 + draws),
        excess=value - null if known else None,
        reason="" if known else few,
        draws=draws,
        error=error,
        low_by=bias,
    )


def _bias_of(counts: Counts, null: float, actions: int) -> float:
    """Estimate how much the mean of the excess is too low.

    The null has the bias of independent actions, which is larger than that of actions that matter (Miller-Madow). And
    actions that were not taken yet are missing in H(A | O), most of all on inputs that were seldom visited.
    """
    most = counts.inputs.sum_of(lambda visits: np.minimum(visits * math.log(actions), (actions - 1) / 2))
    return abs(null - empowerment_bias(counts)) + most / counts.total


def _sampling_error(columns: Columns, value: float) -> float:
    """Estimate the standard error of the plug-in value as if transitions were independent."""
    times = columns.counts.astype(np.float64)
    total = float(times.sum())
    _, obs = np.unique(columns.obs, return_inverse=True)
    parts = [_sum_alike(times, obs, other) for other in (None, columns.action, columns.next_obs)]
    every = _sum_alike(times, obs, columns.action, columns.next_obs)
    said = np.log(every * parts[0] / (parts[1] * parts[2]))
    return math.sqrt(float(times @ (said - value) ** 2) / total / total)


def _sum_alike(times: Array, obs: Array, *others: Array | None) -> Array:
    """Return for each row the sum of all rows that are alike in these columns."""
    place = obs
    for other in others:
        if other is not None:
            values, ranks = np.unique(other, return_inverse=True)
            place = np.unique(place * len(values) + ranks, return_inverse=True)[1]
    sums: Array = np.bincount(place, times)[place]
    return sums


def describe_saturation(counts: Counts) -> str:
    """Say in words that inputs hardly repeat, so that entropy and gain measure the number of transitions alone."""
    distinct, total = counts.inputs.size, counts.total
    if distinct < 2 or distinct < SATURATED * total:
        return ""
    if distinct == total:
        return f"all {distinct:,} inputs are distinct: entropy and gain only say how many transitions there are"
    return f"nearly all inputs are distinct ({distinct:,} in {total:,} transitions)"
