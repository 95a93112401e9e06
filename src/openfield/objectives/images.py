"""The images an agent met, by code: what makes inputs of different files comparable.

Between `tables`, whose code books it reads, and `similarity`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.codes import CodeBook
from openfield.objectives.histograms import Array
from openfield.objectives.tables import Table

Rule = Literal["exact", "last", "zero"]
"""What index 0 is: `exact` its code, or a bucket if it has several; `last` its last code; `zero` the code 0."""

BUCKET = 0
"""The index that may stand for many images: those the human never saw."""


class Images(NamedTuple):
    """Distinct inputs of a table, with their codes."""

    inputs: Array
    counts: Array
    words: Array
    """The code of each input, as words."""
    bucket: int
    """Which of the inputs is a bucket of many codes; -1 if none is."""
    bucket_words: Array
    """The codes in the bucket."""


def images_met(
    table: Table, inputs: Literal["sources", "successors", "all"] = "sources", rule: Rule = "exact"
) -> Images:
    """The images met as source of a transition, as successor, or as either.

    Raises:
        InvalidInput: The table has no code book or no counts, or an input has no code or several.
    """
    book = _book_of(table)
    ids, counts = _visits(table, inputs)
    order = np.argsort(book.indices, kind="stable")
    indices, starts, sizes = np.unique(book.indices[order], return_index=True, return_counts=True)
    zero = _number_of_zero(table)
    if rule == "exact" and (wrong := (sizes > 1) & (indices != zero)).any():
        index = table.id_of(int(indices[np.argmax(wrong)]))
        raise InvalidInput(f"{table.name}: index {index} has more than one code; only index 0 may.")
    at, known = _find(indices, ids)
    if rule == "zero":
        known |= ids == zero
    if not known.all():
        raise InvalidInput(
            f"{table.name}: index {table.id_of(int(ids[np.argmin(known)]))} has no code in its code book."
        )
    # The last of an index's codes, as when a mapping of codes to indices is turned around.
    words = book.words[order[starts + sizes - 1][at]]
    if rule == "zero":
        words[ids == zero] = 0
    bucket = np.flatnonzero((ids == zero) & (sizes[at] > 1)) if rule == "exact" else np.empty(0, np.int64)
    inside = book.words[book.indices == zero] if len(bucket) else book.words[:0]
    return Images(ids, counts, words, int(bucket[0]) if len(bucket) else -1, inside)


def _book_of(table: Table) -> CodeBook:
    if table.book is None:
        raise InvalidInput(f"{table.name}: no code book; similarity compares image codes (the *_human_disc files).")
    if not len(table.obs):
        raise InvalidInput(f"{table.name}: no positive counts.")
    if not len(table.book.indices):
        raise InvalidInput(f"{table.name}: the code book is empty.")
    return table.book


def _visits(table: Table, inputs: str) -> tuple[Array, Array]:
    """Distinct inputs and how often each was met."""
    columns = {"sources": [table.obs], "successors": [table.next_obs], "all": [table.obs, table.next_obs]}[inputs]
    ids, places = np.unique(np.concatenate(columns), return_inverse=True)
    counts = np.zeros(len(ids), np.float64 if table.count.dtype.kind == "f" else np.int64)
    np.add.at(counts, places, np.concatenate([table.count] * len(columns)))
    return ids, counts


def _number_of_zero(table: Table) -> int:
    """The number that stands for index 0."""
    if table.ids is None:
        return BUCKET
    return table.ids.index(BUCKET) if BUCKET in table.ids else -1


def _find(rising: Array, wanted: Array) -> tuple[Array, Array]:
    """Where each wanted number is among the rising ones, and whether it is there."""
    at = np.searchsorted(rising, wanted).clip(max=len(rising) - 1)
    return at, rising[at] == wanted
