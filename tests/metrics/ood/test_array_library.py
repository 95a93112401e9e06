"""Detectors with the arrays of other libraries: the same confidences as with NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from openfield.errors import InvalidInput, MissingExtra
from openfield.metrics.ood import array_library
from openfield.metrics.ood.array_library import CupyLibrary, TorchLibrary, open_library, say_full
from openfield.metrics.ood.benchmark import score_detectors
from openfield.metrics.ood.catalogue import DETECTORS, choose_detectors
from openfield.metrics.ood.samples import Head, SampleSet

ON_CARD = [name for name, each in DETECTORS.items() if each.on_card]


class Stand:
    """NumPy in the place of CuPy: what a card would do is done by the same calls."""

    class cuda:  # noqa: N801 - CuPy's name
        class Device:
            def __init__(self, number: int) -> None:
                self.number = number

            def use(self) -> None:
                """Do nothing: there is no card."""

    asnumpy = staticmethod(np.asarray)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def _open_torch() -> TorchLibrary:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    return TorchLibrary(torch, "cpu")


@pytest.mark.parametrize("library", [lambda: CupyLibrary(Stand(), 0), _open_torch], ids=["cupy", "torch"])
def test_confidences_are_those_of_numpy(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openfield.metrics.ood.feature_detectors.TILE", 300)
    monkeypatch.setattr("openfield.metrics.ood.samples.PART", 40)
    rng = np.random.default_rng(5)
    middle = rng.normal(0, 1, (5, 24))
    head = Head(middle, rng.normal(0, 1, 5))

    def draw(count: int, name: str) -> SampleSet:
        labels = rng.integers(0, 5, count)
        features = (middle[labels] + rng.normal(0, 1, (count, 24))).astype(np.float32)
        return SampleSet(name, None, features, labels)

    train, known, far = draw(700, "train"), draw(90, "known"), draw(60, "far")
    ours = score_detectors(known, [], [far], choose_detectors([]), train, head)[1]
    theirs = score_detectors(known, [], [far], choose_detectors([], library()), train, head)[1]
    assert {"knn", "mahalanobis", "vim", "energy"} <= set(ON_CARD)
    for name, one in ours.items():
        np.testing.assert_allclose(theirs[name].known, one.known, atol=1e-6, rtol=1e-6, err_msg=name)
        np.testing.assert_allclose(theirs[name].unknown["far"], one.unknown["far"], atol=1e-6, rtol=1e-6, err_msg=name)
        assert theirs[name].known.dtype == np.float64


def test_a_value_that_is_not_finite_is_refused_with_its_row_on_a_card_too() -> None:
    features = np.zeros((4, 2), np.float32)
    features[3, 1] = np.nan
    with pytest.raises(InvalidInput, match="row 3 of features holds a value that is not finite"):
        list(SampleSet("x", None, features).parts("features", arrays=CupyLibrary(Stand(), 0)))


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "cuda:-1", ""])
def test_a_device_that_is_none_is_refused(device: str) -> None:
    with pytest.raises(InvalidInput, match="--device is 'cpu', 'cuda' or 'cuda:1', not"):
        open_library(device)


def test_without_a_library_the_line_that_installs_one_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(module: str) -> Any:
        raise ImportError(module)

    monkeypatch.setattr(array_library, "find_spec", lambda _: None)
    monkeypatch.setattr("openfield.lazy.import_module", fail)
    with pytest.raises(MissingExtra, match=r"--device cuda needs .*\[cuda\]"):
        open_library("cuda")


def test_without_a_card_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Torch:
        class cuda:  # noqa: N801 - PyTorch's name
            is_available = staticmethod(lambda: False)
            device_count = staticmethod(lambda: 0)

    monkeypatch.setattr(array_library, "find_spec", lambda name: name == "torch" or None)
    monkeypatch.setattr(array_library, "import_module", lambda _: Torch)
    with pytest.raises(InvalidInput, match=r"No NVIDIA card can be used here \(none was found\)"):
        open_library("cuda:1")


def test_a_card_without_room_is_said_in_a_line_and_other_errors_are_not() -> None:
    assert "memory is full" in str(say_full(RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")))
    assert say_full(RuntimeError("shapes do not fit")) is None
