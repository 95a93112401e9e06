"""Detectors of the package river as rules: ADWIN, KSWIN, PageHinkley, and the DDM family for errors.

They are given the numbers one after the other, in training too, and need no calibration.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from openfield.agents.detectors.rules import MIN_TRAINING
from openfield.agents.detectors.signals import reduce_rows
from openfield.agents.policy import Array
from openfield.errors import InvalidInput, UnknownName
from openfield.lazy import import_extra
from openfield.parameters import RIVER
from openfield.registry import check_parameters

HIDDEN = ("DriftRetrainingClassifier", "DummyDriftDetector", "NoDrift")
"""Classes in the place of river's detectors that detect nothing, or are no detectors."""


class RiverRule:
    """An alarm of river's detector counts as a change."""

    def __init__(self, name: str, parameters: Mapping[str, Any], hold: int | None = None) -> None:
        """Make river's detector.

        Args:
            name: Its class in `river.drift` or `river.drift.binary`.
            parameters: The parameters of the class.
            hold: For how many episodes an alarm counts, from 1 on; None is for all that follow.
        """
        if hold is not None and (isinstance(hold, bool) or not isinstance(hold, int) or hold < 1):
            raise InvalidInput(f"'hold' is a number of episodes from 1 on, or null for all that follow, not {hold!r}.")
        self._detector, self._is_binary = _make_detector(name, parameters)
        self.min_training = MIN_TRAINING if self._is_binary else 0
        self._hold, self._left = hold, 0
        self._usual, self._sign = 0.0, 1

    def fit(self, training: Sequence[Array], worse: int) -> None:
        """Give it the numbers of training; alarms among them do not count."""
        self._sign = worse or 1
        numbers = [number for each in training for number in reduce_rows(each)]
        self._usual = float(np.mean(numbers)) if numbers else 0.0
        for each in training:
            self._update(each)

    def judge(self, values: Array) -> float:
        """Return 1 from an alarm on, as long as it counts, and 0 otherwise."""
        self._left = max(0, self._left - 1)
        if self._update(values):
            self._left = sys.maxsize if self._hold is None else self._hold
        return float(self._left > 0)

    def _update(self, values: Array) -> bool:
        """Give it numbers, or for the DDM family whether each is worse than the mean of training."""
        found = False
        for number in reduce_rows(values):
            is_worse = bool((number - self._usual) * self._sign > 1e-9 * max(1.0, abs(self._usual)))
            self._detector.update(is_worse if self._is_binary else float(number))
            found = found or bool(self._detector.drift_detected)
        return found


def list_classes() -> dict[str, tuple[type, bool]]:
    """Return river's detectors by name, each with whether it takes errors.

    Raises:
        MissingExtra: river is not installed.
    """
    found: dict[str, tuple[type, bool]] = {}
    for module, is_binary in (("river.drift", False), ("river.drift.binary", True)):
        place = import_extra(module, "drift", "A detector of river")
        classes = [value for value in vars(place).values() if inspect.isclass(value)]
        found |= {each.__name__: (each, is_binary) for each in classes if each.__name__ not in HIDDEN}
    return found


def _make_detector(name: str, parameters: Mapping[str, Any]) -> tuple[Any, bool]:
    known = list_classes()
    if name not in known:
        raise UnknownName("detector", f"{RIVER}{name}", [f"{RIVER}{each}" for each in known], label="Known")
    made, is_binary = known[name]
    check_parameters(made, parameters, taken=0)
    seed = {"seed": 0} if "seed" in inspect.signature(made).parameters else {}  # else no run is like another
    try:
        return made(**{**seed, **parameters}), is_binary
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"'{RIVER}{name}' cannot be made: {error}") from None
