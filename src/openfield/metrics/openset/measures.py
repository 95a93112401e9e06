"""Today's open-set measures: how well known and unknown are separated while the known are classified.

Arrays of one test -> numbers. `conf` is higher for samples that look known; label -1 is unknown. Every curve is one
sort and cumulative sums: O(N log N) once, never per threshold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from openfield.errors import InvalidInput
from openfield.metrics.openset.compat import Floats, first_of
from openfield.metrics.stats import Estimate

UNKNOWN = -1
BINS = 15
"""Bins of the calibration error."""
Curve = tuple[Floats, Floats]
SampleMeasure = Callable[[NDArray[np.int64]], Mapping[str, float | None]]
"""Computes numbers from the samples at some indices."""
RESAMPLINGS = 200
RESAMPLED = "one test: interval from resampling its samples"


def auroc(conf: ArrayLike, label: ArrayLike) -> float | None:
    """Return the chance that an unknown sample looks less known than a known one, ties half."""
    known, unknown = _parts(conf, label)
    if not len(known) or not len(unknown):
        return None
    order = np.sort(known)
    below = np.searchsorted(order, unknown, "left").sum()
    equal = np.searchsorted(order, unknown, "right").sum() - below
    return float(1 - (below + equal / 2) / (len(known) * len(unknown)))


def fpr95(conf: ArrayLike, label: ArrayLike, positive: str = "unknown") -> float | None:
    """Return the rate of false alarms at the first threshold that finds 95 % of the positives.

    The positives are `unknown` samples, as OpenOOD and pytorch-ood count, or `known` ones, as many papers do.
    """
    known, unknown = _parts(conf, label)
    if not len(known) or not len(unknown):
        return None
    wanted, others = (-unknown, -known) if positive == "unknown" else (known, unknown)
    enough = int(np.argmax(np.arange(1, len(wanted) + 1) / len(wanted) >= 0.95))
    threshold = np.sort(wanted)[::-1][enough]
    return float((others >= threshold).mean())


def aupr(conf: ArrayLike, label: ArrayLike, positive: str = "unknown") -> float | None:
    """Return the area under precision over recall, by trapezoids (not average precision)."""
    values, unknown = np.asarray(conf, dtype=float), np.asarray(label) == UNKNOWN
    score, wanted = (-values, unknown) if positive == "unknown" else (values, ~unknown)
    if not wanted.any() or wanted.all():
        return None
    hits, said = _cumulate(score, wanted)
    recall, precision = np.append(0, hits / hits[-1]), np.append(1.0, hits / said)
    return float(np.trapezoid(precision, recall))


def autc(conf: ArrayLike, label: ArrayLike) -> float | None:
    """Return the area under the threshold curves: the mean of both error rates over all thresholds; lower is better.

    Confidences are scaled so that the lowest is 0 and the highest 1, and every threshold between them counts alike.
    The area under the share of unknown samples that are accepted is then their mean, and so on.
    """
    known, unknown = _parts(conf, label)
    if not len(known) or not len(unknown):
        return None
    low, high = min(known.min(), unknown.min()), max(known.max(), unknown.max())
    if low == high:
        return 0.5
    return float(((unknown - low).mean() + (high - known).mean()) / (2 * (high - low)))


def roc_curve(conf: ArrayLike, label: ArrayLike) -> Curve:
    """Return the false alarm rate and the detection rate of unknown samples at every threshold."""
    unknown = np.asarray(label) == UNKNOWN
    hits, said = _cumulate(-np.asarray(conf, dtype=float), unknown)
    misses = said - hits
    return np.append(0, misses / max(misses[-1], 1)), np.append(0, hits / max(hits[-1], 1))


def oscr_curve(pred: ArrayLike, conf: ArrayLike, label: ArrayLike) -> Curve:
    """Return at every threshold the share of unknown samples accepted and of known ones accepted and named rightly."""
    labels = np.asarray(label)
    unknown, right = labels == UNKNOWN, (np.asarray(pred) == labels) & (labels != UNKNOWN)
    score = np.asarray(conf, dtype=float)
    accepted, _ = _cumulate(score, unknown)
    correct, _ = _cumulate(score, right)
    return np.append(0, accepted / max(accepted[-1], 1)), np.append(0, correct / max(int((~unknown).sum()), 1))


def oscr(pred: ArrayLike, conf: ArrayLike, label: ArrayLike) -> float | None:
    """Return the area under the OSCR curve, which is OpenAUC."""
    labels = np.asarray(label)
    if not (labels == UNKNOWN).any() or not (labels != UNKNOWN).any():
        return None
    false, correct = oscr_curve(pred, conf, label)
    return float(np.trapezoid(correct, false))


def ccr_at_fpr(pred: ArrayLike, conf: ArrayLike, label: ArrayLike, rate: float) -> float | None:
    """Return the share of known samples named rightly above the threshold that accepts this share of unknown ones."""
    labels, values = np.asarray(label), np.asarray(conf, dtype=float)
    known, unknown = _parts(conf, label)
    if not len(known) or not len(unknown):
        return None
    threshold = np.sort(unknown)[::-1][max(math.ceil(rate * len(unknown)), 1) - 1]
    return float(((np.asarray(pred) == labels) & (labels != UNKNOWN) & (values > threshold)).sum() / len(known))


def closed_accuracy(pred: ArrayLike, label: ArrayLike) -> float | None:
    """Return the share of known samples named rightly, without the unknown ones."""
    labels = np.asarray(label)
    known = labels != UNKNOWN
    return float((np.asarray(pred)[known] == labels[known]).mean()) if known.any() else None


def confusion(pred: ArrayLike, label: ArrayLike, classes: int) -> NDArray[np.int64]:
    """Count true (rows) against named (columns) classes; the last row and column are the unknown."""
    true, said = (np.where(np.asarray(a) == UNKNOWN, classes, np.asarray(a)).astype(np.int64) for a in (label, pred))
    if len(true) and (min(true.min(), said.min()) < 0 or max(true.max(), said.max()) > classes):
        raise InvalidInput(f"Classes must be 0 to {classes - 1}, or -1 for the unknown.")
    table = np.bincount(true * (classes + 1) + said, minlength=(classes + 1) ** 2)
    return table.reshape(classes + 1, classes + 1).astype(np.int64)


def macro_f1(table: NDArray[np.int64]) -> float:
    """Return the mean F1 over the classes that occur, the unknown one included."""
    hits, true, said = np.diag(table), table.sum(axis=1), table.sum(axis=0)
    occurs = (true + said) > 0
    return float((2 * hits[occurs] / (true + said)[occurs]).mean()) if occurs.any() else 0.0


def calibration_error(conf: ArrayLike, right: ArrayLike) -> float:
    """Return the ECE: the distance of the stated confidence from the share that is right, over bins of equal width."""
    values, hits = np.asarray(conf, dtype=float), np.asarray(right, dtype=float)
    place = np.clip(np.ceil(values * BINS).astype(int) - 1, 0, BINS - 1)
    gap = np.bincount(place, values - hits, minlength=BINS)
    return float(np.abs(gap).sum() / len(values)) if len(values) else math.nan


def risk_coverage_area(conf: ArrayLike, right: ArrayLike) -> float:
    """Return the AURC: the mean error of the most confident samples, over all shares of samples kept.

    Equally confident samples share their errors evenly, which is the average over all their orders.
    """
    values, wrong = np.asarray(conf, dtype=float), ~np.asarray(right, dtype=bool)
    if not len(values):
        return math.nan
    _, tie = np.unique(-values, return_inverse=True)  # numbered from the most confident on
    sizes = np.bincount(tie)
    shares = np.bincount(tie, weights=wrong) / sizes
    return float((np.cumsum(np.repeat(shares, sizes)) / np.arange(1, len(values) + 1)).mean())


def detection_delay(p_world: ArrayLike, novel: ArrayLike) -> tuple[int | None, bool]:
    """Return the samples from the onset to the first alarm after it, None if never, and whether one came before."""
    said, flags = np.asarray(p_world) >= 0.5, np.asarray(novel, dtype=bool)
    onset = int(np.argmax(flags)) if flags.any() else len(flags)
    return first_of(said[onset:]), bool(said[:onset].any())


def resample(measure: SampleMeasure, unknown: NDArray[np.bool_], seed: int = 0) -> dict[str, Estimate]:
    """Estimate numbers of a single test, with the middle 95 % of their values on resampled samples as intervals.

    Known and unknown samples are drawn apart.
    """
    rng, parts = np.random.default_rng(seed), [np.flatnonzero(unknown), np.flatnonzero(~unknown)]
    drawn = [
        measure(np.concatenate([rng.choice(part, len(part)) for part in parts if len(part)]))
        for _ in range(RESAMPLINGS)
    ]
    whole = measure(np.arange(len(unknown)))
    return {name: _estimate(value, [one[name] for one in drawn], len(unknown)) for name, value in whole.items()}


def _estimate(value: float | None, drawn: list[float | None], n: int) -> Estimate:
    present = [one for one in drawn if one is not None]
    if value is None or not present:
        return Estimate(value, None, None, n, RESAMPLED)
    low, high = np.quantile(present, (0.025, 0.975))
    return Estimate(value, float(min(low, value)), float(max(high, value)), n, RESAMPLED)


def _parts(conf: ArrayLike, label: ArrayLike) -> tuple[Floats, Floats]:
    values, unknown = np.asarray(conf, dtype=float), np.asarray(label) == UNKNOWN
    if values.shape != unknown.shape or values.ndim != 1:
        raise InvalidInput(f"Confidences {values.shape} and labels {unknown.shape} must be flat and equally long.")
    return values[~unknown], values[unknown]


def _cumulate(score: Floats, wanted: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return at every distinct threshold, highest first, the number of wanted samples and of all samples above it."""
    order = np.argsort(-score, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(score[order])), len(order) - 1)
    return np.cumsum(wanted[order])[ends], ends + 1
