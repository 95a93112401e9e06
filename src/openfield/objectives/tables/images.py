"""Find the codes of the images an agent met, which makes inputs of different tables comparable.

Reads the code books of tables, for `pairs` and `measures.similarity`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.tables.codes import CodeBook
from openfield.objectives.tables.histograms import Array
from openfield.objectives.tables.table import Table

Rule = Literal["exact", "last", "zero"]
"""How to read index 0: `exact` as its code, or a bucket of several; `last` as its last code; `zero` as code 0."""

BUCKET = 0
"""The index that may stand for many images: those the human never saw."""


class Images(NamedTuple):
    """Distinct inputs of a table, with their codes."""

    inputs: Array
    counts: Array
    words: Array
    """The code of each input, as words."""
    bucket: int
    """The place of the input that is a bucket of many codes, or -1."""
    bucket_words: Array
    """The codes in the bucket."""


def images_met(table: Table, inputs: Literal["sources", "successors", "all"] = "sources") -> Images:
    """Return the images met as source of a transition, as successor, or as either.

    Raises:
        InvalidInput: The table has no code book or no counts, or an input has no code or several.
    """
    book = book_of(table)
    ids, counts = visits_of(table, inputs)
    return find_codes(ids, counts, book, "exact", Names(table.name, table.ids))


class Names(NamedTuple):
    """The names of a table and its inputs in messages."""

    table: str
    ids: tuple[int, ...] | None = None

    def id_of(self, number: int) -> int:
        """Return the id of an input in the file."""
        return self.ids[number] if self.ids else number

    @property
    def zero(self) -> int:
        """The number that stands for index 0."""
        if self.ids is None:
            return BUCKET
        return self.ids.index(BUCKET) if BUCKET in self.ids else -1


def find_codes(ids: Array, counts: Array, book: CodeBook, rule: Rule, names: Names) -> Images:
    """Find the codes of inputs in a code book.

    Args:
        ids: Distinct inputs in rising order.
        counts: How often each was met.
        book: The code book.
        rule: How to read index 0.
        names: The names for messages.

    Raises:
        InvalidInput: An input has no code or several.
    """
    order = np.argsort(book.indices, kind="stable")
    indices, starts, sizes = np.unique(book.indices[order], return_index=True, return_counts=True)
    zero = names.zero
    if rule == "exact" and (wrong := (sizes > 1) & (indices != zero)).any():
        index = names.id_of(int(indices[np.argmax(wrong)]))
        raise several_codes(names.table, index)
    at, known = _find(indices, ids)
    if not (known | (ids == zero if rule == "zero" else False)).all():
        index = names.id_of(int(ids[np.argmin(known | ((ids == zero) & (rule == "zero")))]))
        raise no_code(names.table, index)
    # The last of an index's codes, as when a mapping of codes to indices is turned around.
    words = np.zeros((len(ids), book.words.shape[1]), np.uint64)
    words[known] = book.words[order[starts + sizes - 1][at[known]]]
    if rule == "zero":
        words[ids == zero] = 0
    bucket = np.flatnonzero((ids == zero) & known) if rule == "exact" else np.empty(0, np.int64)
    if not len(bucket) or sizes[at[bucket[0]]] < 2:
        return Images(ids, counts, words, -1, book.words[:0])
    return Images(ids, counts, words, int(bucket[0]), book.words[book.indices == zero])


def several_codes(table: str, index: int) -> InvalidInput:
    """Return the error for an index with several codes."""
    return InvalidInput(f"{table}: index {index} has more than one code; only index 0 may.")


def no_code(table: str, index: int) -> InvalidInput:
    """Return the error for an index without a code."""
    return InvalidInput(f"{table}: index {index} has no code in its code book.")


def book_of(table: Table) -> CodeBook:
    """Return the code book of a table.

    Raises:
        InvalidInput: The table has no code book, or an empty one, or no counts.
    """
    if table.book is None:
        raise InvalidInput(f"{table.name}: no code book; similarity compares image codes (the *_human_disc files).")
    _ = table.counts  # which sees that there are any, and every key once
    if not len(table.book.indices):
        raise InvalidInput(f"{table.name}: the code book is empty.")
    return table.book


def visits_of(table: Table, inputs: str) -> tuple[Array, Array]:
    """Return the distinct inputs and how often each was met."""
    columns = {"sources": [table.obs], "successors": [table.next_obs], "all": [table.obs, table.next_obs]}[inputs]
    ids, places = np.unique(np.concatenate(columns), return_inverse=True)
    counts = np.zeros(len(ids), np.float64 if table.count.dtype.kind == "f" else np.int64)
    np.add.at(counts, places, np.concatenate([table.count] * len(columns)))
    return ids, counts


def _find(rising: Array, wanted: Array) -> tuple[Array, Array]:
    """Find the place of each wanted number among the rising ones. Return also a flag: was it found."""
    if not len(rising):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
    at = np.searchsorted(rising, wanted).clip(max=len(rising) - 1)
    return at, rising[at] == wanted
