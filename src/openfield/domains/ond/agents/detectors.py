"""A small classifier, and seven detectors of unknown samples from its features and logits, all in NumPy.

The classifier has two hidden layers, softmax and Adam, and is trained in about a second. A detector is fitted on
training samples and gives scores that are higher for samples that look known. Agents and `openfield ond score` use them
by name.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Labels = NDArray[np.int64]
ScoreSamples = Callable[[Array, Array], Array]
"""From features and logits to a score for each sample, higher if it looks known."""
UNTHREADED = 1 << 18
"""Products up to this many multiplications run in one thread; threads cost 30 times as much on a busy machine."""


class Classifier:
    """A multilayer perceptron over flat inputs; classes are 0..K-1."""

    def __init__(self, inputs: int, classes: int, seed: int, hidden: tuple[int, ...] = (128, 64)) -> None:
        self._rng = np.random.default_rng(seed)
        sizes = (inputs, *hidden, classes)
        self.weights = [
            self._rng.normal(0, np.sqrt(2 / a), (a, b)).astype(np.float32) for a, b in itertools.pairwise(sizes)
        ]
        self.biases = [np.zeros(size, np.float32) for size in sizes[1:]]

    def fit(self, x: Array, y: Labels, epochs: int = 40, rate: float = 3e-3) -> None:
        """Train on labelled samples, with a little noise on the inputs against overfitting.

        Batches stay below the size from which BLAS starts threads; on a busy machine those cost 30 times as much.
        """
        widest = max(weight.size for weight in self.weights)
        batch = min(max(UNTHREADED // widest, 8), 32)
        parts = [*self.weights, *self.biases]
        mean, square = [np.zeros_like(p) for p in parts], [np.zeros_like(p) for p in parts]
        step = 0
        for epoch in range(epochs):
            order = self._rng.permutation(len(x))
            for start in range(0, len(x), batch):
                chosen = order[start : start + batch]
                noisy = x[chosen] + self._rng.normal(0, 0.05, x[chosen].shape).astype(np.float32)
                step += 1
                pace = rate * (1 - epoch / epochs)
                for number, slope in enumerate(self._gradient(noisy, y[chosen])):
                    mean[number] += 0.1 * (slope - mean[number])
                    square[number] += 0.001 * (slope**2 - square[number])
                    size = np.sqrt(square[number] / (1 - 0.999**step)) + 1e-8
                    parts[number] -= pace * (mean[number] / (1 - 0.9**step)) / size

    def read(self, x: Array) -> tuple[Array, Array]:
        """Return the features of samples, which are the last hidden layer, and their logits."""
        hidden = self._forward(x)
        return hidden[-2], hidden[-1]

    def _forward(self, x: Array) -> list[Array]:
        layers = [x]
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            layers.append(np.maximum(layers[-1] @ weight + bias, 0))
        return [*layers, layers[-1] @ self.weights[-1] + self.biases[-1]]

    def _gradient(self, x: Array, y: Labels) -> list[Any]:
        layers = self._forward(x)
        slope = softmax(layers[-1])
        slope[np.arange(len(y)), y] -= 1
        slope /= len(y)
        weights, biases = [], []
        for number in range(len(self.weights) - 1, -1, -1):
            weights.append(layers[number].T @ slope + 1e-4 * self.weights[number])
            biases.append(slope.sum(axis=0))
            slope = (slope @ self.weights[number].T) * (layers[number] > 0)
        return [*weights[::-1], *biases[::-1]]


def softmax(logits: Array) -> Array:
    """Return the class probabilities of logits."""
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def energy(logits: Array) -> Array:
    """Return the logarithm of the summed exponentials of the logits."""
    top = logits.max(axis=1)
    return np.asarray(top + np.log(np.exp(logits - top[:, None]).sum(axis=1)))


def negative_entropy(logits: Array) -> Array:
    """Return the negative entropy of the class probabilities."""
    p = softmax(logits)
    return np.asarray((p * np.log(p + 1e-12)).sum(axis=1))


def fit_mahalanobis(features: Array, logits: Array, labels: Labels) -> ScoreSamples:
    """Score by the negative Mahalanobis distance to the nearest class mean, with a shared covariance."""
    classes = np.unique(labels)
    means = np.stack([features[labels == one].mean(axis=0) for one in classes])
    rest = features - means[np.searchsorted(classes, labels)]
    spread = rest.T @ rest / len(rest) + 1e-3 * np.eye(features.shape[1]) * max(float(rest.var()), 1e-12)
    inverse = np.linalg.pinv(spread)

    def score(features: Array, logits: Array) -> Array:
        away = features[:, None, :] - means[None]
        return np.asarray(-np.einsum("ncd,de,nce->nc", away, inverse, away, optimize=True).min(axis=1))

    return score


def fit_neighbours(features: Array, logits: Array, labels: Labels, k: int = 5) -> ScoreSamples:
    """Score by the cosine similarity to the k-th nearest training sample."""
    known = normalise_rows(features)

    def score(features: Array, logits: Array) -> Array:
        rows, nth = normalise_rows(features), min(k, len(known))
        size = max(UNTHREADED // known.size, 1) if known.size <= UNTHREADED else 256
        found = []
        for start in range(0, len(rows), size):
            likeness = rows[start : start + size] @ known.T
            found.append(np.partition(likeness, -nth, axis=1)[:, -nth])
        return np.concatenate(found) if found else np.zeros(0, np.float32)

    return score


class OpenMax:
    """One minus the probability of the unknown class, from Weibull tails of the distances to class means."""

    def __init__(self, features: Array, logits: Array, labels: Labels, tail: int = 20, top: int = 3) -> None:
        """Fit a mean logit vector and a Weibull tail of the farthest samples for each class."""
        classes = range(logits.shape[1])
        self._tail, self._top = tail, top
        self._means = np.zeros((len(classes), logits.shape[1]))
        self._tails: dict[int, tuple[float, float, float]] = {}
        for one in classes:
            if (rows := logits[labels == one]).size:  # a class without samples has no tail
                self._means[one] = rows.mean(axis=0)
                self._tails[one] = self._fit_tail(rows, self._means[one])

    def __call__(self, features: Array, logits: Array) -> Array:
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


def normalise_rows(features: Array) -> Array:
    """Return the features with every row scaled to length one."""
    return np.asarray(features / (np.linalg.norm(features, axis=1, keepdims=True) + 1e-12))


def _score_logits(function: Callable[[Array], Array]) -> Callable[[Array, Array, Labels], ScoreSamples]:
    """Return a detector that is a function of the logits and needs no fitting."""
    return lambda *_: lambda features, logits: np.asarray(function(logits))


DETECTORS: dict[str, Callable[[Array, Array, Labels], ScoreSamples]] = {
    "msp": _score_logits(lambda logits: softmax(logits).max(axis=1)),
    "maxlogit": _score_logits(lambda logits: logits.max(axis=1)),
    "energy": _score_logits(energy),
    "entropy": _score_logits(negative_entropy),
    "mahalanobis": fit_mahalanobis,
    "knn": fit_neighbours,
    "openmax": OpenMax,
}
"""Each is fitted on the features, logits and labels of known samples, and gives a function that scores others."""
