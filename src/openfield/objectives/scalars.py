"""NumPy numbers in pickles: the five names they need, what their bytes mean, and where the memo keeps them.

Under `opcodes` and `records`. A name is a label here and never the object it names.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from openfield.errors import InvalidInput

Ints = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]

ABSENT = -1


class Refused(InvalidInput):
    """A pickle that holds anything but a transition table."""


class DType(NamedTuple):
    """What a pickled NumPy number says about its bytes."""

    kind: str
    order: str = "<"


class Name(NamedTuple):
    """A global of the allow-list. It stands for the object and is never the object."""

    module: str
    name: str


ALLOWED = {
    Name("numpy.core.multiarray", "scalar"): "scalar",
    Name("numpy._core.multiarray", "scalar"): "scalar",
    Name("numpy", "dtype"): "dtype",
    Name("collections", "defaultdict"): "defaultdict",
    Name("builtins", "int"): "int",
    # The same name as protocols 0 to 2 spell it, from Python 2 and from Python 3.
    Name("__builtin__", "int"): "int",
    Name("__builtin__", "long"): "int",
}
KINDS = {kind: np.dtype(kind) for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")}


def allowed_name(module: Any, name: Any) -> Name:
    """The name, if it is one of the allow-list.

    Raises:
        Refused: It is not; dotted names are not either.
    """
    if not isinstance(module, str) or not isinstance(name, str) or Name(module, name) not in ALLOWED:
        raise Refused(f"it names {shown(f'{module}.{name}')}, which no transition table needs; nothing was run")
    return Name(module, name)


def make_scalar(arguments: tuple[Any, ...]) -> int | float:
    """The number behind a NumPy scalar: a kind and its bytes."""
    if len(arguments) != 2 or not isinstance(arguments[0], DType) or not isinstance(arguments[1], bytes):
        raise Refused("a NumPy number of an unknown form")
    kind, raw = arguments
    form = KINDS[kind.kind].newbyteorder(kind.order)
    if len(raw) != form.itemsize:
        raise Refused(f"a NumPy number of {len(raw)} bytes where {form.itemsize} belong")
    value: int | float = np.frombuffer(raw, form)[0].item()
    return value


def make_dtype(arguments: tuple[Any, ...]) -> DType:
    """The kind of number that a dtype names."""
    kind = arguments[0] if arguments else None
    kind = kind.decode("ascii") if isinstance(kind, bytes) else kind
    if not isinstance(kind, str) or kind not in KINDS:
        raise Refused(f"NumPy numbers of kind {shown(kind)}")
    return DType(kind)


def shown(value: Any) -> str:
    """A value in at most forty characters."""
    return repr(value) if len(repr(value)) <= 40 else repr(value)[:37] + "..."


class Scalars:
    """The NumPy numbers a pickle has put into its memo, and the memo numbers that stand for their making."""

    def __init__(self) -> None:
        self.function = -1
        self.dtype = -1
        self._keys = np.empty(1 << 10, np.int64)
        self._values = np.empty(1 << 10, np.int64)
        self._size = 0
        self._large: dict[int, int] = {}

    def learn(self, key: int, kind: tuple[str, str] | None) -> None:
        """Memo entry `key` is the scalar function, or the one kind of number that is read in bulk."""
        if kind is None:
            self.function = key
        elif tuple(kind) == ("i8", "<"):
            self.dtype = key

    def add(self, key: int, value: int) -> None:
        """Keep one number."""
        if key <= self.last or not -(2**63) <= value < 2**63:
            self._large[key] = value
        else:
            self.extend(np.array([key]), np.array([value]))

    def extend(self, keys: Ints, values: Ints) -> None:
        """Keep many numbers; the keys rise, and those known already are passed over."""
        fresh = int(np.searchsorted(keys, self.last, side="right"))
        keys, values = keys[fresh:], values[fresh:]
        size = self._size + len(keys)
        if size > len(self._keys):
            self._keys = np.resize(self._keys, 2 * size)
            self._values = np.resize(self._values, 2 * size)
        self._keys[self._size : size] = keys
        self._values[self._size : size] = values
        self._size = size

    @property
    def keys(self) -> Ints:
        """The memo numbers kept, rising."""
        return self._keys[: self._size]

    @property
    def values(self) -> Ints:
        """What they stand for."""
        return self._values[: self._size]

    @property
    def last(self) -> int:
        """The highest memo number kept in order."""
        return int(self._keys[self._size - 1]) if self._size else ABSENT

    def find(self, key: int) -> int | None:
        """The number behind a memo entry, if it is one."""
        if key in self._large:
            return self._large[key]
        values, known = self.find_many(np.array([key]))
        return int(values[0]) if known[0] else None

    def find_many(self, keys: Ints) -> tuple[Ints, Flags]:
        """The numbers behind memo entries, and which of them are known."""
        if not self._size:
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), bool)
        at = np.searchsorted(self.keys, keys).clip(max=self._size - 1)
        return self._values[at], self._keys[at] == keys
