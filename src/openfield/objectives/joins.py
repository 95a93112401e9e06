"""Two tables that do not fit into memory, compared: the same histogram of common images, bit for bit.

Beside `similarity`, which compares tables in memory. Inputs meet their codes in parts of the indices, images of both
tables meet in parts of the codes; what stays in memory is a part of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path

import numpy as np
from msgspec.structs import replace
from numpy.typing import DTypeLike

from openfield.errors import InvalidInput
from openfield.objectives.checks import check_rows
from openfield.objectives.codes import WORD, CodeBook, make_book
from openfield.objectives.entropy import Inputs
from openfield.objectives.histograms import Array
from openfield.objectives.images import Names
from openfield.objectives.pairs import Met, Pairs, images_of, merge_pairs, original_images_of, pair_up
from openfield.objectives.parquet import count_rows, read_codes, read_columns, read_header
from openfield.objectives.parts import Parts
from openfield.objectives.pickles import Codes, read_pickle
from openfield.objectives.records import Rows
from openfield.objectives.similarity import Similarity, check_thresholds, pair_tables, similarity_of
from openfield.objectives.tables import Meta, is_parquet, load_table, meta_of_name

LARGE_ROWS = 4_000_000
"""Rows of a Parquet table from which it is not read into memory."""
LARGE_BYTES = 1 << 27
"""Bytes of a pickle from which it is not: three million entries as they were published."""
MET = 500_000
"""Images that meet at once."""
_VISIT = np.dtype([("id", "<i8"), ("count", "<f8")])
_Reader = Callable[[Array, Array, CodeBook, Names], Met]


def compare_files(first: Path, second: Path, *, compat: bool = False, inputs: Inputs = "sources") -> Similarity:
    """As `compare` for files; large ones are streamed in bounded memory."""
    return similarity_of(pair_files(first, second, compat=compat, inputs=inputs))


def pair_files(first: Path, second: Path, *, compat: bool = False, inputs: Inputs = "sources") -> Pairs:
    """How often two agents met the same images, from their files; arguments and errors as for `compare`."""
    if not (_is_large(first) or _is_large(second)):
        return pair_tables(load_table(first), load_table(second), compat=compat, inputs=inputs)
    try:
        return stream_pairs(first, second, compat=compat, inputs=inputs)
    except _HugeIds:
        return pair_tables(load_table(first), load_table(second), compat=compat, inputs=inputs)


def stream_pairs(
    first: Path, second: Path, *, compat: bool = False, inputs: Inputs = "sources", part: int = MET
) -> Pairs:
    """As `pair_files`, through the disk; `part` is how many rows are handled at once."""
    check_thresholds(*((str(path), _meta(path)) for path in (first, second)))
    width = max(_code_width(path) for path in (first, second))
    with Parts(_image(width), "key", part) as images:
        sides = _Side(first, images, 0), _Side(second, images, 1)
        for side in sides:
            side.find_images(original_images_of if compat else images_of, inputs, width, part)
        return merge_pairs(chain([pair_up(*(side.rest for side in sides))], map(_pair_part, images.in_parts())))


class _HugeIds(Exception):
    """Ids beyond 64 bits: such tables are small enough for memory."""


class _Side:
    """One of the tables on its way to the images of both."""

    def __init__(self, path: Path, images: Parts, number: int) -> None:
        self.path, self._images, self._number = path, images, number
        self.rest = Met(np.empty((0, 2), np.uint64), np.empty(0), np.empty(0, np.uint8))
        """What is known beside images with codes: buckets, and why images cannot be listed."""

    def find_images(self, read: _Reader, inputs: Inputs, width: int, part: int) -> None:
        """Has every input meet its code, and puts the images aside."""
        with Parts(_VISIT, "id", part) as visits, Parts(_entry(width), "id", part) as book:
            has_book = self._put_aside(visits, book, inputs)
            if not has_book:
                raise InvalidInput(f"{self.path}: no code book; similarity compares image codes.")
            if not visits.size:
                raise InvalidInput(f"{self.path}: no positive counts.")
            for ids, counts, codes in _meet(visits, book, width):
                self._add(read(ids, counts, codes, Names(str(self.path))))

    def _put_aside(self, visits: Parts, book: Parts, inputs: Inputs) -> bool:
        """Reads the file; says whether it has a code book."""
        has_book = False
        for piece in _pieces(self.path):
            if isinstance(piece, CodeBook):
                has_book = True
                records = book.empty(len(piece.indices))
                records["id"], records["words"][:, : piece.words.shape[1]] = piece.indices, piece.words
                book.add(records)
                continue
            columns = [piece.obs, piece.next_obs] if inputs == "all" else [piece.obs]
            for column in columns:
                records = visits.empty(len(column))
                records["id"], records["count"] = column, piece.counts
                visits.add(_summed(records))
        return has_book

    def _add(self, met: Met) -> None:
        records = self._images.empty(len(met.words))
        records["key"], records["words"] = _mixed(met.words), met.words
        records["side"], records["flags"], records["count"] = self._number, met.flags, met.counts
        self._images.add(records)
        self.rest = replace(self.rest, unlike=self.rest.unlike + met.unlike, reason=self.rest.reason or met.reason)


def _meet(visits: Parts, book: Parts, width: int) -> Iterator[tuple[Array, Array, CodeBook]]:
    """Inputs, how often each was met, and the part of the code book with their indices; at last what nobody met."""
    held, parts = book.empty(0), book.in_parts()
    for records in visits.in_parts():
        met = _summed(records)
        while not len(held) or held["id"].max() <= met["id"][-1]:
            more = next(parts, None)
            if more is None:
                break
            held = np.concatenate((held, more))
        inside = held["id"] <= met["id"][-1]
        yield met["id"], met["count"], _book(held[inside])
        held = held[~inside]
    for left in chain([held], parts):
        yield np.empty(0, np.int64), np.empty(0), _book(left)


def _summed(records: Array) -> Array:
    """The same visits with every id once, in order."""
    ids, place = np.unique(records["id"], return_inverse=True)
    summed: Array = np.empty(len(ids), records.dtype)
    summed["id"], summed["count"] = ids, np.bincount(place.reshape(-1), records["count"], len(ids))
    return summed


def _pair_part(records: Array) -> Pairs:
    sides = (records[records["side"] == number] for number in (0, 1))
    return pair_up(*(Met(side["words"], side["count"], side["flags"]) for side in sides))


def _mixed(words: Array) -> Array:
    """A number for each code that spreads them evenly; parts of equal size need no more."""
    mixed = np.zeros(len(words), np.uint64)
    for word in words.T:
        mixed = (mixed ^ word) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed


def _pieces(path: Path) -> Iterator[Rows | CodeBook]:
    if is_parquet(path):
        if (header := read_header(path)) is not None and header.ids is not None:
            raise _HugeIds
        for part in read_columns(path):
            yield check_rows(Rows(part.obs, part.action, part.next_obs, part.counts), str(path))[0]
        yield from read_codes(path)
        return
    for piece in read_pickle(path):
        if isinstance(piece, Codes):
            if max(piece.indices, default=0) >= 2**63 or min(piece.indices, default=0) < -(2**63):
                raise _HugeIds
            yield make_book(piece.codes, piece.indices, str(path))
        else:
            if any(column.dtype == object for column in piece[:3]):
                raise _HugeIds
            yield check_rows(piece, str(path))[0]


def _book(records: Array) -> CodeBook:
    return CodeBook(records["words"], records["id"])


def _code_width(path: Path) -> int:
    """How many words the codes of a table have; those of a pickle must be looked at for that."""
    if is_parquet(path):
        return max((part.words.shape[1] for part in islice(read_codes(path), 1)), default=2)
    longest = (
        max(code.bit_length() for code in piece.codes) for piece in read_pickle(path) if isinstance(piece, Codes)
    )
    return max(2, -(-max(longest, default=0) // WORD))


def _meta(path: Path) -> Meta:
    header = read_header(path) if is_parquet(path) else None
    return meta_of_name(path.name) if header is None else header.meta


def _is_large(path: Path) -> bool:
    if is_parquet(path):
        return count_rows(path) >= LARGE_ROWS
    return path.stat().st_size >= LARGE_BYTES


def _entry(width: int) -> DTypeLike:
    return np.dtype([("id", "<i8"), ("words", "<u8", (width,))])


def _image(width: int) -> DTypeLike:
    fields = [("key", "<u8"), ("side", "u1"), ("flags", "u1"), ("count", "<f8"), ("words", "<u8", (width,))]
    return np.dtype(fields)
