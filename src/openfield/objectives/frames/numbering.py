"""Image codes numbered in the order they first appear, through the disk: the numbers of `frames.index_words`.

Under `episode_files`. Codes come in batches, each code once a batch; equal ones of all batches meet in parts by code,
then all are put in the order of their first appearance and numbered, then in the order they came.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import DTypeLike

from openfield.objectives.outofcore.joins import mixed
from openfield.objectives.outofcore.partitions import PART, Parts
from openfield.objectives.outofcore.spill import BookSpill
from openfield.objectives.tables.codes import CodeBook, rank
from openfield.objectives.tables.histograms import Array

_NUMBER = np.dtype([("at", "<i8"), ("number", "<i8")])


class Numbering:
    """Codes put aside in the order they come; a place is a code's position in that order."""

    def __init__(self, width: int, start: int, part: int = PART) -> None:
        self.inputs = 0
        """How many codes were used in a transition, once all are numbered."""
        self._width, self._start, self._part = width, start, part
        self._codes = Parts(_code("key", width), "key", part)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._codes.__exit__(kind, error, trace)

    def add(self, words: Array, used: Array) -> None:
        """Put the codes of a batch aside, and whether each is used in a transition of it."""
        records = self._codes.empty(len(words))
        records["key"], records["words"], records["used"] = mixed(words), words, used
        records["at"] = self._codes.size + np.arange(len(words))
        self._codes.add(records)

    def numbers(self, book: BookSpill) -> Iterator[Array]:
        """The number of every code put aside, in that order, a part at a time; each code goes into the book once."""
        with Parts(_NUMBER, "at", self._part) as places:
            with Parts(_code("first", self._width), "first", self._part) as codes:
                for records in self._codes.in_parts():
                    codes.add(_with_first(codes.empty(len(records)), records))
                self._put_numbers(codes, places, book)
            for found in places.in_parts():
                yield found["number"][np.argsort(found["at"])]

    def _put_numbers(self, codes: Parts, places: Parts, book: BookSpill) -> None:
        following = self._start
        for records in codes.in_parts():
            firsts, rise = np.unique(records["first"], return_inverse=True)
            found = places.empty(len(records))
            found["at"], found["number"] = records["at"], following + rise.reshape(-1)
            places.add(found)
            new = records["at"] == records["first"]
            book.add(CodeBook(records["words"][new], found["number"][new], found["number"][new]))
            self.inputs += int(np.count_nonzero(records["used"][new]))
            following += len(firsts)


def _with_first(result: Array, records: Array) -> Array:
    """The same codes with the place where each came first, and whether it is used anywhere."""
    ranks, size = rank(records["words"])
    first = np.full(size, np.iinfo(np.int64).max)
    np.minimum.at(first, ranks, records["at"])
    used = np.zeros(size, bool)
    used[ranks[records["used"]]] = True
    result["first"], result["used"] = first[ranks], used[ranks]
    result["at"], result["words"] = records["at"], records["words"]
    return result


def _code(key: str, width: int) -> DTypeLike:
    kind = "<u8" if key == "key" else "<i8"
    return np.dtype([(key, kind), ("at", "<i8"), ("used", "?"), ("words", "<u8", (width,))])
