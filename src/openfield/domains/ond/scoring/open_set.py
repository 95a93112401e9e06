"""Score arrays of an open-set experiment: confidences, logits, or streams made of them.

Files or arrays in, named estimates out. Label -1 is unknown, and a confidence is higher if a sample looks known.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from openfield.domains.ond.agents.change_detectors import CHANGE_DETECTORS, Rarity, calibrate, probability
from openfield.domains.ond.agents.detectors import DETECTORS
from openfield.errors import InvalidInput
from openfield.files.arrays import read_arrays
from openfield.metrics.openset import measures
from openfield.metrics.openset.measures import resample
from openfield.metrics.stats import Estimate, estimate_count, estimate_rate

FITTED = ("mahalanobis", "knn", "openmax")
"""Detectors that are fitted: they need features of known samples."""
ONSET, LENGTH = 200, 500
"""Samples of a stream before its onset, and in all."""


class Arrays(msgspec.Struct, frozen=True):
    """Predicted classes, the confidence that a sample is known, and true labels; label -1 is unknown."""

    pred: NDArray[Any]
    conf: NDArray[np.float64]
    label: NDArray[np.int64]


def score_arrays(arrays: Arrays, probable: bool = False) -> dict[str, Estimate]:
    """Compute the open-set measures of one set of samples, with intervals by resampling.

    There is a calibration error only if `conf` is the probability of the named class (`probable`).
    """
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
            "macro_f1": measures.macro_f1(measures.confusion(named[at], y, classes)),
            "aurc": measures.risk_coverage_area(c, p == y),
        }
        found |= {f"ccr_at_fpr_{rate}": measures.ccr_at_fpr(p, c, y, rate) for rate in (0.001, 0.01, 0.1)}
        known = y != measures.UNKNOWN
        return found | ({"ece": measures.calibration_error(c[known], p[known] == y[known])} if probable else {})

    return resample(measure, label == measures.UNKNOWN)


def count_confusion(arrays: Arrays) -> dict[str, Any]:
    """Count true classes (rows) against named ones (columns), the unknown last, at the threshold of equal errors."""
    threshold = _equal_error(arrays.conf, arrays.label)
    named, classes = _name_unknown(arrays, threshold)
    return {"threshold": threshold, "table": measures.confusion(named, arrays.label, classes).tolist()}


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


def score_logits(
    logits: NDArray[Any], labels: NDArray[Any], features: NDArray[Any] | None = None
) -> dict[str, dict[str, Estimate]]:
    """Compute the measures of every detector that logits, and features if given, allow.

    Fitted detectors learn from every second known sample and are scored on the other samples. The rest are scored on
    all.
    """
    logits, y, features = _check_logits(logits, labels, features)
    known = np.flatnonzero(y >= 0)
    half, everything = known[::2], np.arange(len(y))
    space = logits if features is None else features
    found = {}
    for name, fit in DETECTORS.items():
        at = np.setdiff1d(everything, half) if name in FITTED else everything
        if not len(at) or (name in FITTED and (features is None or not len(known))):
            continue
        conf = np.asarray(fit(space[half], logits[half], y[half])(space[at], logits[at]), dtype=float)
        found[name] = score_arrays(Arrays(logits[at].argmax(axis=1), conf, y[at]), name == "msp")
    return found


def _check_logits(
    logits: NDArray[Any], labels: NDArray[Any], features: NDArray[Any] | None
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[Any] | None]:
    """Return logits, labels and features of the right types, with features as rows; raise if they do not fit."""
    y = np.asarray(labels).astype(np.int64)
    logits = np.asarray(logits, dtype=float)  # small integers would wrap around, half precision would tie
    if logits.ndim != 2 or not logits.size or y.shape != (len(logits),):
        raise InvalidInput(f"Logits {logits.shape} and labels {y.shape} must have a row for each sample.")
    if features is not None:
        if not features.ndim or len(features) != len(logits):
            raise InvalidInput(f"Features {features.shape} must have a row for each of the {len(logits)} samples.")
        features = features.reshape(len(features), -1).astype(float)
    if y.max(initial=-1) >= logits.shape[1] or y.min(initial=-1) < -1:
        raise InvalidInput(f"Labels must be 0 to {logits.shape[1] - 1}, or -1 for unknown.")
    return logits, y, features


def score_stream(arrays: Arrays, tests: int = 20, seed: int = 0, share: float = 0.5) -> dict[str, dict[str, Estimate]]:
    """Play seeded streams of 200 samples before and 300 after the onset with each change detector.

    Half of the known samples calibrate the thresholds for one false alarm in twenty streams; the streams are drawn from
    the other half. A share of the samples after the onset is unknown.
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
        for number in range(tests):
            rng = np.random.default_rng([seed, number])
            novel = onset.copy()
            novel[ONSET:] = rng.random(LENGTH - ONSET) < share
            picked = np.where(novel, rng.choice(unknown, LENGTH), rng.choice(rest, LENGTH))
            rarities = rarity(arrays.conf[picked]).tolist()
            p = [probability(statistic, threshold) for statistic in detect(rarities)]
            delay, alarm = measures.detection_delay(p, onset)
            alarms.append(float(alarm))
            delays += [] if delay is None or alarm else [float(delay)]
        found[kind] = {"false_alarm_rate": estimate_rate(alarms), "delay": estimate_count(delays)}
    return found


def read_named(path: Path) -> Arrays:
    """Read an .npz file with `pred`, `conf` and `label`."""
    found = read_numbers(path)
    if not {"pred", "conf", "label"} <= found.keys():
        raise InvalidInput(f"{path} must hold pred, conf and label; it holds {', '.join(found)}.")
    pred, label = (make_labels(found[name], f"{path}, {name}") for name in ("pred", "label"))
    return Arrays(pred, found["conf"].astype(float), label)


def read_array(path: Path) -> NDArray[Any]:
    """Read the array of an .npy file."""
    found = read_numbers(path)
    if "array" not in found:
        raise InvalidInput(f"{path} holds {', '.join(found)}; an .npy file with one array is wanted.")
    return found["array"]


def read_numbers(path: Path) -> Mapping[str, NDArray[Any]]:
    """Read an .npy file as `array`, or the arrays of an .npz file; every number must be finite."""
    found = read_arrays(path)
    for name, array in found.items():
        where = path if name == "array" else f"{path}, {name}"
        if array.dtype.kind not in "biuf":
            raise InvalidInput(f"{where} holds no numbers.")
        wrong = np.argwhere(~np.isfinite(np.atleast_1d(array)))
        if wrong.size:
            raise InvalidInput(f"{where}: row {wrong[0][0]} holds {np.atleast_1d(array)[tuple(wrong[0])]}.")
    return found


def make_labels(found: NDArray[Any], where: object) -> NDArray[np.int64]:
    """Return labels as whole numbers."""
    labels = np.asarray(found)
    odd = np.flatnonzero(labels != np.floor(labels))
    if labels.ndim != 1 or odd.size:
        flat = labels.ndim == 1
        place = f"row {odd[0]} holds {labels[odd[0]]}" if flat else f"they have the shape {labels.shape}"
        raise InvalidInput(f"{where}: labels must be a flat array of whole numbers, -1 for unknown; {place}.")
    return labels.astype(np.int64)
