"""A metric: a pure function from one cell, or one cell among others, to named numbers of its trial.

Plugins provide `Metric` values through the entry points `openfield.metrics`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, Literal, NamedTuple

import msgspec

from openfield.errors import InvalidInput, UnknownName
from openfield.journal.reader import CellRecord
from openfield.metrics.stats import Estimate, Range, Ratio

Kind = Literal["mean", "rate", "count"]
"""How the interval of a number is computed: of a mean, of a rate (0 or 1 in each trial) or of a count."""
Better = Literal["higher", "lower", ""]
Period = Literal["before", "after"]
"""Periods of the test: before the onset, and from the onset on."""
Within = Literal["before", "after", "budget"]
"""What bounds a number: the episodes of a period, or the steps in which a curriculum must be solved."""
Measure = Callable[[CellRecord], Mapping[str, float | None]]
Pooled = Mapping[str, Estimate | Ratio | Sequence[float]]
"""Numbers of all cells of an agent in a scenario: an estimate, or the values it is estimated from."""
Pool = Callable[[Sequence[CellRecord]], Pooled]
Follow = Callable[[Sequence[CellRecord], Sequence[CellRecord]], Mapping[str, Estimate]]
"""Estimates numbers of all cells while trials are missing: from the cells that count, and from all that are planned, in
the order in which they were entered."""


class Related(NamedTuple):
    """How a metric measures cells among others."""

    measure: Measure
    pool: Pool | None = None
    reason: str = ""
    """Why nothing can be measured, in words; empty if something can."""


Relate = Callable[[Sequence[CellRecord], str | None], Related]
"""Relates a metric to all cells, and to the baseline agent that was asked for, if one was."""


class Number(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One named number of a trial, and how it is read over trials."""

    name: str
    """Unique among all numbers; metrics that share a number share its name."""
    title: str
    note: str
    """Its exact meaning, for tables and tooltips."""
    kind: Kind = "mean"
    """`mean` of a continuous number, `rate` of a yes or no (1 or 0), `count` from 0 on."""
    better: Better = "higher"
    bounds: Range | None = (0.0, 1.0)
    """The values it must lie between; `stats.FROM_ZERO` if it is never negative, None if there are no bounds."""
    within: Within | None = None
    """Its upper bound: the episodes of a period, or the budget of a curriculum. There a failed trial is, and the
    conservative interval ends."""
    belief: bool = False
    """Not defined for an agent that states no belief and fails no episode in a whole scenario."""
    pooled: bool = False
    """A number of all trials together; a single trial does not have it."""
    partial: bool = False
    """Only some trials have it, which depends on the agent: the number of trials is always printed."""
    given: str = ""
    """The share of trials that have it. Where it is 0 the number is missing, though failed trials would count in it."""
    registered: bool = True
    """False in a run that was registered without it: it was found on the way."""
    unchanged: bool = False
    """Measured in unchanged twins, and only there. A twin shares its seed with a changed trial, so it is not one trial
    more in any other row."""

    @property
    def worst(self) -> float | None:
        """The worst value it can have; None if it has none."""
        if self.bounds is None or not self.better:
            return None
        return self.bounds[0] if self.better == "higher" else self.bounds[1]


@dataclass(frozen=True)
class Metric:
    """A family of numbers that are measured together."""

    name: str
    note: str
    numbers: tuple[Number, ...]
    measure: Measure
    """Measures a cell. A number that is missing or None is not defined in that trial."""
    relate: Relate | None = None
    """Makes the measure if it needs cells of other agents too."""
    pool: Pool | None = None
    """Measures all scored cells of an agent in a scenario together, for the numbers that are pooled or are ratios."""
    counts_failures: bool = False
    """Whether the measure knows failed episodes. Else a trial that its agent failed has the worst of every number."""
    follow: Follow | None = None
    """Stands in for estimates of `pool` as long as trials are missing; without it they have no interval then."""
    is_related: bool = False
    """Whether it measures cells among others, which `relate` gave it."""
    reason: str = ""
    """Why it measures nothing in the cells it is related to."""

    def take(self, cell: CellRecord) -> dict[str, float | None]:
        """Return the numbers of a cell; raise if the measure fails or gives a number it does not declare."""
        failed = cell.counts and not self.counts_failures
        found = worst_numbers(self, cell) if failed else self._measure(cell)
        wanted = {number.name for number in self.numbers if number.unchanged == cell.trial.is_unchanged_twin}
        return {name: value for name, value in found.items() if name in wanted}

    def _measure(self, cell: CellRecord) -> dict[str, float | None]:
        place = f"The metric '{self.name}' fails at cell {cell.id}"
        try:
            found = dict(self.measure(cell))
        except Exception as error:
            raise InvalidInput(f"{place}: {type(error).__name__}: {error}.") from error
        declared = [number.name for number in self.numbers]
        for name, value in found.items():
            if name not in declared:
                raise UnknownName("number", name, declared, label=f"Declared by the metric '{self.name}'")
            if value is not None and math.isnan(value):
                raise InvalidInput(f"{place}: '{name}' is NaN. Return None for a number that is not defined.")
        return found

    def among(self, cells: Sequence[CellRecord], baseline: str | None = None) -> Metric:
        """Return the metric as it measures cells among these. Controls are compared with nothing."""
        if self.relate is None:
            return self
        related = self.relate([cell for cell in cells if not cell.control], baseline)
        return replace(
            self,
            measure=lambda cell: {} if cell.control else related.measure(cell),
            pool=lambda played: related.pool([one for one in played if not one.control]) if related.pool else {},
            relate=None,
            is_related=True,
            reason=related.reason,
        )


class _Description(msgspec.Struct, frozen=True):
    note: str
    numbers: tuple[Number, ...]


def built_in(
    name: str,
    measure: Measure,
    relate: Relate | None = None,
    pool: Pool | None = None,
    counts_failures: bool = False,
    follow: Follow | None = None,
) -> Metric:
    """Return a metric whose note and numbers are described in `metrics.json`."""
    description = _read_descriptions()[name]
    return Metric(name, description.note, description.numbers, measure, relate, pool, counts_failures, follow)


def undefined(metric: Metric) -> dict[str, float | None]:
    """Return the numbers of a cell in which a metric defines none."""
    return dict.fromkeys(number.name for number in metric.numbers if not number.pooled)


def worst_numbers(metric: Metric, cell: CellRecord) -> dict[str, float | None]:
    """Return the worst numbers that a failed cell can have: a count has all episodes of its period."""
    test = [episode.novel for episode in cell.episodes if episode.phase == "test"]
    onset = test.index(True) if True in test else len(test)
    most: dict[Within | None, float] = {"before": onset, "after": len(test) - onset}
    return {
        number.name: most[number.within] or None if number.within in most and number.better == "lower" else number.worst
        for number in metric.numbers
        if not number.pooled
    }


@cache
def _read_descriptions() -> dict[str, _Description]:
    content = resources.files("openfield.metrics").joinpath("metrics.json").read_bytes()
    found = msgspec.json.decode(content, type=dict[str, dict[str, Any]])
    return {name: _Description(one["note"], tuple(_expand(one["numbers"]))) for name, one in found.items()}


def _expand(numbers: Iterable[dict[str, Any]]) -> Iterator[Number]:
    """Yield numbers; one with a `count` stands for several, which have 1, 2 and so on in place of its `#`."""
    for one in numbers:
        for at in range(1, one.pop("count", 1) + 1):
            texts = {key: value.replace("#", str(at)) for key, value in one.items() if isinstance(value, str)}
            yield msgspec.convert(one | texts, Number)
