"""Sets of samples on disk or in memory: logits, features and labels, read a part at a time.

An .npy file, and an .npz file that is not compressed, are mapped and not loaded: sets may be larger than memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openfield.errors import InvalidInput
from openfield.files.arrays import open_arrays
from openfield.metrics.ood.array_library import NUMPY, ArrayLibrary

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
UNKNOWN = -1
"""The label of a sample that belongs to no known class."""
MAX_LABEL = 1 << 31
PART = 1 << 22
"""Values of one array that are worked on at a time: 32 MB in double precision."""
ALIASES = {
    "logits": ("logits", "logit"),
    "features": ("features", "feature", "feats", "feat"),
    "labels": ("labels", "label", "targets", "gt"),
    "conf": ("conf", "scores"),
    "pred": ("pred", "preds"),
}
"""The arrays of a set, and the names that files have for each."""
WEIGHT, BIAS = ("weight", "w", "W"), ("bias", "b", "B")
CONVERT = {
    ".pt": "torch.load('{0}', map_location='cpu')",
    ".pth": "torch.load('{0}', map_location='cpu')",
    ".pkl": "pickle.load(open('{0}', 'rb'))",
    ".pickle": "pickle.load(open('{0}', 'rb'))",
    ".mat": "scipy.io.loadmat('{0}')",
    ".h5": "h5py.File('{0}')",
    ".hdf5": "h5py.File('{0}')",
    ".safetensors": "safetensors.numpy.load_file('{0}')",
}
"""How files of other programs are opened. Some of them hold code that runs when they are opened, so users do that."""


@dataclass(frozen=True)
class SampleSet:
    """One set of samples: an array is None where the set does not have it."""

    name: str
    logits: NDArray[Any] | None = None
    features: NDArray[Any] | None = None
    labels: Labels | None = None
    conf: NDArray[Any] | None = None
    pred: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        """Check that the arrays have a row for each sample."""
        for name, array in self.arrays.items():
            if array.dtype.kind not in "biuf":
                raise InvalidInput(f"{self.name}: {name} holds no numbers.")
            flat = name in ("labels", "conf", "pred")
            if array.ndim != (1 if flat else 2) or (not flat and not array.shape[1]):
                wanted = "a flat array" if flat else "a table of samples x columns"
                raise InvalidInput(f"{self.name}: {name} must be {wanted}, not of shape {array.shape}.")
        lengths = {name: len(array) for name, array in self.arrays.items()}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{count:,} {name}" for name, count in lengths.items())
            raise InvalidInput(f"{self.name}: every array has a row for each sample, but there are {listed}.")

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that the set has, by name."""
        return {name: array for name in ALIASES if (array := getattr(self, name)) is not None}

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values()), ()))

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Which samples belong to a known class; all, if there are no labels."""
        return np.ones(len(self), bool) if self.labels is None else self.labels >= 0

    @property
    def width(self) -> int:
        """How many features a sample has."""
        return int(self.take("features").shape[1])

    def take(self, name: str) -> NDArray[Any]:
        """Return an array as it is on disk.

        Raises:
            InvalidInput: The set does not have it.
        """
        array: NDArray[Any] | None = getattr(self, name)
        if array is None or not len(array):
            raise InvalidInput(f"{self.name} has no {name}.")
        return array

    def parts(self, *names: str, rows: int = 0, arrays: ArrayLibrary = NUMPY) -> Iterator[tuple[slice, list[Any]]]:
        """Yield arrays of this set part by part, in double precision; None stands for one that the set lacks.

        Args:
            names: The arrays.
            rows: Rows of a part; 0 takes as many as `PART` allows.
            arrays: The library whose arrays tables are; labels are always NumPy's.

        Raises:
            InvalidInput: A value is not finite; the message names its row.
        """
        tables = [getattr(self, name) for name in names]
        width = max([each.shape[1] for each in tables if each is not None and each.ndim == 2], default=1)
        size = rows or max(arrays.scale * PART // width, 1)
        for start in range(0, len(self), size):
            at = slice(start, min(start + size, len(self)))
            yield (
                at,
                [
                    None if each is None else self._read(name, each, at, arrays)
                    for name, each in zip(names, tables, strict=True)
                ],
            )

    def _read(self, name: str, array: NDArray[Any], at: slice, arrays: ArrayLibrary) -> Any:
        if name == "labels":
            return np.asarray(array[at], dtype=np.int64)
        part = arrays.load(array[at])
        if not arrays.module.isfinite(part).all():
            row = int(np.argwhere(~np.isfinite(np.asarray(array[at], dtype=float)))[0][0])
            raise InvalidInput(f"{self.name}: row {at.start + row} of {name} holds a value that is not finite.")
        return part


@dataclass(frozen=True)
class Head:
    """The last layer of a network: `logits = features @ weight.T + bias`."""

    weight: Any
    bias: Any

    def __call__(self, features: Any) -> Any:
        """Return the logits of features."""
        return features @ self.weight.T + self.bias

    def load(self, arrays: ArrayLibrary) -> Head:
        """Return the same layer in the arrays of a library."""
        return Head(arrays.load(self.weight), arrays.load(self.bias))


def read_samples(path: Path, name: str = "") -> SampleSet:
    """Read a set: an .npz file with named arrays, an .npy file of logits, or a folder of .npy files.

    Raises:
        InvalidInput: It cannot be read, holds none of the arrays, or they do not fit each other.
    """
    name = name or path.name
    if path.is_dir():
        files = {file.stem: file for file in sorted(path.glob("*.npy"))}
        found: Mapping[str, NDArray[Any]] = {stem: _open(file)["array"] for stem, file in files.items()}
    else:
        opened = _open(path)
        found = {"logits": opened["array"]} if set(opened) == {"array"} else opened
    chosen = {
        field: array for field, names in ALIASES.items() for each in names if (array := found.get(each)) is not None
    }
    if not chosen:
        held = ", ".join(found) or "no .npy file"
        raise InvalidInput(f"{path} holds {held}; wanted are arrays called {', '.join(ALIASES)}.")
    if "labels" in chosen:
        chosen["labels"] = make_labels(chosen["labels"], name)
    return SampleSet(name, **chosen)


def read_last_layer(path: Path, features: int) -> Head:
    """Read the last layer of a network from an .npz file with `weight` (classes x features) and `bias`.

    Args:
        path: The file.
        features: How many features a sample has.
    """
    found = _open(path)
    weight, bias = (next((found[name] for name in names if name in found), None) for names in (WEIGHT, BIAS))
    if weight is None or bias is None:
        raise InvalidInput(
            f"{path} holds {', '.join(found)}; wanted are weight (classes x features) and bias (classes)."
        )
    weight, bias = np.asarray(weight, dtype=float), np.asarray(bias, dtype=float)
    if weight.shape == (features, len(bias)) != (len(bias), features):
        weight = weight.T
    if bias.ndim != 1 or weight.shape != (len(bias), features):
        raise InvalidInput(f"{path}: weight {weight.shape} and bias {bias.shape} do not fit {features} features.")
    if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
        raise InvalidInput(f"{path} holds a value that is not finite.")
    return Head(weight, bias)


def make_labels(found: NDArray[Any], where: object) -> Labels:
    """Return labels as whole numbers, -1 for all that are negative.

    Raises:
        InvalidInput: They are not a flat array of whole numbers.
    """
    labels = np.asarray(found)
    if labels.ndim != 1 or labels.dtype.kind not in "biuf":
        raise InvalidInput(f"{where}: labels must be a flat array of whole numbers, not of shape {labels.shape}.")
    odd = np.flatnonzero(~np.isfinite(labels) | (labels != np.floor(labels)))
    if odd.size:
        raise InvalidInput(
            f"{where}: labels must be whole numbers, -1 for unknown; row {odd[0]} holds {labels[odd[0]]}."
        )
    if labels.size and np.abs(labels.astype(float)).max() > MAX_LABEL:
        raise InvalidInput(f"{where}: labels must be at most {MAX_LABEL:,}.")
    return np.maximum(labels.astype(np.int64), UNKNOWN)


def _open(path: Path) -> Mapping[str, NDArray[Any]]:
    if path.suffix in CONVERT:
        opened = CONVERT[path.suffix].format(path)
        raise InvalidInput(
            f"{path} may hold code, or needs another program to read. Convert it to arrays yourself: "
            f"d = {opened}; numpy.savez('{path.stem}.npz', logits=..., features=..., labels=...)"
        )
    return open_arrays(path)
