"""Intervals and paired comparisons of detectors by a bootstrap over samples.

In every resampling the known samples and each set of unknown ones are drawn anew with replacement, once for all
detectors: they are compared on the same draws. AUROC and FPR95 of a draw are counted from sorted confidences, in time
linear in the number of samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from openfield.metrics.ood.benchmark import AVERAGES, Benchmark, Scored
from openfield.metrics.ood.samples import Floats
from openfield.metrics.significance import correct_by_holm

RESAMPLED = ("auroc", "fpr95")
"""The measures that have intervals."""


class ResampledValue(msgspec.Struct, frozen=True):
    """The middle 95 % of a value over all resamplings."""

    value: float
    low: float
    high: float


class PairedDifference(msgspec.Struct, frozen=True):
    """How much a detector differs from the one it is compared with, on the same samples."""

    value: float
    low: float
    high: float
    p: float
    """Twice the share of resamplings on the other side of zero, with one added to both counts; at most 1."""
    p_holm: float = 1.0
    """The same, corrected by Holm's rule for all detectors that are compared by this measure on this set."""
    floored: bool = False
    """Whether no resampling is on the other side: then the p-value is the least that this number of them can show."""


class DetectorComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Intervals of all detectors, and their differences from one of them."""

    resamples: int
    reference: str
    intervals: dict[str, dict[str, dict[str, ResampledValue]]]
    """Detector -> set or average -> measure -> interval."""
    differences: dict[str, dict[str, dict[str, PairedDifference]]]
    """The same for every detector but the reference."""


class _Sorted:
    """The confidences of a detector on the known samples and one set, as places in their common order."""

    def __init__(self, known: Floats, unknown: Floats) -> None:
        values, places = np.unique(np.concatenate([known, unknown]), return_inverse=True)
        self._count = len(values)
        self._known, self._unknown = places[: len(known)], places[len(known) :]

    def measure(self, known: NDArray[Any], unknown: NDArray[Any]) -> tuple[float, float]:
        """Return AUROC and FPR95 where every sample counts as often as it was drawn."""
        below = np.cumsum(counts := np.bincount(self._known, known, self._count))
        found = np.bincount(self._unknown, unknown, self._count)
        total, others = float(below[-1]), float(found.sum())
        area = float((found * (total - below + counts / 2)).sum()) / (total * others)
        enough = int(np.argmax(np.cumsum(found) / others >= 0.95))
        return area, float(below[enough]) / total


def compare_detectors(
    table: Benchmark, scored: Mapping[str, Scored], reference: str, resamples: int = 500, seed: int = 0
) -> DetectorComparison:
    """Resample all sets and compare every detector with a reference.

    Args:
        table: The numbers of the detectors.
        scored: The confidences behind them.
        reference: The detector that the others are compared with.
        resamples: How often samples are drawn.
        seed: The seed of the draws.
    """
    first, rng = scored[reference], np.random.default_rng(seed)
    names = list(first.unknown)
    ordered = {
        name: {each: [_Sorted(seed.known, seed.unknown[each]) for seed in (one, *one.seeds)] for each in names}
        for name, one in scored.items()
    }
    drawn = np.empty((len(scored), len(names), len(RESAMPLED), resamples))
    for number in range(resamples):
        known = _draw(rng, len(first.known))
        for at, each in enumerate(names):
            unknown = _draw(rng, len(first.unknown[each]))
            for row, name in enumerate(scored):
                seeds = [one.measure(known, unknown) for one in ordered[name][each]]
                drawn[row, at, :, number] = np.mean(seeds, axis=0)
    columns = _add_averages(table, names, drawn)
    place = list(scored).index(reference)
    found = DetectorComparison(
        resamples=resamples,
        reference=reference,
        intervals={
            name: {
                column: {
                    measure: ResampledValue(_value(table, name, column, measure), *_middle(values[row, at]))
                    for at, measure in enumerate(RESAMPLED)
                }
                for column, values in columns.items()
            }
            for row, name in enumerate(scored)
        },
        differences={
            name: {
                column: {
                    measure: _difference(
                        _value(table, name, column, measure) - _value(table, reference, column, measure),
                        values[row, at] - values[place, at],
                    )
                    for at, measure in enumerate(RESAMPLED)
                }
                for column, values in columns.items()
            }
            for row, name in enumerate(scored)
            if row != place
        },
    )
    return msgspec.structs.replace(found, differences=_correct(found.differences))


def _correct(
    differences: Mapping[str, Mapping[str, Mapping[str, PairedDifference]]],
) -> dict[str, dict[str, dict[str, PairedDifference]]]:
    """Return differences with corrected p-values: all detectors of one measure on one set are a family."""
    made: dict[str, dict[str, dict[str, PairedDifference]]] = {name: {} for name in differences}
    columns = next(iter(differences.values()), {})
    for column in columns:
        for measure in RESAMPLED:
            family = {name: sets[column][measure] for name, sets in differences.items()}
            corrected = correct_by_holm([one.p for one in family.values()])
            for (name, one), p in zip(family.items(), corrected, strict=True):
                made[name].setdefault(column, {})[measure] = msgspec.structs.replace(one, p_holm=p)
    return made


def _draw(rng: np.random.Generator, count: int) -> NDArray[Any]:
    """Return how often each sample is drawn."""
    return np.bincount(rng.integers(0, count, count), minlength=count)


def _add_averages(table: Benchmark, names: Sequence[str], drawn: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the resampled values of every set, and of the averages over near and far sets."""
    columns = {name: drawn[:, at] for at, name in enumerate(names)}
    for group, column in AVERAGES.items():
        if members := table.groups.get(group):
            columns[column] = np.mean([columns[name] for name in members], axis=0)
    return {name: columns[name] for name in table.columns}


def _value(table: Benchmark, name: str, column: str, measure: str) -> float:
    value = table.rows[name][column][measure]
    return float("nan") if value is None else value


def _middle(values: Floats) -> tuple[float, float]:
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def _difference(value: float, drawn: Floats) -> PairedDifference:
    side = min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))
    return PairedDifference(value, *_middle(drawn), min(1.0, 2 * (1 + side) / (1 + len(drawn))), floored=side == 0)
