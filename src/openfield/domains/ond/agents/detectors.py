"""A small classifier, and the detectors of unknown samples that agents use on its features and logits, by name.

The classifier has two hidden layers, softmax and Adam, in NumPy, and is trained in about a second. The detectors are
those of `openfield score`: fitted on training samples, they give scores that are higher for samples that look known.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openfield.metrics.ood.catalogue import choose_detectors
from openfield.metrics.ood.logit_detectors import ScoreSamples, softmax
from openfield.metrics.ood.samples import SampleSet

Array = NDArray[np.float32]
Labels = NDArray[np.int64]
HIDDEN, RATE = (128, 64), 3e-3
"""Sizes of the hidden layers, and the step size with which training begins."""
UNTHREADED = 1 << 18
"""Products up to this many multiplications run in one thread; threads cost 30 times as much on a busy machine."""


class Classifier:
    """A multilayer perceptron over flat inputs; classes are 0..K-1."""

    def __init__(self, inputs: int, classes: int, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        sizes = (inputs, *HIDDEN, classes)
        self.weights = [
            self._rng.normal(0, np.sqrt(2 / a), (a, b)).astype(np.float32) for a, b in itertools.pairwise(sizes)
        ]
        self.biases = [np.zeros(size, np.float32) for size in sizes[1:]]

    def fit(self, x: Array, y: Labels, epochs: int = 40) -> None:
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
                pace = RATE * (1 - epoch / epochs)
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


def fit_detector(name: str, features: Array, logits: Array, labels: Labels) -> ScoreSamples:
    """Fit a detector on the features, logits and labels of known samples, and return a function that scores others."""
    chosen = DETECTORS[name]
    score = chosen.fit(SampleSet("train", logits, features, labels), None)
    rows = max(UNTHREADED // features.size, 1) if features.size <= UNTHREADED else 256

    def score_slices(features: Array, logits: Array) -> NDArray[Any]:
        slices = (slice(at, at + rows) for at in range(0, len(logits), rows))
        found = [np.asarray(score(features[at], logits[at])) for at in slices]
        return np.concatenate(found) if found else np.zeros(0)

    return score_slices if chosen.detector.train else score


DETECTORS = {
    one.name.partition("(")[0]: one
    for one in choose_detectors(("msp", "maxlogit", "energy", "entropy", "mahalanobis", "knn(k=5)", "openmax"))
}
"""The detectors of agents. There are few training samples, so the fifth neighbour counts and not the fiftieth."""
