"""Entries of a table in the two oldest protocols of pickles, read by one pattern each.

The fast lane of `pickles` for protocols 0 (text) and 1, as `records` is for the later ones: 1 µs an entry instead of 5.
"""

from __future__ import annotations

import re

import numpy as np

from openfield.objectives.records import INT4, Bytes, Rows, Stretch, narrow
from openfield.objectives.scalars import Ints, Scalars

_NUMBER = rb"(?:I(?=-?[0-9]+\n)|L)(-?(?:0|[1-9][0-9]{0,17}))L?\n"
_TEXT = re.compile(_NUMBER * 3 + rb"t(?:p([0-9]{1,10})\n)?" + _NUMBER + rb"s\(")
"""From behind the mark that opens a key to behind the mark that opens the next; `00` and `01` are truth values."""
_INTEGER = rb"(K.|M..|J....)"
_BINARY = re.compile(rb"\(" + _INTEGER * 3 + rb"t(q.|r....)?" + _INTEGER + rb"(?:u\((?=\())?", re.DOTALL)
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
    obs, action, next_obs, counts = (narrow(read(list(columns[part][:size]))) for part in (0, 1, 2, 4))
    return Stretch(Rows(obs, action, next_obs, counts), found[size - 1].end())


def _from_digits(column: list[bytes]) -> Ints:
    return np.array(column, "S20").astype(np.int64)


def _from_bytes(column: list[bytes]) -> Ints:
    """Opcodes with their arguments, each in five bytes, zeros behind shorter ones."""
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
