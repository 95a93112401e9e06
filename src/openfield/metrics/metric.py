"""A metric is a pure function from one cell, where needed among others, to named numbers for that trial.

Stands between the record and the summary: journal -> metrics -> report. Plugins provide `Metric` values through the
entry points `openfield.metrics`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from openfield.metrics.stats import Bounds
from openfield.view import CellRecord

Kind = Literal["mean", "rate", "count"]
Better = Literal["higher", "lower", ""]
Measure = Callable[[CellRecord], Mapping[str, float | None]]
Relate = Callable[[Sequence[CellRecord], str | None], Measure]
"""From all cells, and the name of the agent to hold them against if one was asked for, to the measure of each."""


class Number(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One named number of a trial, and how it is read over trials."""

    name: str
    """Unique among all numbers; metrics that share a number share its name."""
    title: str
    note: str
    """What exactly it says, for tables and tooltips."""
    kind: Kind = "mean"
    """`mean` of a continuous number, `rate` of a yes or no (1 or 0), `count` from 0 on."""
    better: Better = "higher"
    bounds: Bounds | None = (0.0, 1.0)
    """Between which values it can lie at all; None if anywhere."""


@dataclass(frozen=True)
class Metric:
    """A family of numbers that are measured together."""

    name: str
    note: str
    numbers: tuple[Number, ...]
    measure: Measure
    """A number that is missing or None is not defined in that trial."""
    relate: Relate | None = None
    """For numbers that need other agents' cells too."""

    def among(self, cells: Sequence[CellRecord], baseline: str | None = None) -> Metric:
        """The metric as it measures cells that are some of these."""
        return self if self.relate is None else replace(self, measure=self.relate(cells, baseline), relate=None)
