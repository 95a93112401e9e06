"""Reads predictions, scores and labels from .npy and .npz files, and checks every number.

Before `scoring/`: files in, arrays out.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from openfield.errors import InvalidInput


class Arrays(msgspec.Struct, frozen=True):
    """Predicted classes, the confidence that a sample is known, and true labels; label -1 is unknown."""

    pred: NDArray[Any]
    conf: NDArray[np.float64]
    label: NDArray[np.int64]


def read_named(path: Path) -> Arrays:
    """Read an .npz file with `pred`, `conf` and `label`."""
    found = read_arrays(path)
    if not {"pred", "conf", "label"} <= found.keys():
        raise InvalidInput(f"{path} must hold pred, conf and label; it holds {', '.join(found)}.")
    pred, label = (make_labels(found[name], f"{path}, {name}") for name in ("pred", "label"))
    return Arrays(pred, found["conf"].astype(float), label)


def read_array(path: Path) -> NDArray[Any]:
    """Read the array of an .npy file."""
    found = read_arrays(path)
    if "array" not in found:
        raise InvalidInput(f"{path} holds {', '.join(found)}; an .npy file with one array is wanted.")
    return found["array"]


def read_labels(path: Path) -> NDArray[np.int64]:
    """Read the labels in an .npy file."""
    return make_labels(read_array(path), path)


def read_arrays(path: Path) -> Mapping[str, NDArray[Any]]:
    """Read an .npy file as `array`, or the arrays of an .npz file; every number must be finite."""
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            found = {"array": loaded}
        else:
            with loaded:
                found = {name: loaded[name] for name in loaded.files}
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or 'it is cut short'}.") from None
    except (ValueError, EOFError, zipfile.BadZipFile):
        raise InvalidInput(f"{path} is no .npy or .npz file of numbers.") from None
    for name, array in found.items():
        _check_numbers(path if name == "array" else f"{path}, {name}", array)
    return found


def make_labels(found: NDArray[Any], where: object) -> NDArray[np.int64]:
    """Return labels as whole numbers."""
    labels = np.asarray(found)
    odd = np.flatnonzero(labels != np.floor(labels))
    if labels.ndim != 1 or odd.size:
        flat = labels.ndim == 1
        place = f"row {odd[0]} holds {labels[odd[0]]}" if flat else f"they have the shape {labels.shape}"
        raise InvalidInput(f"{where}: labels must be a flat array of whole numbers, -1 for unknown; {place}.")
    return labels.astype(np.int64)


def _check_numbers(where: object, array: NDArray[Any]) -> None:
    if array.dtype.kind not in "biuf":
        raise InvalidInput(f"{where} holds no numbers.")
    wrong = np.argwhere(~np.isfinite(np.atleast_1d(array)))
    if wrong.size:
        raise InvalidInput(f"{where}: row {wrong[0][0]} holds {np.atleast_1d(array)[tuple(wrong[0])]}.")
