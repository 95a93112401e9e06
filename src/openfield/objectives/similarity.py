"""Similarity of two agents, say one and a human: which images both met (Jaccard), and how often (Jensen-Shannon).

An objective over two tables with code books: indices mean nothing across files, image codes do.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.codes import rank, same_width
from openfield.objectives.entropy import Inputs
from openfield.objectives.histograms import Array
from openfield.objectives.images import Images, images_met
from openfield.objectives.tables import Table, TableLike, as_table


class Similarity(msgspec.Struct, frozen=True, kw_only=True):
    """What two agents have in common."""

    jaccard: float | None
    """Images both met, as a share of those either met."""
    jsd_nats: float
    """Jensen-Shannon divergence of how often they met them: 0 for the same, ln 2 for nothing in common."""
    jsd_similarity: float
    """1 - jsd / ln 2."""
    first_in_second: float
    """Share of the first agent's time spent on images the second met as well."""
    second_in_first: float
    shared: int | None
    """Images both met."""
    union: int | None
    """Images either met."""
    reasons: dict[str, str] = {}
    """Why a value is None."""


def compare(first: TableLike, second: TableLike, *, compat: bool = False, inputs: Inputs = "sources") -> Similarity:
    """How similar two tables with code books are.

    Args:
        first: The one, the human's by custom.
        second: The other.
        compat: Follow the original, which takes index 0 of both files for the same image.
        inputs: `sources` looks at inputs that were acted on; `all` at both ends of transitions.

    Raises:
        InvalidInput: A table has no code book or no counts, an input has no code, or thresholds differ.
    """
    pair = as_table(first), as_table(second)
    check_thresholds(*pair)
    p, q = _on_common_images(*(images_met(table, inputs, "zero" if compat else "exact") for table in pair))
    jsd = divergence(p, q)
    shared, union, reasons = _overlap(pair, inputs, compat)
    return Similarity(
        jaccard=shared / union if shared is not None and union else None,
        jsd_nats=jsd,
        jsd_similarity=1 - jsd / math.log(2),
        first_in_second=math.fsum(p[q > 0].tolist()),
        second_in_first=math.fsum(q[p > 0].tolist()),
        shared=shared,
        union=union,
        reasons=reasons,
    )


def jaccard(first: TableLike, second: TableLike, *, compat: bool = False, inputs: Inputs = "sources") -> float:
    """Images both agents met as a share of those either met; a bucket of unknown images counts with all its codes."""
    tables = as_table(first), as_table(second)
    check_thresholds(*tables)
    shared, union = overlap(*(images_met(table, inputs, "last" if compat else "exact") for table in tables))
    return shared / union


def jensen_shannon(first: TableLike, second: TableLike, *, compat: bool = False, inputs: Inputs = "sources") -> float:
    """Jensen-Shannon divergence, in nats, of how often two agents met images; a divergence, so 0 means the same."""
    tables = as_table(first), as_table(second)
    check_thresholds(*tables)
    return divergence(
        *_on_common_images(*(images_met(table, inputs, "zero" if compat else "exact") for table in tables))
    )


def divergence(p: Array, q: Array) -> float:
    """Jensen-Shannon divergence in nats of two distributions over the same symbols, between 0 and ln 2."""
    both = (p > 0) & (q > 0)
    alone = math.fsum(p[~both].tolist() + q[~both].tolist()) * math.log(2)
    p, q = p[both], q[both]
    shared = math.fsum((p * excess(p, q) + q * excess(q, p)).tolist())
    return min(max(0.0, (alone + shared) / 2), math.log(2))


def excess(p: Array, q: Array) -> Array:
    """ln(p / m) with m the mean of both; exactly 0 where they are equal."""
    ratio: Array = -np.log1p((q - p) / (2 * p))
    return ratio


def overlap(first: Images, second: Images) -> tuple[int, int]:
    """How many images both met, and how many either met."""
    one, other = same_width(_codes(first), _codes(second))
    ranks, union = rank(np.concatenate((one, other)))
    sizes = len(np.unique(ranks[: len(one)])), len(np.unique(ranks[len(one) :]))
    return sum(sizes) - union, union


def common_symbols(first: Images, second: Images) -> tuple[Array, Array, int]:
    """A number for each image of both, equal for equal codes, and how many numbers there are.

    A bucket equals nothing, neither a code nor the other's bucket.
    """
    one, other = same_width(first.words, second.words)
    ranks, size = rank(np.concatenate((one, other)))
    numbers = ranks[: len(one)], ranks[len(one) :]
    for images, number in zip((first, second), numbers, strict=True):
        if images.bucket >= 0:
            number[images.bucket] = size
            size += 1
    return *numbers, size


def check_thresholds(first: Table, second: Table) -> None:
    """Images are comparable only if the same thresholds made their codes.

    Raises:
        InvalidInput: Both tables say by which, and they differ.
    """
    one, other = first.meta.thresholds, second.meta.thresholds
    if one and other and one != other:
        raise InvalidInput(f"{first.name} and {second.name} were made with different thresholds ({one} and {other}).")


def _overlap(pair: tuple[Table, Table], inputs: Inputs, compat: bool) -> tuple[int | None, int | None, dict[str, str]]:
    """In compat mode index 0 may lack a code: the original's divergence does not mind, its Jaccard index does."""
    try:
        return *overlap(*(images_met(table, inputs, "last" if compat else "exact") for table in pair)), {}
    except InvalidInput as error:
        return None, None, {"jaccard": str(error)}


def _on_common_images(first: Images, second: Images) -> tuple[Array, Array]:
    one, other, size = common_symbols(first, second)
    return _shares(one, first.counts, size), _shares(other, second.counts, size)


def _shares(symbols: Array, counts: Array, size: int) -> Array:
    return np.bincount(symbols, counts, size) / float(counts.sum())


def _codes(images: Images) -> Array:
    """The codes met; those of a bucket each on its own."""
    if images.bucket < 0:
        return images.words
    return np.concatenate((np.delete(images.words, images.bucket, axis=0), images.bucket_words))
