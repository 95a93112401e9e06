"""Scores without a server: from the protocol's result files, or from what an open-set researcher has on disk.

`openfield score ond` ends here; arrays and files in, families of estimates out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openfield.domains.ond.agents.change_detectors import STREAMS, Rarity, calibrate, probability
from openfield.domains.ond.agents.detectors import DETECTORS
from openfield.domains.ond.scoring.programme import read_files
from openfield.domains.ond.testset.arrays import Arrays
from openfield.domains.ond.testset.evaluation import evaluate, evaluate_more, open_labels
from openfield.domains.ond.testset.sheet import Shelf
from openfield.errors import InvalidInput
from openfield.metrics.openset import measures
from openfield.metrics.openset.resample import resample
from openfield.metrics.stats import Estimate, estimate_count, estimate_rate

TRAINED = ("mahalanobis", "knn", "openmax")
"""Detectors that are fitted: they need features of known samples to compare with."""


def score_arrays(arrays: Arrays, probable: bool = False) -> dict[str, Estimate]:
    """Today's open-set measures of one set of samples, with intervals by resampling.

    Args:
        arrays: The samples.
        probable: Whether `conf` is the probability of the named class; only then it has a calibration error.
    """
    pred, conf, label = arrays.pred, arrays.conf, arrays.label
    if not len(label) or not pred.shape == conf.shape == label.shape:
        shapes = f"{pred.shape}, {conf.shape} and {label.shape}"
        raise InvalidInput(f"Named classes, confidences and labels must be flat, equally long and not empty: {shapes}.")
    named = np.where(conf >= _equal_error(conf, label), pred, measures.UNKNOWN)
    classes = int(max(pred.max(), label.max(), 0)) + 1

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
    """True classes in rows, named ones in columns, the unknown last, at the threshold of equal errors."""
    threshold = _equal_error(arrays.conf, arrays.label)
    named = np.where(arrays.conf >= threshold, arrays.pred, measures.UNKNOWN)
    classes = int(max(arrays.pred.max(), arrays.label.max(), 0)) + 1
    return {"threshold": threshold, "table": measures.confusion(named, arrays.label, classes).tolist()}


def _equal_error(conf: NDArray[np.float64], label: NDArray[np.int64]) -> float:
    """Where as large a share of known samples lies below as of unknown ones at or above; all pass if one is missing."""
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
    """The measures of every detector that logits (and features) allow.

    Fitted detectors learn from every second known sample and are scored on the others; the rest need no fitting and are
    scored on all.
    """
    y = np.asarray(labels).astype(np.int64)
    logits = np.asarray(logits, dtype=float)  # small integers would wrap around, half precision would tie
    if logits.ndim != 2 or not logits.size or y.shape != (len(logits),):
        raise InvalidInput(f"Logits {logits.shape} and labels {y.shape} must have a row for each sample.")
    if features is not None:
        if not features.ndim or len(features) != len(logits):
            raise InvalidInput(f"Features {features.shape} must have a row for each of the {len(logits)} samples.")
        features = features.reshape(len(features), -1).astype(float)  # whatever shape a network's maps have
    if y.max(initial=-1) >= logits.shape[1] or y.min(initial=-1) < -1:
        raise InvalidInput(f"Labels must be 0 to {logits.shape[1] - 1}, or -1 for unknown.")
    known = np.flatnonzero(y >= 0)
    rest = np.setdiff1d(np.arange(len(y)), known[::2])
    found = {}
    for name, make in DETECTORS.items():
        detector = make()
        if name in TRAINED and (features is None or not len(known)):
            continue
        space = logits if features is None else features
        at = rest if name in TRAINED else np.arange(len(y))
        if not len(at):
            continue
        detector.fit(space[known[::2]], logits[known[::2]], y[known[::2]])
        conf = np.asarray(detector.score(space[at], logits[at]), dtype=float)
        found[name] = score_arrays(Arrays(logits[at].argmax(axis=1), conf, y[at]), name == "msp")
    return found


def score_stream(arrays: Arrays, tests: int = 20, seed: int = 0, share: float = 0.5) -> dict[str, dict[str, Estimate]]:
    """Plays seeded tests of 200 samples before and 300 after the onset with each change detector.

    Half of the known samples calibrate the thresholds for one false alarm in twenty streams; the tests use the others.
    """
    known, unknown = np.flatnonzero(arrays.label >= 0), np.flatnonzero(arrays.label < 0)
    if len(known) < 40 or not len(unknown):
        raise InvalidInput("A stream needs at least 40 known samples, and some unknown ones.")
    held, rest = known[::2], known[1::2]
    rarity = Rarity(arrays.conf[held])
    found: dict[str, dict[str, Estimate]] = {}
    for kind in STREAMS:
        threshold = calibrate(kind, rarity(arrays.conf[held]), 200, 0.05, seed)
        delays, alarms = [], []
        for number in range(tests):
            rng = np.random.default_rng([seed, number])
            novel = np.arange(500) >= 200
            novel[200:] = rng.random(300) < share
            picked = np.where(novel, rng.choice(unknown, 500), rng.choice(rest, 500))
            p = _watch(kind, rarity(arrays.conf[picked]), threshold)
            onset = np.arange(500) >= 200
            delay, alarm = measures.detection_delay(p, onset)
            alarms.append(float(alarm))
            delays += [] if delay is None or alarm else [float(delay)]
        found[kind] = {"false_alarm_rate": estimate_rate(alarms), "delay": estimate_count(delays)}
    return found


def score_files(
    detection: Path, classification: Path, data: Path, protocol: str, area: str, test: str
) -> dict[str, Any]:
    """The programme's numbers from a test's result files, both variants; of text tests the classes are the `labels`."""
    known, _ = Shelf(data).load(protocol, area, test)
    named = area == "nlt"
    ledger = read_files(known, {"detection": detection, "labels" if named else "classification": classification})
    if named:  # writers have no scores
        return evaluate(ledger) | evaluate_more(ledger)
    more = score_arrays(Arrays(ledger.best_known, np.nan_to_num(ledger.confidence), open_labels(ledger)))
    return evaluate(ledger) | evaluate_more(ledger) | {"openset": more}


def _watch(kind: str, rarities: NDArray[Any], threshold: float) -> list[float]:
    stream = STREAMS[kind]()
    return [probability(stream.push(value), threshold) for value in rarities.tolist()]
