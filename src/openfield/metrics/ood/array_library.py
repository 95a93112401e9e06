"""The arrays that detectors are computed with: NumPy's, or those of PyTorch or CuPy on a card.

Detectors that run on a card are written once, with functions that all three libraries have under one name (`amax`,
`clip`, `exp`, `sqrt`, `linalg.eigh`). What differs is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openfield.card import count_cards, read_card
from openfield.errors import InvalidInput
from openfield.lazy import import_extra

BLOCK = 64
"""Values of a block in the search for the k-th largest."""


class ArrayLibrary:
    """NumPy, and any library with its interface."""

    scale = 1
    """How many times as many values are worked on at a time as with NumPy."""

    def __init__(self, module: Any = np) -> None:
        self.module = module

    def load(self, table: Any, dtype: str = "float64") -> Any:
        """Return an array of this library; `table` may be one of NumPy's."""
        return self.module.asarray(table, dtype=dtype)

    def read(self, array: Any) -> NDArray[np.float64]:
        """Return an array as one of NumPy's, in double precision."""
        return np.asarray(array, dtype=np.float64)

    def zeros(self, shape: int | Sequence[int], dtype: str = "float64") -> Any:
        """Return an array of zeros."""
        return self.module.zeros(shape, dtype=dtype)

    def take_largest(self, table: Any, k: int) -> Any:
        """Return the k largest values of every row, or all if there are fewer, in any order.

        They lie in the k blocks of a row whose largest values are largest, so that only these are searched: a third of
        the time in rows of 100,000.
        """
        xp = self.module
        rows, width = table.shape
        count = width // BLOCK
        if count > 2 * k:
            blocks = table[:, : count * BLOCK].reshape(rows, count, BLOCK)
            chosen = xp.argpartition(blocks.max(axis=2), -k, axis=1)[:, -k:, None]
            nearest = xp.take_along_axis(blocks, chosen, axis=1).reshape(rows, -1)
            table = xp.concatenate([nearest, table[:, count * BLOCK :]], axis=1)
        return table if table.shape[1] <= k else xp.partition(table, -k, axis=1)[:, -k:]

    def add_by_class(self, sums: Any, values: Any, classes: NDArray[Any]) -> None:
        """Add rows of values to the rows of sums that their classes name."""
        order = np.argsort(classes, kind="stable")
        found, first = np.unique(classes[order], return_index=True)
        if len(found):
            sums[found] += np.add.reduceat(values[order], first, axis=0)


class CupyLibrary(ArrayLibrary):
    """CuPy, on one card."""

    scale = 16

    def __init__(self, module: Any, card: int) -> None:
        super().__init__(module)
        module.cuda.Device(card).use()

    def load(self, table: Any, dtype: str = "float64") -> Any:
        """Return an array on the card; what is single is copied as it is."""
        return self.module.asarray(_shrink(table)).astype(dtype, copy=False)

    def read(self, array: Any) -> NDArray[np.float64]:
        """Return an array as one of NumPy's, in double precision."""
        return np.asarray(self.module.asnumpy(array), dtype=np.float64)

    def add_by_class(self, sums: Any, values: Any, classes: NDArray[Any]) -> None:
        """Add rows of values to the rows of sums that their classes name."""
        self.module.add.at(sums, self.module.asarray(classes), values)


class TorchLibrary(ArrayLibrary):
    """PyTorch, on one card."""

    scale = 16

    def __init__(self, module: Any, device: str) -> None:
        super().__init__(module)
        self._device = module.device(device)

    def load(self, table: Any, dtype: str = "float64") -> Any:
        """Return an array on the card; what is single is copied as it is."""
        if not isinstance(table, self.module.Tensor):
            table = self.module.from_numpy(_shrink(table)).to(self._device)
        return table.to(getattr(self.module, dtype))

    def read(self, array: Any) -> NDArray[np.float64]:
        """Return an array as one of NumPy's, in double precision."""
        return np.asarray(array.cpu().numpy(), dtype=np.float64)

    def zeros(self, shape: int | Sequence[int], dtype: str = "float64") -> Any:
        """Return an array of zeros."""
        return self.module.zeros(shape, dtype=getattr(self.module, dtype), device=self._device)

    def take_largest(self, table: Any, k: int) -> Any:
        """Return the k largest values of every row, or all if there are fewer, in any order."""
        return table if table.shape[1] <= k else table.topk(k, dim=1, sorted=False).values

    def add_by_class(self, sums: Any, values: Any, classes: NDArray[Any]) -> None:
        """Add rows of values to the rows of sums that their classes name."""
        sums.index_add_(0, self.module.from_numpy(classes).to(self._device), values)


NUMPY = ArrayLibrary()


def open_library(device: str) -> ArrayLibrary:
    """Return the arrays of a device: `cpu`, or a card such as `cuda` or `cuda:1`, with PyTorch or else CuPy.

    Raises:
        InvalidInput: It does not name a device, or one that this machine lacks.
        MissingExtra: Neither library is installed.
    """
    if device == "cpu":
        return NUMPY
    card = read_card(device, "--device")
    if find_spec("torch") is not None:
        torch = import_module("torch")
        if torch.cuda.is_available() or find_spec("cupy") is None:
            count_cards(torch.cuda.device_count, card, "--device")
            return TorchLibrary(torch, f"cuda:{card}")
    cupy = import_extra("cupy", "cuda", f"--device {device}")
    count_cards(cupy.cuda.runtime.getDeviceCount, card, "--device")
    return CupyLibrary(cupy, card)


def say_full(error: Exception) -> InvalidInput | None:
    """Return what to say if a card had no room left; None for any other error."""
    if "out of memory" not in str(error).lower():
        return None
    return InvalidInput("The card's memory is full. Score fewer training samples, or leave --device out.")


def _shrink(table: Any) -> Any:
    """Return a table that can be copied to a card: single precision where that loses nothing, and writable."""
    small = getattr(table, "dtype", None) in (np.dtype(np.float32), np.dtype(np.float16))
    return np.array(table, dtype=np.float32 if small else np.float64) if isinstance(table, np.ndarray) else table
