"""Seven detectors of unknown samples in NumPy, from features and logits.

Each is fitted on training samples and gives a score that is higher for samples that look known. Agents and `openfield
ond score` use them by name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from openfield.domains.ond.agents.classifier import softmax

Array = NDArray[np.float32]
UNTHREADED = 1 << 18
"""Products up to this many multiplications run in one thread; threads cost 30 times as much on a busy machine."""


class OpenSetDetector(Protocol):
    """Is fitted on known samples, and scores how known other samples look."""

    def fit(self, features: Array, logits: Array, labels: NDArray[np.int64]) -> None:
        """Learn what known samples look like."""
        ...

    def score(self, features: Array, logits: Array) -> Array:
        """Return a score for each sample, higher if it looks known."""
        ...


class LogitDetector:
    """A detector that is a function of the logits and needs no fitting."""

    def __init__(self, function: Callable[[Array], Array]) -> None:
        self._function = function

    def fit(self, features: Array, logits: Array, labels: NDArray[np.int64]) -> None:
        """Do nothing."""

    def score(self, features: Array, logits: Array) -> Array:
        """Return the value of the function for each sample."""
        return np.asarray(self._function(logits))


def energy(logits: Array) -> Array:
    """Return the logarithm of the summed exponentials of the logits."""
    top = logits.max(axis=1)
    return np.asarray(top + np.log(np.exp(logits - top[:, None]).sum(axis=1)))


def negative_entropy(logits: Array) -> Array:
    """Return the negative entropy of the class probabilities."""
    p = softmax(logits)
    return np.asarray((p * np.log(p + 1e-12)).sum(axis=1))


class Mahalanobis:
    """The negative Mahalanobis distance to the nearest class mean, with a shared covariance."""

    def fit(self, features: Array, logits: Array, labels: NDArray[np.int64]) -> None:
        """Learn the class means and their shared covariance."""
        classes = np.unique(labels)
        self._means = np.stack([features[labels == one].mean(axis=0) for one in classes])
        rest = features - self._means[np.searchsorted(classes, labels)]
        spread = rest.T @ rest / len(rest) + 1e-3 * np.eye(features.shape[1]) * max(float(rest.var()), 1e-12)
        self._inverse = np.linalg.pinv(spread)

    def score(self, features: Array, logits: Array) -> Array:
        """Return a score for each sample, higher if it looks known."""
        away = features[:, None, :] - self._means[None]
        return np.asarray(-np.einsum("ncd,de,nce->nc", away, self._inverse, away, optimize=True).min(axis=1))


class NearestNeighbours:
    """The cosine similarity to the k-th nearest training sample."""

    def __init__(self, k: int = 5) -> None:
        self._k = k

    def fit(self, features: Array, logits: Array, labels: NDArray[np.int64]) -> None:
        """Store the training samples."""
        self._known = normalise_rows(features)

    def score(self, features: Array, logits: Array) -> Array:
        """Return a score for each sample, higher if it looks known."""
        rows, k = normalise_rows(features), min(self._k, len(self._known))
        size = max(UNTHREADED // self._known.size, 1) if self._known.size <= UNTHREADED else 256
        found = []
        for start in range(0, len(rows), size):
            likeness = rows[start : start + size] @ self._known.T
            found.append(np.partition(likeness, -k, axis=1)[:, -k])
        return np.concatenate(found) if found else np.zeros(0, np.float32)


class OpenMax:
    """One minus the probability of the unknown class, from Weibull tails of the distances to class means."""

    def __init__(self, tail: int = 20, top: int = 3) -> None:
        self._tail, self._top = tail, top

    def fit(self, features: Array, logits: Array, labels: NDArray[np.int64]) -> None:
        """Fit a mean logit vector and a Weibull tail of the farthest samples for each class."""
        classes = range(logits.shape[1])
        self._means = np.zeros((len(classes), logits.shape[1]))
        self._tails: dict[int, tuple[float, float, float]] = {}
        for one in classes:
            if (rows := logits[labels == one]).size:  # a class without samples has no tail
                self._means[one] = rows.mean(axis=0)
                self._tails[one] = self._fit_tail(rows, self._means[one])

    def score(self, features: Array, logits: Array) -> Array:
        """Return a score for each sample, higher if it looks known."""
        order = np.argsort(-logits, axis=1)[:, : self._top]
        revised, moved = logits.astype(float), np.zeros(len(logits))
        for place in range(order.shape[1]):
            classes = order[:, place]
            far = np.linalg.norm(logits - self._means[classes], axis=1)
            outside = np.array([self._outside(int(one), d) for one, d in zip(classes, far, strict=True)])
            loss = logits[np.arange(len(logits)), classes] * outside * (1 - place / self._top)
            revised[np.arange(len(logits)), classes] -= loss
            moved += loss
        return np.asarray(1 - softmax(np.column_stack([revised, moved]).astype(np.float32))[:, -1])

    def _fit_tail(self, logits: Array, mean: NDArray[np.float64]) -> tuple[float, float, float]:
        """Return shape, scale and start of a Weibull distribution, by the moments of the logarithms."""
        far = np.sort(np.linalg.norm(logits - mean, axis=1))[-self._tail :]
        start = float(far[0]) * 0.9
        logs = np.log(far - start + 1e-6)
        shape = float(np.pi / np.sqrt(6) / max(float(logs.std()), 1e-3))
        return shape, float(np.exp(logs.mean() + 0.5772 / shape)), start

    def _outside(self, label: int, distance: float) -> float:
        if label not in self._tails:
            return 0.0
        shape, scale, start = self._tails[label]
        return 1 - float(np.exp(-((max(distance - start, 0.0) / scale) ** shape)))


DETECTORS: dict[str, Callable[[], OpenSetDetector]] = {
    "msp": partial(LogitDetector, lambda logits: softmax(logits).max(axis=1)),
    "maxlogit": partial(LogitDetector, lambda logits: logits.max(axis=1)),
    "energy": partial(LogitDetector, energy),
    "entropy": partial(LogitDetector, negative_entropy),
    "mahalanobis": Mahalanobis,
    "knn": NearestNeighbours,
    "openmax": OpenMax,
}


def normalise_rows(features: Array) -> Array:
    """Return the features with every row scaled to length one."""
    return np.asarray(features / (np.linalg.norm(features, axis=1, keepdims=True) + 1e-12))
