"""Score detectors on the same samples: an in-distribution set against near and far sets of unknown ones.

Sets and detectors in, a `Benchmark` out: for every detector the measures on every set, and their averages over near and
far sets. No detector sees a label of the samples it is scored on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from openfield.errors import InvalidInput
from openfield.metrics.ood.array_library import NUMPY, ArrayLibrary
from openfield.metrics.ood.catalogue import ChosenDetector
from openfield.metrics.ood.logit_detectors import ScoreSamples
from openfield.metrics.ood.samples import UNKNOWN, Floats, Head, SampleSet
from openfield.metrics.openset import measures

AVERAGES = {"near": "near average", "far": "far average"}
"""The groups of sets, and the columns of their averages."""
RATES = {"ccr_fpr1e-1": 0.1, "ccr_fpr1e-2": 0.01, "ccr_fpr1e-3": 0.001, "ccr_fpr1e-4": 0.0001}
"""The false positive rates at which the rate of correct classification is taken, as in OpenOOD."""
LOWER_IS_BETTER = frozenset({"fpr95", "fpr95_id", "autc"})
MEASURES = {
    "auroc": "AUROC",
    "fpr95": "FPR95 (unknown positive)",
    "fpr95_id": "FPR95 (known positive)",
    "aupr_in": "AUPR-in",
    "aupr_out": "AUPR-out",
    "oscr": "OSCR",
    **{name: f"CCR at FPR {rate:g}" for name, rate in RATES.items()},
    "autc": "AUTC",
}
"""The measures by name, with their titles in tables."""
OWN = "conf"
"""The row of confidences that the files bring themselves."""
UNKNOWN_SET = "unknown"
"""The set of samples with label -1 in the in-distribution file."""
EXACT = 1 << 24
"""Logits from features that are kept in double precision; more are kept in single precision."""

Values = dict[str, float | None]


class Scored(msgspec.Struct, frozen=True):
    """What one detector says: the confidence of every sample, by set, and the classes of the known samples."""

    known: Floats
    right: NDArray[np.bool_] | None
    """Which known samples are classified rightly; None without labels or classes."""
    unknown: dict[str, Floats]
    seeds: tuple[Scored, ...] = ()
    """The same detector on networks that were trained with other seeds: its numbers are the means over all."""

    def measure(self, name: str) -> Values:
        """Return every measure on one set of unknown samples, the mean over seeds if there are several."""
        return average_measures([each.measure_seed(name) for each in (self, *self.seeds)])

    def measure_seed(self, name: str) -> Values:
        """Return every measure on one set of unknown samples, of this seed alone."""
        other = self.unknown[name]
        conf = np.concatenate([self.known, other])
        label = np.concatenate([np.zeros(len(self.known), np.int64), np.full(len(other), UNKNOWN)])
        found: Values = {
            "auroc": measures.auroc(conf, label),
            "fpr95": measures.fpr95(conf, label),
            "fpr95_id": measures.fpr95(conf, label, "known"),
            "aupr_in": measures.aupr(conf, label, "known"),
            "aupr_out": measures.aupr(conf, label),
            "oscr": None,
            **dict.fromkeys(RATES),
            "autc": measures.autc(conf, label),
        }
        if self.right is None:
            return found
        pred = np.concatenate([np.where(self.right, 0, 1), np.zeros(len(other), np.int64)])
        found["oscr"] = measures.oscr(pred, conf, label)
        return found | {key: measures.ccr_at_fpr(pred, conf, label, rate) for key, rate in RATES.items()}


class Benchmark(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of all detectors, and what could not be computed."""

    id: str
    """The in-distribution set."""
    groups: dict[str, list[str]]
    """The sets of unknown samples: near, far, and others under an empty name."""
    samples: dict[str, int]
    """How many samples each set has."""
    accuracy: float | None
    """The share of known samples that are classified rightly; None without labels, or if detectors differ in it."""
    rows: dict[str, dict[str, Values]]
    """Detector -> set or average -> measure -> value."""
    missing: dict[str, list[str]]
    """Detector -> the inputs that it needs and lacks."""

    @property
    def columns(self) -> list[str]:
        """The sets in the order of tables, each group with its average behind it."""
        found = [*self.groups.get("", ())]
        for group, column in AVERAGES.items():
            found += [*self.groups[group], column] if self.groups.get(group) else []
        return found


