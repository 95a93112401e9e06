"""Entries of a code book read thousands at a time: codes and indices, one number after the other.

The fast lane of `pickles` for code books, as `records` is for tables. Nothing tells where such an entry ends; so the
length a number would have is found for every byte at once, and a short loop goes from number to number.
"""

from __future__ import annotations

import numpy as np

from openfield.objectives.pickle.bulk_reader import (
    GET1,
    GET4,
    INT1,
    INT2,
    INT4,
    LONG1,
    MARK,
    SETITEMS,
    SPARE,
    Codes,
    Stretch,
    read_atoms,
    read_get,
    read_scalars,
    words_at,
)
from openfield.objectives.pickle.memo import Atoms, follow_memo
from openfield.objectives.pickle.number_forms import Bytes, Ints, column_of
from openfield.objectives.pickle.numerals import INT_TEXT, LONG_TEXT, read_numerals
from openfield.objectives.pickle.scalars import ABSENT, Scalars
from openfield.objectives.tables.histograms import Array

_LENGTHS = np.zeros(256, np.uint16)
_LENGTHS[[INT1, INT2, INT4, GET1, GET4]] = 2, 3, 5, 2, 5


def read_codes(view: Bytes, at: int, scalars: Scalars) -> Stretch | None:
    """As `records.read_records`, for entries of a code book."""
    if len(view) < at + SPARE:
        return None
    words = words_at(view)
    starts = np.array(_walk(_strides(view, at, scalars)), np.int64).reshape(-1, 2) + at
    parts = [read_atoms(view, words, np.ascontiguousarray(column), scalars) for column in starts.T]
    whole = _before_border(starts, parts[0].lengths)
    parts = [part.take(np.arange(whole)) for part in parts]
    size = follow_memo(scalars, parts, np.full(whole, ABSENT))
    if not size:
        return None
    codes, indices = (_column(part, size, view) for part in parts)
    return Stretch(Codes(codes, indices), int(starts[size - 1, 1] + parts[1].lengths[size - 1]))


def _before_border(starts: Ints, lengths: Ints) -> int:
    """How many entries there are before one between whose code and index a batch ends."""
    apart = np.flatnonzero(starts[:, 0] + lengths != starts[:, 1])
    return int(apart[0]) if len(apart) else len(starts)


def _strides(view: Bytes, at: int, scalars: Scalars) -> list[int]:
    """How far it is from each place to behind the number there, or into a batch that begins there; 0 without one."""
    lengths = _lengths(view, at, scalars)
    ends = np.arange(len(lengths)) + lengths
    borders = np.zeros(len(lengths) + SPARE, bool)  # the last number may end up to so many bytes further on
    borders[: len(lengths)] = (view[at:-SPARE] == SETITEMS) & (view[at + 1 : len(view) - SPARE + 1] == MARK)
    lengths[(lengths > 0) & borders[ends]] += 2
    found: list[int] = lengths.tolist()
    return found


def _lengths(view: Bytes, at: int, scalars: Scalars) -> Array:
    """How long the number is that begins at each place; 0 where none does."""
    part, then = view[at:-SPARE], view[at + 1 : len(view) - SPARE + 1]
    lengths = _LENGTHS[part]
    long = np.flatnonzero(part == LONG1)
    lengths[long] = then[long] + np.uint16(2)
    text = np.flatnonzero((part == INT_TEXT) | (part == LONG_TEXT)) + at
    if len(text):
        lengths[text - at] = read_numerals(view, text)[1]
    spelled = _spelled(view, np.flatnonzero((part == GET1) | (part == GET4)) + at, scalars)
    if len(spelled):
        lengths[spelled - at] = read_scalars(view, words_at(view), spelled, scalars)[1]
    return lengths


def _spelled(view: Bytes, asked: Ints, scalars: Scalars) -> Ints:
    """Which of the places that ask for something ask for the function that makes NumPy numbers."""
    if scalars.function == ABSENT:
        return asked[:0]
    found: Ints = asked[read_get(words_at(view), asked)[0] == scalars.function]
    return found


def _walk(strides: list[int]) -> list[int]:
    """Where numbers begin that follow each other from the first byte on, an even number of them."""
    places: list[int] = []
    at, end = 0, len(strides)
    while at < end and strides[at]:
        places.append(at)
        at += strides[at]
    return places[: len(places) // 2 * 2]


def _column(part: Atoms, size: int, view: Bytes) -> Array:
    return column_of(part.values[:size], None if part.forms is None else part.forms[:size], view)
