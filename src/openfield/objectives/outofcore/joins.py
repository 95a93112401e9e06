"""Two tables that do not fit into memory, compared: the same histogram of common images, bit for bit.

Beside `similarity`, which compares tables in memory. Inputs meet their codes in parts of the indices, images of both
tables meet in parts of the codes; what stays in memory is a part of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
from msgspec.structs import replace
from numpy.typing import DTypeLike

from openfield.errors import InvalidInput
from openfield.objectives.formats.convert import in_order
from openfield.objectives.formats.load import is_parquet, load_table
from openfield.objectives.formats.parquet import Header, count_rows, read_codes, read_columns, read_header
from openfield.objectives.measures.entropy import Inputs
from openfield.objectives.measures.similarity import Similarity, check_thresholds, pair_tables, similarity_of
from openfield.objectives.outofcore.partitions import Parts
from openfield.objectives.outofcore.spill import read_codes_in_order
from openfield.objectives.pickle.reader import read_pickle
from openfield.objectives.tables.checks import check_rows
from openfield.objectives.tables.codes import CodeBook, make_book
from openfield.objectives.tables.histograms import Array
from openfield.objectives.tables.images import Names
from openfield.objectives.tables.pairs import Met, Pairs, images_of, merge_pairs, original_images_of, pair_up
from openfield.objectives.tables.rows import Codes, Rows

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
    if is_large(first) or is_large(second):
        with suppress(HugeIds):
            return stream_pairs(first, second, compat=compat, inputs=inputs)
    return pair_tables(load_table(first), load_table(second), compat=compat, inputs=inputs)


def stream_pairs(
    first: Path, second: Path, *, compat: bool = False, inputs: Inputs = "sources", part: int = MET
) -> Pairs:
    """As `pair_files`, through the disk; `part` is how many rows are handled at once."""
    with Side(first) as one, Side(second) as other:
        check_thresholds(*((str(side.path), side.header.meta) for side in (one, other)))
        width = max(one.width, other.width)
        read = original_images_of if compat else images_of
        with Parts(_image(width), "key", part) as images:
            rests = [
                _put_images(side, number, images, _Asked(read, inputs, width, part))
                for number, side in enumerate((one, other))
            ]
            return merge_pairs(chain([pair_up(*rests)], map(_pair_part, images.in_parts())))


class HugeIds(Exception):
    """Ids beyond 64 bits: such tables are small enough for memory."""


class Side:
    """One of two tables on its way to the images of both; while it is open it lies in order on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._order = in_order(path)

    def __enter__(self) -> Self:
        self._table = self._order.__enter__()
        self.header = read_header(self._table) or Header()
        if self.header.ids is not None:
            self.__exit__(None, None, None)
            raise HugeIds
        self.width = max((part.words.shape[1] for part in islice(read_codes(self._table), 1)), default=2)
        """Words of its codes."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._order.__exit__(kind, error, trace)

    def rows(self) -> Iterator[Rows]:
        """Its rows in order, a batch at a time.

        Raises:
            InvalidInput: There is none, or one is not what rows are.
        """
        if not count_rows(self._table):
            raise InvalidInput(f"{self.path}: no positive counts.")
        for part in read_columns(self._table):
            yield check_rows(Rows(part.obs, part.action, part.next_obs, part.counts), str(self.path))[0]

    def put_book(self, book: Parts) -> None:
        """Put the code book aside, in the order of the file: what index 0 means may depend on it.

        Raises:
            InvalidInput: There is none.
        """
        found = False
        for piece in self._codes():
            found = True
            records = book.empty(len(piece.indices))
            records["id"], records["words"][:, : piece.words.shape[1]] = piece.indices, piece.words
            book.add(records)
        if not found:
            raise InvalidInput(f"{self.path}: no code book; similarity compares image codes.")

    def _codes(self) -> Iterator[CodeBook]:
        if is_parquet(self.path):
            yield from read_codes_in_order(self._table)
            return
        for piece in read_pickle(self.path):
            if isinstance(piece, Codes):
                yield make_book(piece.codes, piece.indices, str(self.path))


class _Asked(NamedTuple):
    """How inputs are to be read."""

    read: _Reader
    inputs: Inputs
    width: int
    part: int


def _put_images(side: Side, number: int, images: Parts, asked: _Asked) -> Met:
    """Has every input meet its code and puts the images aside.

    Returns:
        What is known beside images with codes: buckets, and why images cannot be listed.
    """
    rest = Met(np.empty((0, 2), np.uint64), np.empty(0), np.empty(0, np.uint8))
    with Parts(_VISIT, "id", asked.part) as visits, Parts(book_entry(asked.width), "id", asked.part) as book:
        side.put_book(book)
        for rows in side.rows():
            for column in [rows.obs, rows.next_obs] if asked.inputs == "all" else [rows.obs]:
                records = visits.empty(len(column))
                records["id"], records["count"] = column, rows.counts
                visits.add(_summed(records))
        for part, codes in meet(visits, book):
            met = _summed(part)
            found = asked.read(met["id"], met["count"], codes, Names(str(side.path)))
            images.add(_records(images, number, found))
            rest = replace(rest, unlike=rest.unlike + found.unlike, reason=rest.reason or found.reason)
    return rest


def _records(images: Parts, number: int, met: Met) -> Array:
    records = images.empty(len(met.words))
    records["key"], records["words"] = mixed(met.words), met.words
    records["side"], records["flags"], records["count"] = number, met.flags, met.counts
    return records


def meet(rows: Parts, book: Parts) -> Iterator[tuple[Array, CodeBook]]:
    """Rows by rising id in parts, each with the part of the code book that has its ids; at last what nobody met."""
    held, parts = book.empty(0), book.in_parts()
    for records in rows.in_parts():
        top = records["id"].max()
        while not len(held) or held["id"].max() <= top:
            more = next(parts, None)
            if more is None:
                break
            held = np.concatenate((held, more))
        inside = held["id"] <= top
        yield records, _book(held[inside])
        held = held[~inside]
    for left in chain([held], parts):
        yield rows.empty(0), _book(left)


def _summed(records: Array) -> Array:
    """The same visits with every id once, in order."""
    ids, place = np.unique(records["id"], return_inverse=True)
    summed: Array = np.empty(len(ids), records.dtype)
    summed["id"], summed["count"] = ids, np.bincount(place.reshape(-1), records["count"], len(ids))
    return summed


def _pair_part(records: Array) -> Pairs:
    sides = (records[records["side"] == number] for number in (0, 1))
    return pair_up(*(Met(side["words"], side["count"], side["flags"]) for side in sides))


def mixed(words: Array) -> Array:
    """A number for each code that spreads them evenly; parts of equal size need no more."""
    mixed = np.zeros(len(words), np.uint64)
    for word in words.T:
        mixed = (mixed ^ word) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed


def _book(records: Array) -> CodeBook:
    return CodeBook(records["words"], records["id"])


def is_large(path: Path) -> bool:
    """Whether a table is not read into memory to be compared."""
    if is_parquet(path):
        return count_rows(path) >= LARGE_ROWS
    return path.stat().st_size >= LARGE_BYTES


def book_entry(width: int) -> DTypeLike:
    """A record of a code book with codes of so many words."""
    return np.dtype([("id", "<i8"), ("words", "<u8", (width,))])


def _image(width: int) -> DTypeLike:
    fields = [("key", "<u8"), ("side", "u1"), ("flags", "u1"), ("count", "<f8"), ("words", "<u8", (width,))]
    return np.dtype(fields)
