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


class DType:
    """What a pickled NumPy number says about its bytes; their order is known once its state was given."""

    __slots__ = ("key", "kind", "order")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.order = ""
        self.key = ABSENT
        """The memo number it was put under."""


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
}
OLD_NAMES = {Name("__builtin__", "int"): Name("builtins", "int"), Name("__builtin__", "long"): Name("builtins", "int")}
"""The same name as protocols 0 to 2 spell it, from Python 2 and from Python 3."""
KINDS = {kind: np.dtype(kind) for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")}


def allowed_name(module: Any, name: Any, protocol: int) -> Name:
    """The name, if it is one of the allow-list.

    Raises:
        Refused: It is not; dotted names are not either.
    """
    if isinstance(module, str) and isinstance(name, str):
        found = Name(module, name)
        found = OLD_NAMES.get(found, found) if protocol < 3 else found
        if found in ALLOWED:
            return found
    raise Refused(f"it names {shown(f'{module}.{name}')}, which no transition table needs; nothing was run")


def make_scalar(arguments: tuple[Any, ...]) -> int | float:
    """The number behind a NumPy scalar: a kind and its bytes, which Python 2 has as text."""
    if len(arguments) != 2 or not isinstance(arguments[0], DType) or not isinstance(arguments[1], bytes | str):
        raise Refused("a NumPy number of an unknown form")
    kind, raw = arguments
    if not kind.order:
        raise Refused("a NumPy number before its byte order is known")
    raw = raw.encode("ascii") if isinstance(raw, str) else raw
    form = KINDS[kind.kind].newbyteorder(kind.order)
    if len(raw) != form.itemsize:
        raise Refused(f"a NumPy number of {len(raw)} bytes where {form.itemsize} belong")
    value: int | float = np.frombuffer(raw, form)[0].item()
    return value


def make_dtype(arguments: tuple[Any, ...]) -> DType:
    """The kind of number that a dtype names, in the one form in which NumPy writes it."""
    kind, *flags = arguments or (None,)
    if not isinstance(kind, str) or kind not in KINDS:
        raise Refused(f"NumPy numbers of kind {shown(kind)}")
    if flags != [0, 1] or not {*map(type, flags)} <= {int, bool}:
        raise Refused(f"NumPy numbers of kind {kind} with flags {shown(flags)}")
    return DType(kind)


def byte_order(kind: str, given: tuple[Any, ...]) -> str:
    """The byte order in the state of a dtype, in the one form in which NumPy writes it for numbers."""
    order = given[1] if len(given) == len(_STATE) else None
    if order not in (("|",) if KINDS[kind].itemsize == 1 else ("<", ">")):
        raise Refused(f"an unknown byte order in {shown(given)}")
    for value, usual in zip(given, _STATE, strict=True):
        if usual != "order" and (type(value) is not type(usual) or value != usual):
            raise Refused(f"a state that is not that of a NumPy number: {shown(given)}")
    return str(order)


_STATE = (3, "order", None, None, None, -1, -1, 0)


def shown(value: Any) -> str:
    """A value in at most forty characters."""
    return repr(value) if len(repr(value)) <= 40 else repr(value)[:37] + "..."


class Scalars:
    """The memo of a pickle as far as it is numbers: those put into it, and what stands for the making of NumPy's."""

    def __init__(self) -> None:
        self.puts = 0
        """How many memo entries there are."""
        self.top = ABSENT
        """The memo number put last. Writers count upwards; so no entry can be put over another."""
        self.function = ABSENT
        """The memo number of the function that makes NumPy numbers."""
        self.dtype = ABSENT
        """That of the one kind of number that is read in bulk."""
        self._keys = np.empty(1 << 10, np.int64)
        self._values = np.empty(1 << 10, np.int64)
        self._size = 0
        self._large: dict[int, int] = {}

    def learn(self, kind: DType) -> None:
        """A kind of number whose byte order is known is in the memo."""
        if (kind.kind, kind.order) == ("i8", "<"):
            self.dtype = kind.key

    def put(self, key: int) -> None:
        """Another memo entry was made.

        Raises:
            Refused: Its number does not follow those before it.
        """
        if key <= self.top:
            raise Refused(f"it puts memo entry {key} after entry {self.top}; writers count upwards")
        self.puts, self.top = self.puts + 1, key

    def add(self, key: int, value: int) -> None:
        """Keep one number."""
        if -(2**63) <= value < 2**63:
            self.extend(np.array([key]), np.array([value]))
        else:
            self._large[key] = value

    def extend(self, keys: Ints, values: Ints) -> None:
        """Keep many numbers; the keys rise, and are higher than those known."""
        size = self._size + len(keys)
        if size > len(self._keys):
            self._keys = np.resize(self._keys, 2 * size)
            self._values = np.resize(self._values, 2 * size)
        self._keys[self._size : size] = keys
        self._values[self._size : size] = values
        self._size = size

    def forget_after(self, key: int) -> None:
        """Drop the numbers kept under higher memo numbers: those that were read ahead in vain."""
        self._size = int(np.searchsorted(self.keys, key, side="right"))

    @property
    def keys(self) -> Ints:
        """The memo numbers kept, rising."""
        return self._keys[: self._size]

    @property
    def values(self) -> Ints:
        """What they stand for."""
        return self._values[: self._size]

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
