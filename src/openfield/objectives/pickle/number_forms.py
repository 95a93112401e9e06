"""What the 64 bits of a number read in bulk stand for, and columns made of such numbers.

Under `records` and `memo`: integers stand for themselves, and what is none is marked by a form beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

Ints = np.ndarray[Any, np.dtype[np.int64]]
Forms = np.ndarray[Any, np.dtype[np.int8]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]
Words = np.ndarray[Any, np.dtype[np.uint64]]

WHOLE, FRACTION, UNSIGNED, LARGE, NUMERAL, BYTE = range(6)
"""An int64; the bits of a float64; those of an uint64 beyond int64; the place of a longer integer, or of its digits.

The last is no number but one of the 256 texts of one byte. Python has each of them once, so that writers put it into
the memo where it is met first and refer to it ever after.
"""


def as_column(values: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Numbers as int64 where all fit, float64 if there are fractions, else as Python integers."""
    if float in set(map(type, values)):
        return np.array([float(value) for value in values], np.float64)
    try:
        return np.array(values, np.int64)
    except OverflowError:
        return np.array(values, object)


def column_of(values: Ints, forms: Forms | None, view: Bytes) -> np.ndarray[Any, Any]:
    """The numbers behind bits and forms; `view` is what places of longer integers refer to."""
    if forms is None or not forms.any():
        return narrow(values)
    if (forms <= FRACTION).all():
        return np.where(forms == FRACTION, values.view(np.float64), values.astype(np.float64))
    numbers: list[Any] = values.tolist()
    for at in np.flatnonzero(forms == FRACTION).tolist():
        numbers[at] = float(values[at : at + 1].view(np.float64)[0])
    for at in np.flatnonzero(forms == UNSIGNED).tolist():
        numbers[at] += 1 << 64
    large, raw = np.flatnonzero(forms == LARGE).tolist(), view.tobytes()
    for at, number in zip(large, _long_integers(raw, (numbers[at] for at in large)), strict=True):
        numbers[at] = number
    for at in np.flatnonzero(forms == NUMERAL).tolist():
        numbers[at] = int(raw[numbers[at] : raw.index(b"\n", numbers[at])].rstrip(b"L"))
    return as_column(numbers)


def _long_integers(raw: bytes, places: Iterable[int]) -> Iterable[int]:
    """The integers of which a byte says how long they are, at each of the places."""
    return (int.from_bytes(raw[at + 1 : at + 1 + raw[at]], "little", signed=True) for at in places)


def narrow(values: Ints) -> np.ndarray[Any, Any]:
    """The same numbers in 32 bits if they fit: half the memory of a large table."""
    small = values.astype(np.int32)
    return small if np.array_equal(small, values) else values


def decode(words: Words, kind: np.dtype[Any]) -> tuple[Ints, Forms]:
    """The bits and forms of NumPy numbers of one kind, whose bytes are the first of each word."""
    unused = np.uint64(64 - 8 * kind.itemsize)
    if kind.newbyteorder("<") != kind:
        words = words.byteswap() >> unused
    forms = np.full(len(words), FRACTION if kind.kind == "f" else WHOLE, np.int8)
    if kind.kind == "f":
        short = kind.itemsize == 4
        return (_widened(words) if short else words.view(np.int64)), forms
    if kind.kind == "i":
        return (words << unused).view(np.int64) >> np.int64(unused), forms
    values = ((words << unused) >> unused).view(np.int64)
    forms[values < 0] = UNSIGNED
    return values, forms


def _widened(words: Words) -> Ints:
    with np.errstate(invalid="ignore"):  # a NaN that signals is a NaN all the same
        return words.astype(np.uint32).view(np.float32).astype(np.float64).view(np.int64)
