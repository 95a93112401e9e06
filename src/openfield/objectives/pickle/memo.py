"""The memo of a pickle as far as it is numbers: how many entries it has, and the NumPy numbers among them.

Every NumPy number of a file is in its memo. Most of them lie in a temporary file, so that a pickle that is refused at
its end has taken little memory.
"""

from __future__ import annotations

import struct
import tempfile
from bisect import bisect_left, bisect_right
from typing import Any

import numpy as np

from openfield.objectives.pickle.numpy_scalars import ABSENT, KINDS, DType, Refused

Ints = np.ndarray[Any, np.dtype[np.int64]]
MAX_HELD = 1 << 16
"""Numbers kept in memory; those put before them lie in a temporary file."""
MAX_KINDS = 32
"""Dtypes that the memo may hold; ten are written, in two byte orders."""
BLOCK = 1 << 10
"""Numbers read from the file at once."""
WHOLE, FRACTION, UNSIGNED = range(3)
"""What the 64 bits of a number stand for: int64, float64, uint64 beyond int64."""
_ENTRY = np.dtype([("key", "<i8"), ("bits", "<i8"), ("form", "u1")])


class Memo:
    """The numbers in the memo, and the keys of what makes NumPy numbers."""

    def __init__(self) -> None:
        self.puts = 0
        """How many memo entries there are."""
        self.top = ABSENT
        """The memo number put last. Writers count upwards, so no entry can replace another."""
        self.function = ABSENT
        """The memo number of the function that makes NumPy numbers."""
        self.kind_keys: list[int] = []
        """The memo numbers of all dtypes whose byte order is known, rising."""
        self.kinds: list[np.dtype[Any]] = []
        self._single: dict[int, float] = {}
        self._held: list[np.ndarray[Any, Any]] = []
        self._size = 0
        self._firsts: list[int] = []
        """The first memo number of every block in the file."""
        self._file: Any = None

    def learn(self, kind: DType) -> None:
        """Note that a dtype whose byte order is known is in the memo."""
        if len(self.kinds) == MAX_KINDS:
            raise Refused(f"more than {MAX_KINDS} kinds of NumPy numbers; writers spell each once")
        form, at = KINDS[kind.kind], bisect_left(self.kind_keys, kind.key)
        self.kind_keys.insert(at, kind.key)
        self.kinds.insert(at, form.newbyteorder(">") if kind.order == ">" else form)

    def learn_function(self, key: int) -> None:
        """Note that the function that makes NumPy numbers is in the memo."""
        if self.function != ABSENT:
            raise Refused("a second name for what makes NumPy numbers; writers spell each once")
        self.function = key

    def kind_of(self, key: int | None) -> np.dtype[Any] | None:
        """Return the dtype under a memo number, if there is one."""
        return dict(zip(self.kind_keys, self.kinds, strict=True)).get(ABSENT if key is None else key)

    def add(self, key: int, value: float) -> None:
        """Keep one number that NumPy made."""
        self._single[key] = value
        if len(self._single) >= BLOCK:
            self._hold_singles()

    def extend(self, keys: Ints, bits: Ints, forms: Any = WHOLE) -> None:
        """Keep many numbers. The keys rise and are higher than those known."""
        self._hold_singles()
        entries = np.empty(len(keys), _ENTRY)
        entries["key"], entries["bits"], entries["form"] = keys, bits, forms
        self._hold(entries)

    def find(self, key: int) -> int | float | None:
        """Return the number under a memo number, if it is one."""
        if key in self._single:
            return self._single[key]
        for entries in reversed(self._held):
            if entries["key"][0] <= key:
                return _value_in(entries, key)
        block = bisect_right(self._firsts, key) - 1
        if block < 0:
            return None
        self._file.seek(block * BLOCK * _ENTRY.itemsize)
        return _value_in(np.frombuffer(self._file.read(BLOCK * _ENTRY.itemsize), _ENTRY), key)

    def close(self) -> None:
        """Remove the temporary file."""
        if self._file is not None:
            self._file.close()

    def _hold_singles(self) -> None:
        if self._single:
            entries = np.empty(len(self._single), _ENTRY)
            entries["key"] = list(self._single)
            entries["bits"], entries["form"] = zip(*map(_encode, self._single.values()), strict=True)
            self._single = {}
            self._hold(entries)

    def _hold(self, entries: np.ndarray[Any, Any]) -> None:
        self._held.append(entries)
        self._size += len(entries)
        if self._size > MAX_HELD:
            self._spill()

    def _spill(self) -> None:
        """Move all whole blocks of numbers into the file."""
        entries = np.concatenate(self._held)
        whole = len(entries) // BLOCK * BLOCK
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="openfield-", buffering=0)  # noqa: SIM115
            self._file.seek(0, 2)
            write_whole(self._file, entries[:whole])
        except OSError as error:
            reason = error.strerror or error
            raise Refused(f"no room for its NumPy numbers on disk: {reason}; TMPDIR may name a larger one") from None
        self._firsts += entries["key"][:whole:BLOCK].tolist()
        self._held, self._size = [entries[whole:].copy()] if whole < len(entries) else [], len(entries) - whole


def write_whole(file: Any, array: np.ndarray[Any, Any]) -> None:
    """Write an array to a file without a buffer, which may take less at a time.

    A buffer would try again to write what the disk had no room for when the file is closed.
    """
    left = np.ascontiguousarray(array).view(np.uint8).data
    while left:
        left = left[file.write(left) :]


def _encode(value: float) -> tuple[int, int]:
    """Return the 64 bits of a number and their form."""
    if isinstance(value, int):
        return (value, WHOLE) if value < 1 << 63 else (value - (1 << 64), UNSIGNED)
    return struct.unpack("<q", struct.pack("<d", value))[0], FRACTION


def _value_in(entries: np.ndarray[Any, Any], key: int) -> int | float | None:
    at = int(np.searchsorted(entries["key"], key))
    if at == len(entries) or entries["key"][at] != key:
        return None
    bits, form = int(entries["bits"][at]), entries["form"][at]
    if form == FRACTION:
        value: float = struct.unpack("<d", struct.pack("<q", bits))[0]
        return value
    return bits if form == WHOLE else bits + (1 << 64)
