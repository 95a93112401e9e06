"""Reads pickles of the original client without running anything in them: mappings, sequences, numbers and arrays.

Used by `keeping.py`, and only where the user says so. A pickle may name any function to be called; here the few that
rebuild arrays are known, and every other name is refused before anything happens.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from openfield.errors import InvalidInput

MOST_BYTES = 4 << 30
KNOWN = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy.core.numeric", "_frombuffer"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy._core.numeric", "_frombuffer"),
    ("collections", "OrderedDict"),
    ("_codecs", "encode"),
}
"""What arrays and ordered mappings are rebuilt by, in old and new versions of NumPy."""


def read_old_pickle(path: Path) -> Any:
    """What a pickle of plain values and arrays holds.

    Raises:
        InvalidInput: It names anything else, is cut short, or is no pickle.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InvalidInput(f"{path} is larger than {MOST_BYTES >> 30} GB.")
        with path.open("rb") as file:
            return _Reader(file, encoding="latin-1").load()
    except InvalidInput as error:
        raise InvalidInput(f"{path} is left alone: {error}") from None
    except Exception as error:  # damaged pickles fail in every way there is
        raise InvalidInput(f"{path} cannot be read as a pickle: {type(error).__name__}.") from None


class _Reader(pickle.Unpickler):
    """An unpickler that knows a few names."""

    def find_class(self, module: str, name: str) -> Any:
        """The function behind a name, if it is one that rebuilds arrays."""
        if (module, name) not in KNOWN:
            raise InvalidInput(f"it wants to call {module[:60]}.{name[:60]}.")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)

    def persistent_load(self, pid: Any) -> Any:
        """Refuses: nothing outside the file is read."""
        raise InvalidInput("it refers to something outside itself.")