def score_detectors(
    known: SampleSet,
    near: Sequence[SampleSet],
    far: Sequence[SampleSet],
    chosen: Sequence[ChosenDetector],
    train: SampleSet | None = None,
    head: Head | None = None,
    val: SampleSet | None = None,
) -> tuple[Benchmark, dict[str, Scored]]:
    """Score detectors on the same samples, and return the numbers and the confidences behind them.

    Args:
        known: The in-distribution samples. Those with label -1 are a set of unknown ones.
        near: Sets of unknown samples that are like the known ones.
        far: Sets of unknown samples that are not.
        chosen: The detectors, all for one device.
        train: Training samples, for detectors that are fitted.
        head: The last layer of the network, for detectors that change features.
        val: Validation samples, for detectors that the literature fits on them.
    """
    sets = [known, *near, *far]
    _check_sets(sets, train, val)
    arrays = chosen[0].arrays if chosen else NUMPY
    sets = [add_logits(one, head, arrays) for one in sets]
    train, val = (None if one is None else add_logits(one, head, arrays) for one in (train, val))
    _check_sets(sets, train, val)
    pred = _predict(sets[0])
    scored: dict[str, Scored] = {}
    if all(one.conf is not None for one in sets):
        scored[OWN] = _split(sets, [_read_conf(one) for one in sets], pred)
    missing = {one.name: needs for one in chosen if (needs := one.missing(sets, train, head, val))}
    for one in chosen:
        if one.name not in missing:
            score = one.fit(train, head, val)
            scored[one.name] = _split(sets, [_score(one, score, each) for each in sets], pred)
    if not scored:
        listed = "; ".join(f"{name} needs {', '.join(needs)}" for name, needs in missing.items())
        raise InvalidInput(f"No detector can be scored: {listed}.")
    groups = {"near": [one.name for one in near], "far": [one.name for one in far]}
    return tabulate(known.name, groups, scored, missing), scored


def tabulate(
    known: str,
    groups: Mapping[str, Sequence[str]],
    scored: Mapping[str, Scored],
    missing: Mapping[str, list[str]] | None = None,
) -> Benchmark:
    """Compute all numbers from confidences.

    Args:
        known: The name of the in-distribution set.
        groups: The names of near and far sets; other sets that were scored stand alone.
        scored: What every detector says.
        missing: What detectors that could not be scored need.
    """
    first = next(iter(scored.values()))
    grouped = {name for names in groups.values() for name in names}
    whole = {"": [name for name in first.unknown if name not in grouped], **{k: list(v) for k, v in groups.items()}}
    if not first.unknown or not len(first.known):
        raise InvalidInput("There must be known samples (--id) and at least one set of unknown ones (--near, --far).")
    rows: dict[str, dict[str, Values]] = {}
    for name, one in scored.items():
        found = {each: one.measure(each) for each in one.unknown}
        averages = {
            column: average_measures([found[each] for each in whole[group]])
            for group, column in AVERAGES.items()
            if whole.get(group)
        }
        rows[name] = found | averages
    rates = {None if one.right is None else float(one.right.mean()) for one in scored.values()}
    return Benchmark(
        id=known,
        groups={group: names for group, names in whole.items() if names},
        samples={known: len(first.known), **{name: len(conf) for name, conf in first.unknown.items()}},
        accuracy=rates.pop() if len(rates) == 1 else None,
        rows=rows,
        missing=dict(missing or {}),
    )


