"""Score the confidences of an open-set experiment, or streams made of them.

Arrays in, named estimates out. Label -1 is unknown, and a confidence is higher if a sample looks known.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from openfield.domains.ond.agents.change_detectors import CHANGE_DETECTORS, Rarity, calibrate, probability
from openfield.errors import InvalidInput
from openfield.metrics.ood.samples import make_labels, read_samples
from openfield.metrics.openset import measures
from openfield.metrics.openset.measures import resample
from openfield.metrics.stats import Estimate, estimate_count, estimate_rate

EQUAL_ERROR_F1 = "macro_f1_threshold_on_test"
"""The open-set F1 at the threshold of equal errors, which is sought on the labels of the test itself."""
ONSET, LENGTH = 200, 500
"""Samples of a stream before its onset, and in all."""
STREAMS, NOVEL_SHARE = 20, 0.5
"""How many streams there are, and the share of unknown samples after the onset."""


class Arrays(msgspec.Struct, frozen=True):
    """Predicted classes, the confidence that a sample is known, and true labels; label -1 is unknown."""

    pred: NDArray[Any]
    conf: NDArray[np.float64]
    label: NDArray[np.int64]


def score_arrays(arrays: Arrays) -> dict[str, Estimate]:
    """Compute the open-set measures of one set of samples, with intervals by resampling."""
    pred, conf, label = arrays.pred, arrays.conf, arrays.label
    if not len(label) or not pred.shape == conf.shape == label.shape:
        shapes = f"{pred.shape}, {conf.shape} and {label.shape}"
        raise InvalidInput(f"Named classes, confidences and labels must be flat, equally long and not empty: {shapes}.")
    named, classes = _name_unknown(arrays, _equal_error(conf, label))

    def measure(at: NDArray[np.int64]) -> dict[str, float | None]:
        p, c, y = pred[at], conf[at], label[at]
        found = {
            "auroc": measures.auroc(c, y),
            "fpr95_unknown_positive": measures.fpr95(c, y),
            "fpr95_known_positive": measures.fpr95(c, y, "known"),
            "aupr_in": measures.aupr(c, y, "known"),
            "aupr_out": measures.aupr(c, y),
            "oscr": measures.oscr(p, c, y),
            "closed_accuracy": measures.closed_accuracy(p, y),
            EQUAL_ERROR_F1: measures.macro_f1(measures.confusion(named[at], y, classes)),
            "aurc": measures.risk_coverage_area(c, p == y),
        }
        return found | {f"ccr_at_fpr_{rate}": measures.ccr_at_fpr(p, c, y, rate) for rate in (0.001, 0.01, 0.1)}

    return resample(measure, label == measures.UNKNOWN)


def _name_unknown(arrays: Arrays, threshold: float) -> tuple[NDArray[Any], int]:
    """Return the named classes, unknown below a confidence, and the number of known classes."""
    named = np.where(arrays.conf >= threshold, arrays.pred, measures.UNKNOWN)
    return named, int(max(arrays.pred.max(), arrays.label.max(), 0)) + 1


def _equal_error(conf: NDArray[np.float64], label: NDArray[np.int64]) -> float:
    """Return the threshold that rejects as large a share of the known samples as it accepts of the unknown ones.

    If there are no known or no unknown samples, it accepts all.
    """
    known, unknown = np.sort(conf[label >= 0]), np.sort(conf[label < 0])
    if not len(known) or not len(unknown):
        return float(conf.min())
    cuts = np.unique(conf)
    rejected = np.searchsorted(known, cuts) / len(known)
    accepted = 1 - np.searchsorted(unknown, cuts) / len(unknown)
    return float(cuts[np.argmin(np.abs(rejected - accepted))])


def score_stream(arrays: Arrays, seed: int = 0) -> dict[str, dict[str, Estimate]]:
    """Play twenty seeded streams of 200 samples before and 300 after the onset with each change detector.

    Half of the known samples calibrate the thresholds for one false alarm in twenty streams; the streams are drawn from
    the other half. Half of the samples after the onset are unknown.
    """
    known, unknown = np.flatnonzero(arrays.label >= 0), np.flatnonzero(arrays.label < 0)
    if len(known) < 40 or not len(unknown):
        raise InvalidInput("A stream needs at least 40 known samples, and some unknown ones.")
    held, rest = known[::2], known[1::2]
    rarity, onset = Rarity(arrays.conf[held]), np.arange(LENGTH) >= ONSET
    found: dict[str, dict[str, Estimate]] = {}
    for kind, detect in CHANGE_DETECTORS.items():
        threshold = calibrate(kind, rarity(arrays.conf[held]), ONSET, 0.05, seed)
        delays, alarms = [], []
        for number in range(STREAMS):
            rng = np.random.default_rng([seed, number])
            novel = onset.copy()
            novel[ONSET:] = rng.random(LENGTH - ONSET) < NOVEL_SHARE
            picked = np.where(novel, rng.choice(unknown, LENGTH), rng.choice(rest, LENGTH))
            rarities = rarity(arrays.conf[picked]).tolist()
            p = [probability(statistic, threshold) for statistic in detect(rarities)]
            delay, alarm = measures.detection_delay(p, onset)
            alarms.append(float(alarm))
            delays += [] if delay is None or alarm else [float(delay)]
        found[kind] = {"false_alarm_rate": estimate_rate(alarms), "delay": estimate_count(delays)}
    return found


def list_scores(numbers: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """Return numbers by family as rows of a table, one to a row."""
    return [
        (family, name, "-" if value is None else str(value))
        for family, part in numbers.items()
        for name, value in part.items()
    ]


def read_named(path: Path) -> Arrays:
    """Read an .npz file with `pred`, `conf` and `label`."""
    found = read_samples(path)
    if found.pred is None or found.conf is None or found.labels is None:
        raise InvalidInput(f"{path} must hold pred, conf and label; it holds {', '.join(found.arrays)}.")
    conf = np.concatenate([part for _, (part,) in found.parts("conf")] or [np.zeros(0)])
    return Arrays(make_labels(found.pred, f"{path}, pred"), conf, found.labels)
