"""Detectors that look at features: Mahalanobis, kNN, ViM, ReAct and ASH; the last three also need the last layer.

They are fitted on training samples in one or two passes over them, part by part.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from openfield.errors import InvalidInput
from openfield.metrics.ood.logit_detectors import ScoreSamples, add_by_class, energy
from openfield.metrics.ood.samples import PART, Floats, Head, SampleSet

MAX_QUANTILE = 1 << 26
"""Values of which a percentile is taken: 0.5 GB. Of more, evenly spaced samples are used."""
TILE = 1 << 15
"""Training samples that others are compared with at a time; a block of rows has room for many samples then."""
BLOCK = 64
"""Values of a block in the search for the k-th largest."""


def fit_mahalanobis(train: SampleSet) -> ScoreSamples:
    """Score by the negative squared Mahalanobis distance to the nearest class mean, with one covariance for all."""
    classes, means = _class_means(train)
    spread = np.zeros((train.width,) * 2)
    for _, (features, labels) in train.parts("features", "labels"):
        rest = features - means[np.searchsorted(classes, labels)]
        spread += rest.T @ rest
    whiten = _inverse_root(spread / len(train))
    centre = means.mean(axis=0)
    middles = (means - centre) @ whiten

    def score(features: Floats, _: Any) -> Floats:
        rows = (features - centre) @ whiten
        nearest = np.full(len(rows), -np.inf)
        for at in range(0, len(rows), size := max(PART // len(middles), 1)):
            part = rows[at : at + size]
            likeness = 2 * part @ middles.T - (middles**2).sum(axis=1)
            nearest[at : at + size] = likeness.max(axis=1) - (part**2).sum(axis=1)
        return nearest

    return score


def fit_knn(train: SampleSet, k: int = 50) -> ScoreSamples:
    """Score by the negative distance to the k-th nearest training sample, both scaled to length one."""
    if k < 1:
        raise InvalidInput("knn takes k=1 or more.")
    known = np.empty((len(train), train.width), np.float32)
    for at, (features,) in train.parts("features"):
        known[at] = normalise_rows(features)
    nth = min(k, len(known))

    def score(features: Floats, _: Any) -> Floats:
        rows = normalise_rows(features).astype(np.float32)
        found = np.empty(len(rows))
        for at in range(0, len(rows), size := max(4 * PART // min(len(known), TILE), 1)):
            found[at : at + size] = _nth_likeness(rows[at : at + size], known, nth)
        return np.asarray(-np.sqrt(np.maximum(2 - 2 * found, 0)))

    return score


def fit_vim(train: SampleSet, head: Head, dimension: int | None = None) -> ScoreSamples:
    """Score by energy minus a virtual logit: the scaled length of what the main directions of training leave out.

    Args:
        train: SampleSet with features.
        head: The last layer. The origin of features is the point where it gives zeros, as near as it comes.
        dimension: How many main directions there are; by default 1,000 of at least 2,048 features, 512 of at least
            768, else half.
    """
    width = train.width
    kept = (1000 if width >= 2048 else 512 if width >= 768 else width // 2) if dimension is None else dimension
    if not 0 < kept < width:
        raise InvalidInput(f"vim takes a dimension from 1 to {width - 1}, below the number of features.")
    origin = -np.linalg.pinv(head.weight) @ head.bias
    spread = np.zeros((width, width))
    for _, (features,) in train.parts("features"):
        spread += (features - origin).T @ (features - origin)
    rest = np.linalg.eigh(spread)[1][:, : width - kept]  # eigenvalues are in rising order
    top = lengths = 0.0
    for _, (features, logits) in train.parts("features", "logits"):
        top += float((head(features) if logits is None else logits).max(axis=1).sum())
        lengths += float(np.linalg.norm((features - origin) @ rest, axis=1).sum())
    scale = top / lengths if lengths else 0.0

    def score(features: Floats, logits: Any) -> Floats:
        residual = np.linalg.norm((features - origin) @ rest, axis=1)
        return np.asarray(energy(head(features) if logits is None else logits) - scale * residual)

    return score


def fit_react(train: SampleSet, head: Head, percentile: float = 90.0) -> ScoreSamples:
    """Score by the energy of the logits after features are cut at a percentile of all training features."""
    check_percentile("react", percentile)
    table = train.take("features")
    cut = float(np.percentile(table[:: -(-table.size // MAX_QUANTILE)], percentile))
    return lambda features, _: energy(head(np.minimum(features, cut)))


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
        return energy(head(shaped))

    return score


def _nth_likeness(rows: NDArray[Any], known: NDArray[Any], nth: int) -> NDArray[Any]:
    """Return the n-th largest product of every row with the known ones, tile by tile: large products are fast."""
    best = np.zeros((len(rows), 0), np.float32)
    for start in range(0, len(known), TILE):
        tile = rows @ known[start : start + TILE].T
        best = take_largest(np.concatenate([best, take_largest(tile, nth)], axis=1), nth)
    return np.asarray(best.min(axis=1))


def take_largest(table: NDArray[Any], k: int) -> NDArray[Any]:
    """Return the k largest values of every row, or all if there are fewer, in any order.

    They lie in the k blocks of a row whose largest values are largest, so that only these are searched: a third of the
    time in rows of 100,000.
    """
    rows, width = table.shape
    count = width // BLOCK
    if count > 2 * k:
        blocks = table[:, : count * BLOCK].reshape(rows, count, BLOCK)
        chosen = np.argpartition(blocks.max(axis=2), -k, axis=1)[:, -k:, None]
        nearest = np.take_along_axis(blocks, chosen, axis=1).reshape(rows, -1)
        table = np.concatenate([nearest, table[:, count * BLOCK :]], axis=1)
    return table if table.shape[1] <= k else np.asarray(np.partition(table, -k, axis=1)[:, -k:])


def normalise_rows(features: NDArray[Any]) -> NDArray[Any]:
    """Return the features with every row scaled to length one."""
    return np.asarray(features / (np.linalg.norm(features, axis=1, keepdims=True) + 1e-12))


def check_percentile(name: str, percentile: float) -> None:
    """Refuse a percentile that is not between 0 and 100."""
    if not 0 <= percentile <= 100:
        raise InvalidInput(f"{name} takes a percentile from 0 to 100, not {percentile}.")


def _class_means(train: SampleSet) -> tuple[NDArray[Any], Floats]:
    """Return the classes that occur, and the mean features of each."""
    classes, counts = np.unique(train.take("labels"), return_counts=True)
    sums = np.zeros((len(classes), train.width))
    for _, (features, labels) in train.parts("features", "labels"):
        add_by_class(sums, features, np.searchsorted(classes, labels))
    return classes, np.asarray(sums / counts[:, None])


def _inverse_root(spread: Floats) -> Floats:
    """Return a matrix whose product with its transpose is the pseudo-inverse of a covariance."""
    values, vectors = np.linalg.eigh(spread)
    used = values > max(values[-1], 0) * len(values) * np.finfo(float).eps
    return np.asarray(vectors[:, used] / np.sqrt(values[used]))
