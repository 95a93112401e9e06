"""The names a pickled table may refer to, and the NumPy numbers they make.

A name is only a label here. It never becomes the object it names.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from openfield.errors import InvalidInput

ABSENT = -1


class Refused(InvalidInput):
    """A pickle that holds anything but a transition table."""


class DType:
    """A pickled NumPy dtype. Its byte order is known once its state was set."""

    __slots__ = ("key", "kind", "order")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.order = ""
        self.key = ABSENT
        """The memo number it was put under."""


class Name(NamedTuple):
    """A global of the allow-list."""

    module: str
    name: str


ALLOWED = {
    Name("numpy.core.multiarray", "scalar"): "scalar",
    Name("numpy._core.multiarray", "scalar"): "scalar",
    Name("numpy", "dtype"): "dtype",
    Name("collections", "defaultdict"): "defaultdict",
    Name("collections", "OrderedDict"): "OrderedDict",
    Name("collections", "Counter"): "Counter",
    Name("builtins", "int"): "int",
}
OLD_NAMES = {Name("__builtin__", "int"): Name("builtins", "int"), Name("__builtin__", "long"): Name("builtins", "int")}
"""Names as protocols 0 to 2 spell them, in Python 2 and 3."""
KINDS = {kind: np.dtype(kind) for kind in ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")}


def allowed_name(module: Any, name: Any, protocol: int) -> Name:
    """Return the name if it is in the allow-list.

    Raises:
        Refused: It is not. Dotted names are not either.
    """
    if isinstance(module, str) and isinstance(name, str):
        found = Name(module, name)
        found = OLD_NAMES.get(found, found) if protocol < 3 else found
        if found in ALLOWED:
            return found
    raise Refused(f"it names {shown(f'{module}.{name}')}, which no transition table needs; nothing was run")


def make_scalar(arguments: tuple[Any, ...]) -> int | float:
    """Return the number behind a NumPy scalar, which is a dtype and its bytes."""
    if len(arguments) != 2 or not isinstance(arguments[0], DType) or not isinstance(arguments[1], bytes):
        raise Refused("a NumPy number of an unknown form")
    kind, raw = arguments
    if not kind.order:
        raise Refused("a NumPy number before its byte order is known")
    form, swapped = KINDS[kind.kind], kind.order == ">"
    if len(raw) != form.itemsize:
        raise Refused(f"a NumPy number of {len(raw)} bytes where {form.itemsize} belong")
    if form.kind == "b" and raw not in (b"\0", b"\1"):
        raise Refused("a NumPy truth value that is neither 0 nor 1")
    if form.kind != "f":
        return int.from_bytes(raw, "big" if swapped else "little", signed=form.kind == "i")
    value: float = np.frombuffer(raw, form.newbyteorder(kind.order))[0].item()
    return value


def make_dtype(arguments: tuple[Any, ...]) -> DType:
    """Return the dtype that is named in the one form in which NumPy writes it."""
    kind, *flags = arguments or (None,)
    if not isinstance(kind, str) or kind not in KINDS:
        raise Refused(f"NumPy numbers of kind {shown(kind)} are not read, only {', '.join(KINDS)}")
    if flags != [0, 1] or not {*map(type, flags)} <= {int, bool}:
        raise Refused(f"NumPy numbers of kind {kind} with flags {shown(flags)}")
    return DType(kind)


def byte_order(kind: str, given: tuple[Any, ...]) -> str:
    """Return the byte order in the state of a dtype, in the one form in which NumPy writes it for numbers."""
    order = given[1] if len(given) == len(_STATE) else None
    if order not in (("|",) if KINDS[kind].itemsize == 1 else ("<", ">")):
        raise Refused(f"an unknown byte order in {shown(given)}")
    for value, usual in zip(given, _STATE, strict=True):
        if usual != "order" and (type(value) is not type(usual) or value != usual):
            raise Refused(f"a state that is not that of a NumPy number: {shown(given)}")
    return str(order)


_STATE = (3, "order", None, None, None, -1, -1, 0)


def shown(value: Any) -> str:
    """Return the repr of a value, cut to forty characters."""
    return repr(value) if len(repr(value)) <= 40 else repr(value)[:37] + "..."
