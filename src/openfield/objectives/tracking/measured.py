"""Compute the objectives of a life at a moment, and say how much data they stand on.

Beyond the cap of memory the values are estimates from the inputs that were kept, and `note` says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from openfield.errors import InvalidInput
from openfield.objectives.evaluation import evaluate
from openfield.objectives.frames.encode import whole
from openfield.objectives.measures.entropy import log_ratio
from openfield.objectives.measures.excess import EmpowermentEstimate, describe_saturation, estimate_empowerment
from openfield.objectives.measures.permutations import DRAWS
from openfield.objectives.tables.counts import Counts
from openfield.objectives.tables.table import Table
from openfield.objectives.tracking.life import Life

MAX_SHUFFLED = 1_000_000
"""Transitions from which the null is left out: it would take seconds."""
GROWTH = 1.1
"""How much a life must have grown until it is measured again as a whole, which takes as long as it was."""


class LifeMeasures(msgspec.Struct, frozen=True, kw_only=True):
    """The objectives of a life so far, or of its last transitions; entropies and information in nats."""

    transitions: int
    """How many they are of; exact also where inputs are sampled."""
    episodes: int
    """Episodes begun in the whole life."""
    inputs: int
    """Distinct inputs that were acted on; estimated where inputs are sampled."""
    values: dict[str, float]
    """The five objectives of `evaluate`."""
    empowerment: EmpowermentEstimate
    """Empowerment with its permutation null and excess."""
    sample: float = 1.0
    """The share of inputs that were kept."""
    kept: int = 0
    """Transitions that the values are computed from. If their share is far from `sample`, estimates are poor."""
    note: str = ""
    """Says that inputs are sampled; empty if all are kept."""
    saturation: str = ""
    """Says that inputs hardly repeat, so that entropy and gain only measure the number of transitions."""

    def scalars(self) -> dict[str, float]:
        """Return the scalars for a log: values, null and excess where there is one, and the amount of data."""
        known = {"empowerment_null": self.empowerment.null, "empowerment_excess": self.empowerment.excess}
        counts = {"distinct_inputs": float(self.inputs), "sample": self.sample}
        return self.values | {name: value for name, value in known.items() if value is not None} | counts


def measure_life(
    life: Life, last: int | None = None, *, num_obs: int | None = None, draws: int = DRAWS
) -> LifeMeasures:
    """Compute the objectives of a life.

    Args:
        life: The life.
        last: Measure only this number of transitions at the end.
        num_obs: Distinct inputs of the environment, for the Dirichlet gain; by default those of this life so far.
        draws: How many times actions are shuffled for the null of empowerment; 0 leaves it out.

    Raises:
        InvalidInput: There are no transitions, fewer were held than are asked for, or `num_obs` is less than was seen.
    """
    if whole(draws, "number of draws") < 0:
        raise InvalidInput(f"The number of draws is {draws}; it must not be negative.")
    table = life.table(last)
    _, total = life.rows(last)
    known = max(round((0 if table.book is None else len(table.book.indices)) / life.sample), table.num_inputs)
    found = evaluate(table, num_obs=known if num_obs is None else num_obs)
    if found.faults:
        raise InvalidInput(found.faults[0])
    values = {name: value for name, value in found.values.items() if value is not None}
    if life.bits:
        values = _estimate(table, values, total, life.sample)
    shuffles = draws if table.counts.total <= MAX_SHUFFLED else 0
    return LifeMeasures(
        transitions=total,
        episodes=life.episodes,
        inputs=round(table.counts.inputs.size / life.sample),
        values=values,
        empowerment=estimate_empowerment(table.columns, table.counts, draws=shuffles),
        sample=life.sample,
        kept=int(table.counts.total),
        note=life.note,
        saturation=describe_saturation(table.counts),
    )


def _estimate(table: Table, values: dict[str, float], total: int, sample: float) -> dict[str, float]:
    """Estimate the values of all transitions from those of the inputs that were kept.

    Entropy and empowerment are means over transitions, so those that are kept stand for all. The gains are sums over
    pairs, of which a known share is kept.
    """
    counts: Counts = table.counts
    kept = counts.total
    visits = counts.inputs
    entropy = visits.sum_of(lambda count: count / kept * log_ratio(total, visits.values))
    gains = {"info_gain_sqrt_counts": kept / total, "info_gain_log_counts": kept / total, "info_gain_dirichlet": 1.0}
    scaled = {name: values[name] * factor / sample for name, factor in gains.items() if name in values}
    return values | scaled | {"input_entropy": entropy}


class ScalarLog:
    """Computes the objectives of a life and of its window at regular intervals."""

    def __init__(self, life: Life, every: int, draws: int, log: Any = None) -> None:
        """Set what is measured and where the values go.

        Args:
            life: The life.
            every: Transitions between two logs.
            draws: How many times actions are shuffled for the null of empowerment.
            log: A writer with `add_scalar`, or a function of name, value and step.
        """
        if whole(every, "setting every") < 1:
            raise InvalidInput(f"The setting every is {every}; it must be positive.")
        if whole(draws, "setting draws") < 0:
            raise InvalidInput(f"The setting draws is {draws}; it must not be negative.")
        self._life, self._every, self._draws = life, every, draws
        self._add = None if log is None else _adder(log)
        self._whole = 0.0
        self.due = every
        """The transitions from which the next log is due."""

    def write(self) -> dict[str, float]:
        """Write the scalars of this moment, and return them."""
        found = self.scalars()
        if self._add is not None:
            for name, value in found.items():
                self._add(name, value, self._life.transitions)
        return found

    def scalars(self) -> dict[str, float]:
        """Return the scalars of this moment: those of the window, and those of the life if it has grown enough."""
        at = self._life.transitions
        self.due = at - at % self._every + self._every
        parts = {}
        if at >= self._whole:
            self._whole = at * GROWTH
            parts["life"] = measure_life(self._life, draws=self._draws)
        if window := min(self._life.window, at):
            parts["window"] = measure_life(self._life, window, draws=self._draws)
        return {
            f"objectives/{part}/{name}": value
            for part, found in parts.items()
            for name, value in found.scalars().items()
        }


def _adder(log: Any) -> Callable[[str, float, int], Any]:
    """Return the function that adds a scalar to a log."""
    add = getattr(log, "add_scalar", log)
    if not callable(add):
        raise InvalidInput(
            f"The setting log is {log!r}. Give a writer with add_scalar, such as SummaryWriter(FOLDER) of torch or "
            "tensorboardX, or a function of name, value and step."
        )
    found: Callable[[str, float, int], Any] = add
    return found
