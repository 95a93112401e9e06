"""NumPy numbers in pickles: the five names they need, what their bytes mean, and where the memo keeps them.

Under `opcodes` and `records`. A name is a label here and never the object it names.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from typing import Any, NamedTuple

import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.pickle.memo_spill import Kept
from openfield.objectives.pickle.number_forms import BYTE, FRACTION, UNSIGNED, WHOLE, Flags, Forms, Ints

ABSENT = -1
MOST_KEPT = 1 << 16
"""Numbers of the memo that are kept in memory; those put before them lie on disk."""
MOST_KINDS = 32
"""Kinds of numbers that the memo may hold; ten are written, in two byte orders."""


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
    """The number behind a NumPy scalar: a kind and its bytes."""
    if len(arguments) != 2 or not isinstance(arguments[0], DType) or not isinstance(arguments[1], bytes):
        raise Refused("a NumPy number of an unknown form")
    kind, raw = arguments
    if not kind.order:
        raise Refused("a NumPy number before its byte order is known")
    form, swapped = KINDS[kind.kind], kind.order == ">"
    if len(raw) != form.itemsize:
        raise Refused(f"a NumPy number of {len(raw)} bytes where {form.itemsize} belong")
    if form.kind != "f":
        return int.from_bytes(raw, "big" if swapped else "little", signed=form.kind == "i")
    value: float = np.frombuffer(raw, form.newbyteorder(kind.order))[0].item()
    return value


def make_dtype(arguments: tuple[Any, ...]) -> DType:
    """The kind of number that a dtype names, in the one form in which NumPy writes it."""
    kind, *flags = arguments or (None,)
    if not isinstance(kind, str) or kind not in KINDS:
        raise Refused(f"NumPy numbers of kind {shown(kind)} are not read, only {', '.join(KINDS)}")
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
        self.kind_keys: list[int] = []
        """The memo numbers of all kinds that are read in bulk, rising."""
        self.kinds: list[np.dtype[Any]] = []
        self._keys = np.empty(1 << 10, np.int64)
        self._values = np.empty(1 << 10, np.int64)
        self._forms = np.empty(1 << 10, np.int8)
        self._size = 0
        self._kept = Kept()
        self._first = 0
        """The lowest memo number that may be in memory."""

    def learn(self, kind: DType) -> None:
        """A kind of number whose byte order is known is in the memo."""
        if len(self.kinds) == MOST_KINDS:
            raise Refused(f"more than {MOST_KINDS} kinds of NumPy numbers; writers spell each once")
        form, at = KINDS[kind.kind], bisect_left(self.kind_keys, kind.key)
        self.kind_keys.insert(at, kind.key)
        self.kinds.insert(at, form.newbyteorder(">") if kind.order == ">" else form)

    def learn_function(self, key: int) -> None:
        """The function that makes NumPy numbers is in the memo."""
        if self.function != ABSENT:
            raise Refused("a second name for what makes NumPy numbers; writers spell each once")
        self.function = key

    def kind_of(self, key: int | None) -> np.dtype[Any] | None:
        """The kind of number that the memo has under a number, if it has one there."""
        return dict(zip(self.kind_keys, self.kinds, strict=True)).get(ABSENT if key is None else key)

    def add(self, key: int, value: float | bytes) -> None:
        """Keep one number that NumPy made, so that it has 64 bits at most, or one byte."""
        if isinstance(value, int):
            bits, form = (value, WHOLE) if value < 1 << 63 else (value - (1 << 64), UNSIGNED)
        elif isinstance(value, float):
            bits, form = struct.unpack("<q", struct.pack("<d", value))[0], FRACTION
        else:
            bits, form = value[0], BYTE
        self._make_room(1)
        at = self._size
        self._keys[at], self._values[at], self._forms[at] = key, bits, form
        self._size = at + 1

    def amend(self, keys: Ints, values: Ints) -> None:
        """Other numbers under memo numbers that are known, which rise."""
        self._values[np.searchsorted(self.keys, keys)] = values

    def extend(self, keys: Ints, values: Ints, forms: Forms | None = None) -> None:
        """Keep many numbers; the keys rise, and are higher than those known."""
        self._make_room(len(keys))
        size = self._size + len(keys)
        self._keys[self._size : size] = keys
        self._values[self._size : size] = values
        self._forms[self._size : size] = WHOLE if forms is None else forms
        self._size = size

    def _make_room(self, more: int) -> None:
        if self._size >= MOST_KEPT:
            self._put_aside()
            self._first, self._size = int(self._keys[self._size - 1]) + 1, 0
        size = self._size + more
        if size > len(self._keys):
            self._keys, self._values, self._forms = (
                _longer(column, self._size, 2 * size) for column in (self._keys, self._values, self._forms)
            )

    def _put_aside(self) -> None:
        try:
            self._kept.add(self.keys, self.values, self._forms[: self._size])
        except OSError as error:
            reason = error.strerror or error
            raise Refused(f"no room for its NumPy numbers on disk: {reason}; TMPDIR may name a larger one") from None

    def forget_after(self, key: int) -> None:
        """Drop the numbers kept under higher memo numbers: those that were read ahead in vain."""
        self._size = int(np.searchsorted(self.keys, key, side="right"))

    @property
    def keys(self) -> Ints:
        """The memo numbers kept, rising."""
        return self._keys[: self._size]

    @property
    def values(self) -> Ints:
        """Their bits."""
        return self._values[: self._size]

    def find(self, key: int) -> int | float | bytes | None:
        """The number or byte behind a memo entry, if it is one."""
        if key < self._first:
            bits, (form,), (known,) = self._kept.find(np.array([key]))
        else:
            at = int(self.keys.searchsorted(key))
            bits, form, known = self._values[at : at + 1], self._forms[at], at < self._size and self._keys[at] == key
        if not known:
            return None
        if form == FRACTION:
            return float(bits.view(np.float64)[0])
        if form == BYTE:
            return bytes([int(bits[0])])
        return int(bits[0] if form == WHOLE else bits.view(np.uint64)[0])

    def find_many(self, keys: Ints) -> tuple[Ints, Forms, Flags]:
        """The bits and forms of the numbers behind memo entries, and which of them are known."""
        old = keys < self._first
        if old.any() or not self._size:
            values, forms, known = self._kept.find(np.where(old, keys, ABSENT))
            if self._size and not old.all():
                values[~old], forms[~old], known[~old] = self._find_here(keys[~old])
            return values, forms, known
        return self._find_here(keys)

    def _find_here(self, keys: Ints) -> tuple[Ints, Forms, Flags]:
        at = np.searchsorted(self.keys, keys).clip(max=self._size - 1)
        return self._values[at], self._forms[at], self._keys[at] == keys

    def close(self) -> None:
        """Give the room on disk back."""
        self._kept.close()


def _longer(column: np.ndarray[Any, Any], filled: int, size: int) -> np.ndarray[Any, Any]:
    """A copy with more room, which takes no memory until it is filled."""
    longer = np.empty(size, column.dtype)
    longer[:filled] = column[:filled]
    return longer
