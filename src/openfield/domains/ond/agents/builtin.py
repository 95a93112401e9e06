"""Agents that come with the domain: a small classifier, a detector of unknown samples, a calibrated change detector."""

from __future__ import annotations

import itertools
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openfield.core import Ask, Belief, Reply, Spec, Turn
from openfield.domains.ond.actions import Buy, NextBatch, Scores
from openfield.domains.ond.agents.change_detectors import CHANGE_DETECTORS, Rarity, calibrate, probability
from openfield.domains.ond.agents.detectors import Classifier, fit_detector
from openfield.domains.ond.testset.results import split_row
from openfield.errors import InvalidInput
from openfield.metrics.ood.feature_detectors import normalise_rows
from openfield.metrics.ood.logit_detectors import softmax
from openfield.trial import derive

HELD_OUT = 0.3
"""Share of the training samples that calibrate the scores."""
FALSE_ALARM_RATE, STREAM_LENGTH = 0.05, 250
"""One unchanged stream of 250 samples in twenty may give a false alarm."""


class DetectorAgent:
    """Learns the known classes, then scores how unknown samples look and whether too many do."""

    detector = "knn"
    stream = "cusum"

    def __init__(self, spec: Spec, seed: int) -> None:
        self._seed = seed
        self._model: Classifier | None = None
        self._highest = 0.0

    def __call__(self, turn: Turn) -> Reply:
        """Learn from the training samples, answer a batch, or ask for the next one."""
        seen = turn.observation
        if turn.ask is Ask.READY:
            self.learn(seen)
            return Reply()
        if turn.ask is not Ask.ACT:
            return Reply()
        return self.after_batch(turn) if seen.get("answered") else self.answer(turn)

    def learn(self, seen: dict[str, Any]) -> None:
        """Train the classifier, fit the detector, and calibrate the change detector on held-out samples."""
        if "labels" not in seen:
            raise InvalidInput(
                "This agent learns from samples; the test has none. Set training=NUMBER for built tests; a data "
                "directory has them as train_images and train_labels in its arrays.npz."
            )
        x, y = _flat(seen["images"]), np.asarray(seen["labels"]) - 1
        order = np.random.default_rng(self._seed).permutation(len(x))
        cut = int(len(x) * HELD_OUT)
        held, rest = order[:cut], order[cut:]
        self._classes = int(seen["metadata"].get("known_classes") or y.max() + 1)
        self._model = Classifier(x.shape[1], self._classes, derive(self._seed, "model"))
        self._model.fit(x[rest], y[rest])
        self._score = fit_detector(self.detector, *self._model.read(x[rest]), y[rest])
        scores = self._score(*self._model.read(x[held]))
        self._rarity, self._unread = Rarity(scores), deque[float]()
        self._statistics = CHANGE_DETECTORS[self.stream](iter(self._unread.popleft, None))
        self._threshold = calibrate(self.stream, self._rarity(scores), STREAM_LENGTH, FALSE_ALARM_RATE, self._seed)

    def answer(self, turn: Turn) -> Reply:
        """Return the scores of K+1 classes and the belief after each sample of a batch."""
        self._ids = list(turn.observation["ids"])
        if self._model is None:
            raise InvalidInput("This agent has learned nothing yet.")
        self._features, logits = self._model.read(_flat(turn.observation["images"]))
        rarity = self._rarity(self._score(self._features, logits))
        beliefs = []
        self._unread.extend(rarity.tolist())
        for statistic in itertools.islice(self._statistics, len(rarity)):
            self._highest = max(self._highest, statistic)
            beliefs.append(probability(self._highest, self._threshold))
        if turn.red_light:
            beliefs = [1.0] * len(beliefs)
        return Reply(Scores.of(self.classify(logits, rarity)), Belief(tuple(beliefs)))

    def classify(self, logits: NDArray[Any], rarity: NDArray[Any]) -> NDArray[Any]:
        """Return scores in which the unknown class has one half at a rarity of 0.95; the known ones share the rest."""
        unknown = np.clip(rarity**14, 0, 1)[:, None]
        return np.hstack([unknown, (1 - unknown) * softmax(logits)])

    def after_batch(self, turn: Turn) -> Reply:
        """Ask for the next batch."""
        return Reply(NextBatch())


class NearestAgent(DetectorAgent):
    """Calls samples unknown that lie far from all training samples."""


class SoftmaxAgent(DetectorAgent):
    """Calls samples unknown that no class claims."""

    detector = "msp"


class EnergyAgent(DetectorAgent):
    """Calls samples unknown whose logits have little energy."""

    detector = "energy"


class MahalanobisAgent(DetectorAgent):
    """Calls samples unknown that lie far from all class means."""

    detector = "mahalanobis"


class OpenMaxAgent(DetectorAgent):
    """Calls samples unknown that lie in the tail of their class."""

    detector = "openmax"


class AdaptingAgent(DetectorAgent):
    """Buys labels of samples that look unknown, once it has declared a change, and compares later ones with them."""

    def __init__(self, spec: Spec, seed: int) -> None:
        super().__init__(spec, seed)
        self._bought: dict[str, tuple[NDArray[Any], int]] = {}
        self._asked = False
        self._kinds = ["classification", "labels"]
        """Kinds of feedback that may name classes. A kind that turns out to mean something else is not bought again."""

    def classify(self, logits: NDArray[Any], rarity: NDArray[Any]) -> NDArray[Any]:
        """Return the scores, shifted towards the labels of similar samples that were bought."""
        self._rarities = rarity
        p = super().classify(logits, rarity)
        if not self._bought:
            return p
        known = np.stack([feature for feature, _ in self._bought.values()])
        labels = np.array([label for _, label in self._bought.values()])
        likeness = normalise_rows(self._features) @ normalise_rows(known).T
        weights = np.exp(25 * (likeness - 1))  # 0.37 at a cosine of 0.96
        votes = np.zeros_like(p)
        for label in np.unique(labels):
            votes[:, label] = weights[:, labels == label].sum(axis=1)
        mixed = p + votes
        return np.asarray(mixed / mixed.sum(axis=1, keepdims=True))

    def after_batch(self, turn: Turn) -> Reply:
        """Buy labels once per batch, learn them, then ask for the next batch."""
        lines = (turn.feedback or {}).get("lines", []) if self._asked else []
        useless = bool(lines) and not self._remember(lines)
        if useless:
            self._kinds.pop(0)
        if not self._kinds or (self._asked and not useless) or self._highest < self._threshold:
            self._asked = False
            return Reply(NextBatch())
        self._asked = True
        rarest = np.argsort(-self._rarities, kind="stable")[:5]
        return Reply(Buy(self._kinds[0], [self._ids[at] for at in rarest.tolist()]))

    def _remember(self, lines: list[str]) -> bool:
        """Learn bought labels and return whether there were classes among them; feedback on videos has five texts."""
        place = {key: at for at, key in enumerate(self._ids)}
        labels = {key: label for key, label in map(split_row, lines) if label.lstrip("-").isdecimal()}
        for key, label in labels.items():
            self._bought[key] = self._features[place[key]], max(int(label), 0)  # -n is the n-th unknown class
        return bool(labels)


def _flat(images: Any) -> NDArray[np.float32]:
    array = np.asarray(images, dtype=np.float32)
    return array.reshape(len(array), -1)
