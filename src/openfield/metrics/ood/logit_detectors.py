"""Detectors that look at logits: MSP, maximum logit, energy, entropy, KL matching and OpenMax.

A detector is fitted once and returns a function from features and logits of some samples to a confidence for each,
higher if the sample looks known. Everything is computed part by part, in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openfield.errors import InvalidInput
from openfield.metrics.ood.array_library import NUMPY, ArrayLibrary
from openfield.metrics.ood.samples import Floats, SampleSet

ScoreSamples = Callable[[Any, Any], Any]
"""From features and logits to a confidence for each sample, higher if it looks known."""
STEPS = 60
"""Halvings of the interval in which the shape of a Weibull distribution is sought: to the last bit."""
MIN_SHAPE, MAX_SHAPE = 1e-3, 1e4


def softmax(logits: NDArray[Any]) -> NDArray[Any]:
    """Return the class probabilities of logits."""
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def log_softmax(logits: NDArray[Any]) -> NDArray[Any]:
    """Return the logarithms of the class probabilities of logits."""
    return np.asarray(logits - energy(logits)[:, None])


def energy(logits: Any, arrays: ArrayLibrary = NUMPY) -> Any:
    """Return the logarithm of the summed exponentials of the logits, the negative free energy at temperature 1."""
    xp = arrays.module
    top = xp.amax(logits, 1)
    return top + xp.log(xp.exp(logits - top[:, None]).sum(axis=1))


def negative_entropy(logits: NDArray[Any]) -> NDArray[Any]:
    """Return the negative entropy of the class probabilities."""
    logs = log_softmax(logits)
    return np.asarray((np.exp(logs) * logs).sum(axis=1))


def fit_msp(_: SampleSet, temperature: float = 1.0) -> ScoreSamples:
    """Score by the maximum softmax probability."""
    check_temperature("msp", temperature)
    return lambda features, logits: softmax(logits / temperature).max(axis=1)


def check_temperature(name: str, temperature: float) -> None:
    """Refuse a temperature that is not above 0."""
    if not temperature > 0:
        raise InvalidInput(f"{name} takes a temperature above 0, not {temperature}.")


def fit_maxlogit(_: SampleSet) -> ScoreSamples:
    """Score by the largest logit."""
    return lambda features, logits: np.asarray(logits.max(axis=1))


def fit_energy(_: SampleSet, arrays: ArrayLibrary, temperature: float = 1.0) -> ScoreSamples:
    """Score by the negative free energy, T log sum exp(logit / T)."""
    check_temperature("energy", temperature)
    return lambda features, logits: temperature * energy(logits / temperature, arrays)


def fit_entropy(_: SampleSet) -> ScoreSamples:
    """Score by the negative entropy of the class probabilities."""
    return lambda features, logits: negative_entropy(logits)


def fit_kl_matching(train: SampleSet) -> ScoreSamples:
    """Score by the negative divergence from the nearest mean of the class probabilities of the training samples.

    The mean is taken over the samples that are predicted as a class, and the divergence is KL(sample, mean).
    """
    sums, counts = _sum_by_class(train, softmax, predicted=True)
    means = sums[counts > 0] / counts[counts > 0, None]
    logs = np.log(np.maximum(means, np.finfo(float).tiny))

    def score(_: Any, logits: Floats) -> Floats:
        return np.asarray((np.exp(log_softmax(logits)) @ logs.T).max(axis=1) - negative_entropy(logits))

    return score


def fit_openmax(train: SampleSet, tail: int = 20, alpha: int = 3) -> ScoreSamples:
    """Score by one minus the OpenMax probability of the unknown class.

    Args:
        train: SampleSet with logits and labels. Those that are classified rightly give the mean logits of their class.
        tail: How many of the largest distances to the mean a Weibull distribution is fitted to, for each class.
        alpha: How many of the largest logits are revised.
    """
    if tail < 2 or alpha < 1:
        raise InvalidInput("openmax takes tail=2 or more, and alpha=1 or more.")
    sums, counts = _sum_by_class(train, np.asarray, predicted=False)
    means = sums / np.maximum(counts, 1)[:, None]
    tails = _largest_distances(train, means, tail)
    shape, scale, start = fit_weibull(tails)

    def score(_: Any, logits: Floats) -> Floats:
        order = _largest(logits, alpha)
        revised, unknown, rows = logits.copy(), np.zeros(len(logits)), np.arange(len(logits))
        for place in range(order.shape[1]):
            chosen = order[:, place]
            far = np.linalg.norm(logits - means[chosen], axis=1) - start[chosen] + 1
            outside = -np.expm1(-((np.maximum(far, 0) / scale[chosen]) ** shape[chosen]))
            loss = logits[rows, chosen] * np.where(np.isnan(outside), 0, outside) * (alpha - place) / alpha
            revised[rows, chosen] -= loss
            unknown += loss
        return np.asarray(1 / (1 + np.exp(np.clip(unknown - energy(revised), -700, 700))))

    return score


def fit_weibull(tails: Floats) -> tuple[Floats, Floats, Floats]:
    """Fit Weibull distributions to the rows of a table by maximum likelihood; missing values are NaN.

    Each row is shifted so that its smallest value is 1, as libmr does for the tails of OpenMax.

    Returns:
        Shape, scale and smallest value of every row; NaN where a row has fewer than two different values.
    """
    given = ~np.isnan(tails)
    count = np.maximum(given.sum(axis=1), 1)
    start = np.where(given, tails, np.inf).min(axis=1, initial=np.inf)
    start = np.where(np.isfinite(start), start, 0)
    logs = np.log(np.where(given, tails - start[:, None] + 1, 1))
    top, mean = logs.max(axis=1, keepdims=True), logs.sum(axis=1) / count

    def weigh(shape: Floats) -> Floats:
        return np.asarray(np.where(given, np.exp(shape[:, None] * (logs - top)), 0))

    low, high = np.full(len(tails), MIN_SHAPE), np.full(len(tails), MAX_SHAPE)
    for _ in range(STEPS):
        middle = np.sqrt(low * high)
        weight = weigh(middle)
        slope = (weight * logs).sum(axis=1) / np.maximum(weight.sum(axis=1), 1e-300) - 1 / middle - mean
        low, high = np.where(slope < 0, middle, low), np.where(slope < 0, high, middle)
    shape = np.sqrt(low * high)
    scale = np.exp(top[:, 0] + np.log(np.maximum(weigh(shape).sum(axis=1), 1e-300) / count) / shape)
    usable = top[:, 0] > 0  # at least two values that differ
    return np.where(usable, shape, np.nan), np.where(usable, scale, np.nan), start


def _sum_by_class(train: SampleSet, change: Callable[[Floats], Any], predicted: bool) -> tuple[Floats, Floats]:
    """Return the summed values and the number of the training samples of every class.

    Args:
        train: The training samples.
        change: The summand, from logits.
        predicted: Whether a sample counts for its predicted class; else it counts only if its class was predicted.
    """
    classes = train.take("logits").shape[1]
    sums, counts = np.zeros((classes, classes)), np.zeros(classes)
    for _, (logits, labels) in train.parts("logits", "labels"):
        said = logits.argmax(axis=1)
        used = np.ones(len(said), bool) if predicted else said == labels
        NUMPY.add_by_class(sums, change(logits[used]), said[used])
        counts += np.bincount(said[used], minlength=classes)
    return sums, counts


def _largest(logits: Floats, count: int) -> NDArray[Any]:
    """Return the columns of the largest values of every row, the largest first."""
    if count < logits.shape[1]:
        found = np.argpartition(logits, -count, axis=1)[:, -count:]
        order = np.argsort(-np.take_along_axis(logits, found, axis=1), axis=1, kind="stable")
        return np.take_along_axis(found, order, axis=1)
    return np.argsort(-logits, axis=1, kind="stable")


def _largest_distances(train: SampleSet, means: Floats, count: int) -> Floats:
    """Return for every class the largest distances of its rightly classified samples to their mean, else NaN."""
    tails = np.full((len(means), count), np.nan)
    for _, (logits, labels) in train.parts("logits", "labels"):
        said = logits.argmax(axis=1)
        right = np.flatnonzero(said == labels)
        far = np.linalg.norm(logits[right] - means[said[right]], axis=1)
        for one in np.unique(said[right]):
            both = np.concatenate([tails[one][~np.isnan(tails[one])], far[said[right] == one]])
            largest = np.sort(both)[-count:]
            tails[one, : len(largest)] = largest
    return tails
