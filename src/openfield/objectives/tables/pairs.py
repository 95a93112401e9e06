"""The joint histogram of two agents: how many images the one met m times and the other n times.

`measures.similarity` and `measures.rarefaction` are computed from it. Histograms of parts of the images add up, so a
large comparison can be computed in parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.tables.codes import CodeBook, rank, same_width
from openfield.objectives.tables.histograms import Array
from openfield.objectives.tables.images import Names, find_codes

TIMED, LISTED = 1, 2
"""Flags of a row: it counts for how often images were met; it counts for which images were met."""


class MetImages(msgspec.Struct, frozen=True, eq=False):
    """Images one agent met: a row for each, with its code."""

    words: Array
    """(K, W) of uint64."""
    counts: Array
    flags: Array
    unlike: tuple[float, ...] = ()
    """How often a bucket of many images was met. It equals no image of the other agent."""
    reason: str = ""
    """Why it is not known which images were met; empty if it is known."""


class Overlap(NamedTuple):
    """How many images both met, and how many either met; or the reason why that is not known."""

    shared: int = 0
    union: int = 0
    reason: str = ""

    def plus(self, other: Overlap) -> Overlap:
        """Return the sum of two overlaps of different images."""
        return Overlap(self.shared + other.shared, self.union + other.union, self.reason or other.reason)


class Pairs(msgspec.Struct, frozen=True, eq=False):
    """A joint histogram: `times` images were met `first` times by one agent and `second` times by the other."""

    first: Array
    second: Array
    times: Array
    overlap: Overlap

    @property
    def totals(self) -> tuple[float, float]:
        """The total visits of each agent."""
        return float(self.first @ self.times), float(self.second @ self.times)


def images_of(ids: Array, counts: Array, book: CodeBook, names: Names) -> MetImages:
    """Return the images of inputs. If index 0 has several codes, all of its images count as met."""
    found = find_codes(ids, counts, book, "exact", names)
    if found.bucket < 0:
        return MetImages(found.words, counts, _flags(len(ids), TIMED | LISTED))
    words = np.concatenate((np.delete(found.words, found.bucket, axis=0), found.bucket_words))
    inside = len(found.bucket_words)
    times = np.concatenate((np.delete(counts, found.bucket), np.zeros(inside, counts.dtype)))
    flags = np.concatenate((_flags(len(ids) - 1, TIMED | LISTED), _flags(inside, LISTED)))
    return MetImages(words, times, flags, (float(counts[found.bucket]),))


def original_images_of(ids: Array, counts: Array, book: CodeBook, names: Names) -> MetImages:
    """Return the images of inputs by the original's rules.

    Index 0 is code 0 where visits are counted, and its last code where the images met are listed.
    """
    timed = find_codes(ids, counts, book, "zero", names)
    try:
        listed = find_codes(ids, counts, book, "last", names)
    except InvalidInput as error:  # index 0 may lack a code: the divergence does not mind, the Jaccard index does
        return MetImages(timed.words, counts, _flags(len(ids), TIMED), reason=str(error))
    words = np.concatenate((timed.words, listed.words))
    flags = np.concatenate((_flags(len(ids), TIMED), _flags(len(ids), LISTED)))
    return MetImages(words, np.concatenate((counts, np.zeros(len(ids), counts.dtype))), flags)


def pair_up(first: MetImages, second: MetImages) -> Pairs:
    """Make the joint histogram of the images of two agents."""
    ranks, size = rank(np.concatenate(same_width(first.words, second.words)))
    sides = ranks[: len(first.words)], ranks[len(first.words) :]
    both = [_times(side, met, size) for side, met in zip(sides, (first, second), strict=True)]
    lists = [_listed(side, met, size) for side, met in zip(sides, (first, second), strict=True)]
    alone = [(number, 0.0) for number in first.unlike] + [(0.0, number) for number in second.unlike]
    columns = [np.append(each, [pair[side] for pair in alone]) for side, each in enumerate(both)]
    shared, union = np.count_nonzero(lists[0] & lists[1]), np.count_nonzero(lists[0] | lists[1])
    times = np.ones(len(columns[0]), np.int64)
    return _tally(columns[0], columns[1], times, Overlap(int(shared), int(union), first.reason or second.reason))


def merge_pairs(parts: Iterable[Pairs]) -> Pairs:
    """Merge the joint histograms of parts; no image is in two parts."""
    merged = _tally(np.empty(0), np.empty(0), np.empty(0, np.int64), Overlap())
    for part in parts:
        first, second, times = (
            np.concatenate((getattr(merged, name), getattr(part, name))) for name in ("first", "second", "times")
        )
        merged = _tally(first, second, times, merged.overlap.plus(part.overlap))
    return merged


def _flags(size: int, value: int) -> Array:
    return np.full(size, value, np.uint8)


def _times(symbols: Array, met: MetImages, size: int) -> Array:
    timed = (met.flags & TIMED) > 0
    return np.bincount(symbols[timed], met.counts[timed], size).astype(np.float64)


def _listed(symbols: Array, met: MetImages, size: int) -> Array:
    listed = np.zeros(size, bool)
    listed[symbols[(met.flags & LISTED) > 0]] = True
    return listed


def _tally(first: Array, second: Array, times: Array, overlap: Overlap) -> Pairs:
    """Add up equal pairs; leave out images that neither agent visited, which are only listed."""
    seen = (first > 0) | (second > 0)
    first, second, times = first[seen], second[seen], times[seen]
    order = np.lexsort((second, first))
    first, second, times = first[order], second[order], times[order]
    new = np.ones(len(order), bool)
    new[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    at = np.flatnonzero(new)
    sums = np.add.reduceat(times, at) if len(at) else times
    return Pairs(first[at], second[at], sums, overlap)
