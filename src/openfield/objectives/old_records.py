"""Entries of a table in the two oldest protocols of pickles, read by one pattern each.

The fast lane of `pickles` for protocols 0 (text) and 1, as `records` is for the later ones: 1 µs an entry instead of 5.
"""

from __future__ import annotations

import re
import struct

import numpy as np

from openfield.objectives.forms import Bytes, Ints, as_column, narrow
from openfield.objectives.histograms import Array
from openfield.objectives.records import FLOAT, INT1, INT2, INT4, PUT1, PUT4, Rows, Stretch
from openfield.objectives.scalars import Scalars

LONG_TEXT, FRACTION_TEXT = 0x4C, 0x46
SURE_DIGITS = 18
"""A number of so many characters fits into 64 bits."""
_SHORT = {INT1, INT2, INT4, PUT1, PUT4}

_DIGITS = rb"-?(?:0|[1-9][0-9]{0,99})"
_MARKED = rb"(?:I(?=-?[0-9]+\n)|L)"
_NUMBER = _MARKED + rb"(" + _DIGITS + rb")L?\n"
_REAL = rb"-?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?(?:e[+-]?[0-9]{1,5})?|inf|nan)"
_COUNT = rb"(?:" + _MARKED + rb"(?=[^\n]{1,110}\n)|(?=F))(" + _DIGITS + rb"(?=L?\n)|F" + _REAL + rb"(?=\n))L?\n"
_TEXT = re.compile(_NUMBER * 3 + rb"t(?:p([0-9]{1,10})\n)?" + _COUNT + rb"s\(")
"""From behind the mark that opens a key to behind the mark that opens the next; `00` and `01` are truth values."""
_INTEGER = rb"K.|M..|J....|L" + _DIGITS + rb"L?\n"
_KEY = rb"\(" + (rb"(" + _INTEGER + rb")") * 3 + rb"t(q.|r....)?"
_BINARY = re.compile(_KEY + rb"(" + _INTEGER + rb"|G.{8})(?:u\((?=\())?", re.DOTALL)
"""From the mark that opens a key to behind the count, or to behind the mark of the next batch."""


def read_old(view: Bytes, at: int, scalars: Scalars) -> Stretch | None:
    """As `records.read_records`, for entries of protocol 0 or 1."""
    binary = len(view) > at and view[at] == ord("(")
    found = list(iter((_BINARY if binary else _TEXT).scanner(view, at).match, None))  # type: ignore[attr-defined]
    columns = list(zip(*(match.groups() for match in found), strict=True)) or [()] * 5
    read = _from_bytes if binary else _from_digits
    size = _follow_puts(columns[3], read([put for put in columns[3] if put is not None]), scalars)
    if not size:
        return None
    obs, action, next_obs, counts = (_narrowed(read(list(columns[part][:size]))) for part in (0, 1, 2, 4))
    return Stretch(Rows(obs, action, next_obs, counts), found[size - 1].end())


def _narrowed(column: Array) -> Array:
    return narrow(column) if column.dtype == np.int64 else column


def _from_digits(column: list[bytes]) -> Array:
    """Numbers in text; the opcode is left before fractions."""
    fractions = any(text[0] == FRACTION_TEXT for text in column)
    if not fractions and max(map(len, column), default=0) <= SURE_DIGITS:
        return np.array(column, "S20").astype(np.int64)
    return as_column([float(text[1:]) if text[0] == FRACTION_TEXT else int(text) for text in column])


def _number(raw: bytes) -> int | float:
    """One opcode of protocol 1 with its argument."""
    if raw[0] == LONG_TEXT:
        return int(raw[1:].rstrip(b"L\n"))
    if raw[0] == FLOAT:
        return float(struct.unpack_from(">d", raw, 1)[0])
    return int.from_bytes(raw[1:], "little", signed=raw[0] == INT4)


def _from_bytes(column: list[bytes]) -> Array:
    """Opcodes with their arguments, each in five bytes, zeros behind shorter ones; one by one if they are longer."""
    if not {raw[0] for raw in column} <= _SHORT:
        return as_column([_number(raw) for raw in column])
    raw = np.array(column, "S5").view(np.uint8).reshape(-1, 5)
    values = np.ascontiguousarray(raw[:, 1:]).view("<u4").reshape(-1)
    return np.where(raw[:, 0] == INT4, values.view(np.int32), values).astype(np.int64)


def _follow_puts(put: tuple[bytes | None, ...], numbers: Ints, scalars: Scalars) -> int:
    """Follow the memo numbers of keys as long as they rise, and say how far that is."""
    falls = np.flatnonzero(np.diff(numbers, prepend=scalars.top) <= 0)
    rising = int(falls[0]) if len(falls) else len(numbers)
    size = len(put)
    if rising < len(numbers):
        size = [place for place, number in enumerate(put) if number is not None][rising]
    if rising:
        scalars.puts, scalars.top = scalars.puts + rising, int(numbers[rising - 1])
    return size
