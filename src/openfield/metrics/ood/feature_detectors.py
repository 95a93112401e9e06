"""Detectors that look at features: Mahalanobis, kNN, ViM, ReAct and ASH; the last three also need the last layer.

They are fitted on training samples in one or two passes over them, part by part. All but ASH run on a card as well:
`arrays` is the library whose arrays they are computed with, and that of the features and logits they score.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from openfield.errors import InvalidInput
from openfield.metrics.ood.array_library import NUMPY, ArrayLibrary
from openfield.metrics.ood.logit_detectors import ScoreSamples, energy
from openfield.metrics.ood.samples import PART, Floats, Head, SampleSet

MAX_QUANTILE = 1 << 26
"""Values of which a percentile is taken: 0.5 GB. Of more, evenly spaced samples are used."""
TILE = 1 << 15
"""Training samples that others are compared with at a time; a block of rows has room for many samples then."""


def fit_mahalanobis(train: SampleSet, arrays: ArrayLibrary) -> ScoreSamples:
    """Score by the negative squared Mahalanobis distance to the nearest class mean, with one covariance for all."""
    xp = arrays.module
    classes, means = _class_means(train, arrays)
    spread = arrays.zeros((train.width,) * 2)
    for _, (features, labels) in train.parts("features", "labels", arrays=arrays):
        rest = features - means[np.searchsorted(classes, labels)]
        spread += rest.T @ rest
    whiten = _inverse_root(spread / len(train), arrays)
    centre = means.mean(axis=0)
    middles = (means - centre) @ whiten

    def score(features: Any, _: Any) -> Any:
        rows = (features - centre) @ whiten
        nearest = arrays.zeros(len(rows))
        for at in range(0, len(rows), size := max(arrays.scale * PART // len(middles), 1)):
            part = rows[at : at + size]
            likeness = 2 * part @ middles.T - (middles**2).sum(axis=1)
            nearest[at : at + size] = xp.amax(likeness, 1) - (part**2).sum(axis=1)
        return nearest

    return score


def fit_knn(train: SampleSet, arrays: ArrayLibrary, k: int = 50) -> ScoreSamples:
    """Score by the negative distance to the k-th nearest training sample, both scaled to length one."""
    if k < 1:
        raise InvalidInput("knn takes k=1 or more.")
    xp = arrays.module
    known = arrays.zeros((len(train), train.width), "float32")
    for at, (features,) in train.parts("features", arrays=arrays):
        known[at] = arrays.load(normalise_rows(features, arrays), "float32")
    nth = min(k, len(known))

    def score(features: Any, _: Any) -> Any:
        rows = arrays.load(normalise_rows(features, arrays), "float32")
        found = arrays.zeros(len(rows))
        for at in range(0, len(rows), size := max(4 * arrays.scale * PART // min(len(known), TILE), 1)):
            found[at : at + size] = _nth_likeness(rows[at : at + size], known, nth, arrays)
        return -xp.sqrt(xp.clip(2 - 2 * found, 0, None))

    return score


def fit_vim(train: SampleSet, head: Head, arrays: ArrayLibrary, dimension: int | None = None) -> ScoreSamples:
    """Score by energy minus a virtual logit: the scaled length of what the main directions of training leave out.

    Args:
        train: SampleSet with features.
        head: The last layer. The origin of features is the point where it gives zeros, as near as it comes.
        arrays: The library that it is computed with.
        dimension: How many main directions there are; by default 1,000 of at least 2,048 features, 512 of at least
            768, else half.
    """
    width, xp = train.width, arrays.module
    kept = (1000 if width >= 2048 else 512 if width >= 768 else width // 2) if dimension is None else dimension
    if not 0 < kept < width:
        raise InvalidInput(f"vim takes a dimension from 1 to {width - 1}, below the number of features.")
    origin, layer = arrays.load(-np.linalg.pinv(head.weight) @ head.bias), head.load(arrays)
    spread = arrays.zeros((width, width))
    for _, (features,) in train.parts("features", arrays=arrays):
        spread += (features - origin).T @ (features - origin)
    rest = xp.linalg.eigh(spread)[1][:, : width - kept]  # eigenvalues are in rising order
    top = lengths = 0.0
    for _, (features, logits) in train.parts("features", "logits", arrays=arrays):
        top += float(xp.amax(layer(features) if logits is None else logits, 1).sum())
        lengths += float(_lengths((features - origin) @ rest, arrays).sum())
    scale = top / lengths if lengths else 0.0

    def score(features: Any, logits: Any) -> Any:
        residual = _lengths((features - origin) @ rest, arrays)
        return energy(layer(features) if logits is None else logits, arrays) - scale * residual

    return score


def fit_react(train: SampleSet, head: Head, arrays: ArrayLibrary, percentile: float = 90.0) -> ScoreSamples:
    """Score by the energy of the logits after features are cut at a percentile of all training features."""
    check_percentile("react", percentile)
    table = train.take("features")
    cut = float(np.percentile(table[:: -(-table.size // MAX_QUANTILE)], percentile))
    layer, xp = head.load(arrays), arrays.module
    return lambda features, _: energy(layer(xp.clip(features, None, cut)), arrays)


def fit_ash(_: SampleSet, head: Head, percentile: float = 90.0, variant: Literal["b", "p", "s"] = "b") -> ScoreSamples:
    """Score by the energy of the logits after the smallest features of every sample are set to zero.

    Args:
        head: The last layer.
        percentile: How many percent of the features are set to zero.
        variant: What becomes of the others. `b` gives all the same value, so that the sum stays; `s` scales them by
            exp(sum before / sum after); `p` leaves them.
    """
    check_percentile("ash", percentile)
    if variant not in ("b", "p", "s"):
        raise InvalidInput(f"ash takes the variant b, p or s, not '{variant}'.")

    def score(features: Floats, _: Any) -> Floats:
        width = features.shape[1]
        kept = max(width - round(width * percentile / 100), 1)
        at = np.argpartition(features, width - kept, axis=1)[:, width - kept :]
        values, total = np.take_along_axis(features, at, axis=1), features.sum(axis=1, keepdims=True)
        if variant == "b":
            values = np.broadcast_to(total / kept, values.shape)
        elif variant == "s":
            left = values.sum(axis=1, keepdims=True)
            values = values * np.exp(
                np.clip(np.divide(total, left, out=np.zeros_like(total), where=left != 0), None, 50)
            )
        shaped = np.zeros_like(features)
        np.put_along_axis(shaped, at, values, axis=1)
        return np.asarray(energy(head(shaped)))

    return score


def _nth_likeness(rows: Any, known: Any, nth: int, arrays: ArrayLibrary) -> Any:
    """Return the n-th largest product of every row with the known ones, tile by tile: large products are fast."""
    best = arrays.zeros((len(rows), 0), "float32")
    for start in range(0, len(known), TILE):
        tile = rows @ known[start : start + TILE].T
        best = arrays.take_largest(arrays.module.concatenate([best, arrays.take_largest(tile, nth)], 1), nth)
    return arrays.module.amin(best, 1)


def normalise_rows(features: Any, arrays: ArrayLibrary = NUMPY) -> Any:
    """Return the features with every row scaled to length one."""
    return features / (_lengths(features, arrays)[:, None] + 1e-12)


def _lengths(rows: Any, arrays: ArrayLibrary) -> Any:
    return arrays.module.sqrt((rows**2).sum(axis=1))


def check_percentile(name: str, percentile: float) -> None:
    """Refuse a percentile that is not between 0 and 100."""
    if not 0 <= percentile <= 100:
        raise InvalidInput(f"{name} takes a percentile from 0 to 100, not {percentile}.")


def _class_means(train: SampleSet, arrays: ArrayLibrary) -> tuple[NDArray[Any], Any]:
    """Return the classes that occur, and the mean features of each."""
    classes, counts = np.unique(train.take("labels"), return_counts=True)
    sums = arrays.zeros((len(classes), train.width))
    for _, (features, labels) in train.parts("features", "labels", arrays=arrays):
        arrays.add_by_class(sums, features, np.searchsorted(classes, labels))
    return classes, sums / arrays.load(counts[:, None])


def _inverse_root(spread: Any, arrays: ArrayLibrary) -> Any:
    """Return a matrix whose product with its transpose is the pseudo-inverse of a covariance."""
    values, vectors = arrays.module.linalg.eigh(spread)
    used = values > max(float(values[-1]), 0) * len(values) * np.finfo(float).eps
    return vectors[:, used] / arrays.module.sqrt(values[used])
