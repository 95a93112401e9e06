"""The detectors by name, what each needs, and how one is chosen with its parameters: `knn(k=10)`."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from openfield.errors import InvalidInput, UnknownName
from openfield.metrics.ood import feature_detectors as features
from openfield.metrics.ood import logit_detectors as logits
from openfield.metrics.ood.array_library import NUMPY, ArrayLibrary
from openfield.metrics.ood.logit_detectors import ScoreSamples
from openfield.metrics.ood.samples import Head, SampleSet
from openfield.parameters import read_agent


@dataclass(frozen=True)
class Detector:
    """A way to detect unknown samples: how it is fitted, and which inputs it cannot do without."""

    title: str
    fit: Callable[..., ScoreSamples]
    reads: tuple[str, ...]
    """The arrays that it reads of every sample it scores."""
    train: tuple[str, ...] = ()
    """The arrays of the training samples that it is fitted on."""
    head: bool = False
    """Whether it needs the last layer of the network."""
    val: bool = False
    """Whether the literature fits it on validation samples; without them, training samples are used."""

    @property
    def on_card(self) -> bool:
        """Whether it can be computed on a card."""
        return "arrays" in inspect.signature(self.fit).parameters


LOGITS, FEATURES = ("logits",), ("features",)
DETECTORS: dict[str, Detector] = {
    "msp": Detector("MSP", logits.fit_msp, LOGITS),
    "maxlogit": Detector("Max logit", logits.fit_maxlogit, LOGITS),
    "energy": Detector("Energy", logits.fit_energy, LOGITS),
    "entropy": Detector("Entropy", logits.fit_entropy, LOGITS),
    "klm": Detector("KL matching", logits.fit_kl_matching, LOGITS, ("logits",), val=True),
    "openmax": Detector("OpenMax", logits.fit_openmax, LOGITS, ("logits", "labels")),
    "mahalanobis": Detector("Mahalanobis", features.fit_mahalanobis, FEATURES, ("features", "labels")),
    "knn": Detector("kNN", features.fit_knn, FEATURES, ("features",)),
    "vim": Detector("ViM", features.fit_vim, (*FEATURES, *LOGITS), ("features",), head=True),
    "react": Detector("ReAct", features.fit_react, FEATURES, ("features",), head=True, val=True),
    "ash": Detector("ASH", features.fit_ash, FEATURES, head=True),
}
"""In the order of tables."""


@dataclass(frozen=True)
class ChosenDetector:
    """A detector with the parameters that were asked for."""

    name: str
    detector: Detector
    parameters: Mapping[str, Any] = field(default_factory=dict)
    arrays: ArrayLibrary = NUMPY

    def missing(
        self, sets: Sequence[SampleSet], train: SampleSet | None, head: Head | None, val: SampleSet | None = None
    ) -> list[str]:
        """Return in words which inputs it needs and lacks."""
        train = self._choose(train, val)
        reads = self.detector.reads if head is not None or not self.detector.head else FEATURES
        needs = [f"{name} of {one.name}" for name in reads for one in sets if getattr(one, name) is None]
        absent = [name for name in self.detector.train if train is None or getattr(train, name) is None]
        needs += [f"{' and '.join(absent)} of training samples (--train)"] if absent else []
        return needs + (["the last layer (--head)"] if self.detector.head and head is None else [])

    @property
    def library(self) -> ArrayLibrary:
        """The library that it is computed with: NumPy for what no card computes."""
        return self.arrays if self.detector.on_card else NUMPY

    def fit(self, train: SampleSet | None, head: Head | None, val: SampleSet | None = None) -> ScoreSamples:
        """Fit it on the training samples, or on the validation samples where the literature does."""
        train = self._choose(train, val)
        inputs: list[Any] = [train or SampleSet("train"), *([head] if self.detector.head else [])]
        inputs += [self.library] if self.detector.on_card else []
        return self.detector.fit(*inputs, **self.parameters)

    def _choose(self, train: SampleSet | None, val: SampleSet | None) -> SampleSet | None:
        return val if self.detector.val and val is not None else train


def _check_parameter(place: str, value: Any, parameter: inspect.Parameter) -> None:
    """Refuse a value of another type than a detector takes, or a number that is not finite."""
    kinds = str(parameter.annotation)
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if "Literal" in kinds or "str" in kinds:
        return  # the detector itself names its parameters
    if not is_number or ("float" not in kinds and value != int(value)):
        wanted = "a number" if "float" in kinds else "a whole number"
        raise InvalidInput(f"{place} takes {wanted}, not {value!r}.")


def choose_detectors(sources: Sequence[str], arrays: ArrayLibrary = NUMPY) -> list[ChosenDetector]:
    """Return the detectors that texts such as `knn(k=10)` stand for; without texts, all with their default parameters.

    Args:
        sources: The texts.
        arrays: The library that they are computed with, as far as they can be.

    Raises:
        UnknownName: There is no detector or no parameter of a name.
    """
    chosen: dict[str, ChosenDetector] = {}
    for source in sources or DETECTORS:
        agent = read_agent(source)
        name, parameters = agent.place, agent.parameters
        if name not in DETECTORS:
            raise UnknownName("detector", name, DETECTORS, label="Known")
        takes = inspect.signature(DETECTORS[name].fit).parameters
        known = [each.name for each in takes.values() if each.default is not each.empty]
        for key, value in parameters.items():
            if key not in known:
                raise UnknownName("parameter", key, known, label=f"{name} takes")
            _check_parameter(f"{name}({key}=...)", value, takes[key])
        chosen[agent.name] = ChosenDetector(agent.name, DETECTORS[name], dict(parameters), arrays)
    return list(chosen.values())
