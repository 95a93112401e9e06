"""Rows and code books put in order on disk: what is larger than memory is cut by its key and sorted part by part.

Between `pickles` and `parquet` in a conversion.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import numpy as np

from openfield.objectives.formats.parquet import read_codes
from openfield.objectives.outofcore.partitions import PART, Parts
from openfield.objectives.tables.checks import find_repeated
from openfield.objectives.tables.codes import CodeBook, check_codes, make_book
from openfield.objectives.tables.histograms import Array
from openfield.objectives.tables.rows import Columns, Rows
from openfield.objectives.tables.transitions import sum_rows

_ROW = np.dtype([("obs", "<i8"), ("next_obs", "<i8"), ("action", "<i8"), ("count", "<i8"), ("fraction", "?")])


class Spill:
    """Rows on disk, handed back in the order (obs, next_obs, action)."""

    def __init__(self, part: int = PART) -> None:
        self._parts = Parts(_ROW, "obs", part)
        self._fractions = False
        self.zeros = 0
        """How many of the rows have a count of zero; they are not handed back."""
        self.repeated: tuple[int, int, int] | None = None
        """A key that occurred twice, once all rows have been handed back."""

    def __enter__(self) -> Spill:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._parts.__exit__(kind, error, trace)

    @property
    def rows(self) -> int:
        """How many were put aside."""
        return self._parts.size

    def add(self, rows: Rows) -> None:
        """Put rows aside."""
        record = self._parts.empty(len(rows.obs))
        record["obs"], record["next_obs"], record["action"] = rows.obs, rows.next_obs, rows.action
        record["fraction"] = fraction = rows.counts.dtype.kind == "f"
        record["count"] = rows.counts.astype(np.float64).view(np.int64) if fraction else rows.counts
        self._fractions |= fraction
        self.zeros += len(record) - int(np.count_nonzero(rows.counts))
        self._parts.add(record)

    def in_order(self) -> Iterator[Columns]:
        """All rows in order, a part at a time; every input is in one part, every key occurs once."""
        for record in self._parts.in_parts():
            obs, action, next_obs = (np.ascontiguousarray(record[name]) for name in ("obs", "action", "next_obs"))
            done = sum_rows(Rows(obs, action, next_obs, self._counts(record)))
            if len(done.obs) < len(obs) and self.repeated is None:
                self.repeated = find_repeated(obs, action, next_obs)
            kept = done.counts > 0
            yield Columns(*(column[kept] for column in (done.obs, done.next_obs, done.action, done.counts)))

    def _counts(self, record: Array) -> Array:
        """Counts as float64 throughout if any of them are fractions."""
        counts = np.ascontiguousarray(record["count"])
        if not self._fractions:
            return counts
        return np.where(record["fraction"], counts.view(np.float64), counts.astype(np.float64))


class BookSpill:
    """A code book on disk, handed back by rising code; codes of more words, which are larger, are kept apart."""

    def __init__(self, name: str, part: int = PART) -> None:
        self._name, self._part = name, part
        self._parts: dict[int, Parts] = {}
        self._size, self._given = 0, False

    def __enter__(self) -> BookSpill:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for parts in self._parts.values():
            parts.__exit__(kind, error, trace)

    def add(self, book: CodeBook) -> None:
        """Put codes aside; those that do not say where they stood stand after all before them."""
        places = np.arange(len(book.indices)) + self._size if book.places is None else book.places
        self._size, self._given = self._size + len(book.indices), True
        used = (book.words != 0) * np.arange(1, book.words.shape[1] + 1)
        widths = used.max(axis=1, initial=2)
        for width in np.unique(widths).tolist():
            chosen = widths == width
            records = self._of(width).empty(int(np.count_nonzero(chosen)))
            records["code"], records["index"] = _as_bytes(book.words[chosen, :width]), book.indices[chosen]
            records["place"] = places[chosen]
            self._of(width).add(records)

    def in_order(self) -> Iterator[CodeBook]:
        """All codes, a part at a time, each with as many words as the widest.

        Raises:
            InvalidInput: A code occurs twice.
        """
        most = max(self._parts, default=2)
        if self._given and not self._parts:
            yield make_book([], [])
        for width, parts in sorted(self._parts.items()):
            for records in parts.in_parts():
                words = _as_words(records["code"], width)
                words = np.pad(words, ((0, 0), (0, most - width)))
                book = CodeBook(words, records["index"].copy(), records["place"].copy())
                check_codes(book, self._name)
                yield book

    def _of(self, width: int) -> Parts:
        if width not in self._parts:
            kind = np.dtype([("code", f"S{8 * width}"), ("index", "<i8"), ("place", "<i8")])
            self._parts[width] = Parts(kind, "code", self._part)
        return self._parts[width]


def read_codes_in_order(path: Path, part: int = PART) -> Iterator[CodeBook]:
    """The code book beside a table as `read_codes` gives it, in the order of the book it was made from.

    The file is sorted by code; which of several codes of an index came last matters to the published rules.
    """
    books = read_codes(path)
    first = next(books, None)
    if first is None:
        return
    yield first
    width = first.words.shape[1]
    with Parts(np.dtype([("place", "<i8"), ("index", "<i8"), ("words", "<u8", (width,))]), "place", part) as parts:
        for book in books:
            if book.places is None:
                yield book
                continue
            records = parts.empty(len(book.indices))
            records["place"], records["index"], records["words"] = book.places, book.indices, book.words
            parts.add(records)
        for records in parts.in_parts():
            done = records[np.argsort(records["place"], kind="stable")]
            yield CodeBook(np.ascontiguousarray(done["words"]), done["index"].copy())


def _as_bytes(words: Array) -> Array:
    """Codes as bytes, the highest first: cut by all of a code, books are cut evenly where many codes begin alike."""
    return np.ascontiguousarray(words[:, ::-1].astype(">u8")).view(f"S{8 * words.shape[1]}")[:, 0]


def _as_words(codes: Array, width: int) -> Array:
    return np.ascontiguousarray(codes).view(">u8").reshape(-1, width)[:, ::-1].astype(np.uint64)
