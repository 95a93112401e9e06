"""The classifier and the detectors of unknown samples are as good as stated."""

from __future__ import annotations

import numpy as np
import pytest

from openfield.domains.ond import DOMAIN
from openfield.domains.ond.agents.detectors import Classifier, fit_detector
from openfield.metrics.openset import measures


@pytest.fixture(scope="module")
def splits():
    """Three splits of the digits: training features and logits, test features, logits and labels."""
    found = []
    for trial in DOMAIN.trials(3, unchanged=0):
        built = DOMAIN.world(trial)._built
        x, y = built.images.reshape(len(built.images), -1), built.labels - 1
        model = Classifier(64, 6, 1)
        model.fit(x, y)
        test = built.test.images.reshape(-1, 64)
        found.append((model.read(x), y, model.read(test), np.where(built.test.labels == 0, -1, built.test.labels - 1)))
    return found


def test_the_classifier_knows_the_known_digits(splits) -> None:
    accuracies = [measures.closed_accuracy(logits.argmax(axis=1), label) for _, _, (_, logits), label in splits]
    assert np.mean(accuracies) >= 0.97


@pytest.mark.parametrize(
    ("name", "bar"),
    {
        "knn": 0.93,
        "mahalanobis": 0.9,
        "msp": 0.85,
        "entropy": 0.85,
        "maxlogit": 0.8,
        "energy": 0.8,
        "openmax": 0.8,
    }.items(),
)
def test_detectors_tell_unknown_digits(splits, name: str, bar: float) -> None:
    found = []
    for known, y, test, label in splits:
        score = fit_detector(name, *known, y)
        found.append(measures.auroc(score(*test), label))
    assert np.mean(found) >= bar