def average_measures(parts: Sequence[Values]) -> Values:
    """Return the mean of every measure over sets; None where a set has none."""
    found: Values = {}
    for name in MEASURES:
        values = [part[name] for part in parts]
        present = [value for value in values if value is not None]
        found[name] = float(np.mean(present)) if len(present) == len(values) else None
    return found


def add_logits(samples: SampleSet, head: Head | None, arrays: ArrayLibrary = NUMPY) -> SampleSet:
    """Return samples with logits: those that the last layer gives, where a set has only features."""
    if samples.logits is not None or samples.features is None or head is None:
        return samples
    size = len(samples) * len(head.bias)
    logits = np.empty((len(samples), len(head.bias)), np.float64 if size <= EXACT else np.float32)
    layer = head.load(arrays)
    for at, (features,) in samples.parts("features", arrays=arrays):
        logits[at] = arrays.read(layer(features))
    return SampleSet(samples.name, logits, samples.features, samples.labels, samples.conf, samples.pred)


def _check_sets(sets: Sequence[SampleSet], *fitted: SampleSet | None) -> None:
    """Refuse sets without samples, of the same name, or whose logits, features or labels do not fit the others.

    `fitted` are the sets that detectors are fitted on.
    """
    others = [one for one in fitted if one is not None]
    names = [one.name for one in sets]
    for one in sets:
        if not len(one):
            raise InvalidInput(f"{one.name} has no samples.")
        if names.count(one.name) > 1 or one.name in (*AVERAGES.values(), UNKNOWN_SET):
            raise InvalidInput(
                f"Two sets are called '{one.name}', or it is a name of a column. Rename it: --near other=FILE"
            )
    for one in others:
        if not one.known.all():
            raise InvalidInput(f"{one.name}: training samples must be known; some have label -1.")
    for one in (sets[0], *others):
        if one.logits is not None and one.labels is not None and one.labels.max() >= one.logits.shape[1]:
            classes = one.logits.shape[1]
            raise InvalidInput(
                f"{one.name}: labels go up to {one.labels.max()}, but there are {classes} classes, 0 to {classes - 1}. "
                "Labels that begin at 1: subtract 1."
            )
    for name in ("logits", "features"):
        widths = {len(a[0]): one.name for one in (*sets, *others) if (a := getattr(one, name)) is not None}
        if len(widths) > 1:
            listed = ", ".join(f"{width:,} in {place}" for width, place in widths.items())
            raise InvalidInput(f"All sets must have equally many columns of {name}: there are {listed}.")


def _predict(known: SampleSet) -> NDArray[np.int64] | None:
    """Return the classes of samples: those that the file has, or else those of the largest logits."""
    if known.pred is not None:
        return np.asarray(known.pred).astype(np.int64)
    if known.logits is None:
        return None
    return np.concatenate([logits.argmax(axis=1) for _, (logits,) in known.parts("logits")])


def _score(one: ChosenDetector, score: ScoreSamples, samples: SampleSet) -> Floats:
    """Return the confidences of a set; arrays that a detector does not read are not read."""
    reads, library = one.detector.reads, one.library
    found = []
    for _, parts in samples.parts(*reads, arrays=library):
        given = dict(zip(reads, parts, strict=True))
        found.append(library.read(score(given.get("features"), given.get("logits"))))
    return np.concatenate(found)


def _read_conf(samples: SampleSet) -> Floats:
    return np.concatenate([conf for _, (conf,) in samples.parts("conf")])


def _split(sets: Sequence[SampleSet], confs: Sequence[Floats], pred: NDArray[Any] | None) -> Scored:
    """Return the confidences by set; samples of the first set with label -1 are unknown ones."""
    first = sets[0]
    right = None if first.labels is None or pred is None else (pred == first.labels)[first.known]
    others = {} if first.known.all() else {UNKNOWN_SET: confs[0][~first.known]}
    rest = {one.name: conf for one, conf in zip(sets[1:], confs[1:], strict=True)}
    return Scored(confs[0][first.known], right, others | rest)
