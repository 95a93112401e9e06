"""Entries in the oldest protocol of pickles, which is text, read by patterns.

The fast lane of `pickles` for protocol 0, as `records` and `books` are for the later ones: 0.7 µs an entry, not 5.
"""

from __future__ import annotations

import re

import numpy as np

from openfield.objectives.pickle.bulk_reader import Codes, Rows, Stretch
from openfield.objectives.pickle.number_forms import Bytes, Ints, as_column, narrow
from openfield.objectives.pickle.scalars import ABSENT, Scalars
from openfield.objectives.tables.histograms import Array

SURE_DIGITS = 18
"""A number of so many characters fits into 64 bits."""

_DIGITS = rb"-?(?:0|[1-9][0-9]{0,617})"
_NUMBER = rb"(?:I" + _DIGITS + rb"|L" + _DIGITS + rb"L?)\n"
_REAL = rb"F-?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?(?:e[+-]?[0-9]{1,5})?|inf|nan)\n"
_ENTRIES = re.compile(rb"(?:" + _NUMBER * 3 + rb"t(?:p[0-9]{1,10}\n)?(?:" + _NUMBER + rb"|" + _REAL + rb")s\()*+")
"""From behind the mark that opens a key to behind the mark that opens the next; `00` and `01` are truth values."""
_CODES = re.compile(rb"(?:(?:" + _NUMBER + rb"){2}s)*+")


def is_text(start: bytes) -> bool:
    """Whether a pickle that begins so is one of protocol 0."""
    return _BEGINS_TEXT.match(start) is not None


_DEFAULT = rb"\((?:c(?:__builtin__\n(?:int|long)|builtins\nint)\n)?tR"
_BEGINS_TEXT = re.compile(
    rb"\(?(?:\(d|ccollections\ndefaultdict\n(?:p|" + _DEFAULT + rb"\((?:d|(?:" + _NUMBER + rb"){3}t[pILF])))"
)
"""Where nothing is put, protocol 1 begins in the same way; its first key may even begin with a number in digits."""


def read_text(view: Bytes, at: int, scalars: Scalars) -> Stretch | None:
    """As `records.read_records`, for entries of protocol 0, from behind the mark that opens a key."""
    raw = _matching(_ENTRIES, view, at)
    # Without the letters a text of numbers remains, five for each entry: a key that is not put has ABSENT for its memo.
    text = raw.replace(b"\ntp", b"\n").replace(b"\nt", b"\n%d\n" % ABSENT)
    words = text.translate(None, b"ILFs(").split()
    size = _follow_puts(_integers(words[3::5]), scalars)
    if not size:
        return None
    counts = as_column([float(word) for word in words[4::5]]) if b"F" in raw else _integers(words[4::5])
    columns = (*(_integers(words[part::5]) for part in range(3)), counts)
    end = len(raw) if 5 * size == len(words) else [match.end() for match in re.finditer(rb"s\(", raw)][size - 1]
    return Stretch(Rows(*(_narrowed(column[:size]) for column in columns)), at + end)


def read_text_codes(view: Bytes, at: int, scalars: Scalars) -> Stretch | None:
    """As `books.read_codes`, for entries of protocol 0."""
    raw = _matching(_CODES, view, at)
    words = raw.translate(None, b"ILs").split()
    return Stretch(Codes(_integers(words[::2]), _integers(words[1::2])), at + len(raw)) if words else None


def _matching(pattern: re.Pattern[bytes], view: Bytes, at: int) -> bytes:
    match = pattern.match(view, at)  # type: ignore[call-overload]
    return view[at : match.end()].tobytes()


def _integers(words: list[bytes]) -> Array:
    if max(map(len, words), default=0) <= SURE_DIGITS:
        return np.array(words, f"S{SURE_DIGITS}").astype(np.int64)
    return as_column([int(word) for word in words])


def _narrowed(column: Array) -> Array:
    return narrow(column) if column.dtype == np.int64 else column


def _follow_puts(numbers: Ints, scalars: Scalars) -> int:
    """Follow the memo numbers of keys as long as they rise, and say how far that is."""
    put = np.flatnonzero(numbers != ABSENT)
    falls = np.flatnonzero(np.diff(numbers[put], prepend=scalars.top) <= 0)
    rising = int(falls[0]) if len(falls) else len(put)
    if rising:
        scalars.puts, scalars.top = scalars.puts + rising, int(numbers[put[rising - 1]])
    return int(put[rising]) if rising < len(put) else len(numbers)
