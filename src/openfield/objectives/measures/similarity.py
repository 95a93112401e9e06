"""Similarity of two agents, say one and a human: which images both met (Jaccard), and how often (Jensen-Shannon).

Both tables need a code book: indices differ between files, image codes do not.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec
import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.measures.entropy import Inputs
from openfield.objectives.tables.codes import rank, same_width
from openfield.objectives.tables.histograms import Array
from openfield.objectives.tables.images import Images, Names, book_of, images_met, visits_of
from openfield.objectives.tables.pairs import Pairs, images_of, original_images_of, pair_up
from openfield.objectives.tables.table import Meta, Table, TableLike, as_table


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
    """Compare two tables with code books: which images both agents met, and how often.

    Args:
        first: The first table, usually the human's.
        second: The second table.
        compat: Follow the original, which takes index 0 of both files for the same image.
        inputs: `sources` counts the inputs that were acted on, `all` both ends of transitions.

    Raises:
        InvalidInput: A table has no code book or no counts, an input has no code, or thresholds differ.
    """
    return similarity_of(pair_tables(first, second, compat=compat, inputs=inputs))


def similarity_of(pairs: Pairs) -> Similarity:
    """Compute the similarity of two agents from the histogram of how often each met an image."""
    n, m = pairs.totals
    both = (pairs.first > 0) & (pairs.second > 0)
    first, second, times = pairs.first[both], pairs.second[both], pairs.times[both]
    alone = float(pairs.first[~both] @ pairs.times[~both]) / n + float(pairs.second[~both] @ pairs.times[~both]) / m
    jsd = _divergence(first / n, second / m, times, alone)
    shared, union, reason = pairs.overlap
    return Similarity(
        jaccard=shared / union if not reason and union else None,
        jsd_nats=jsd,
        jsd_similarity=1 - jsd / math.log(2),
        first_in_second=float(first @ times) / n,
        second_in_first=float(second @ times) / m,
        shared=None if reason else shared,
        union=None if reason else union,
        reasons={"jaccard": reason} if reason else {},
    )


def jaccard(first: TableLike, second: TableLike, *, compat: bool = False, inputs: Inputs = "sources") -> float:
    """Compute the Jaccard index: images both agents met, as a share of those either met.

    If index 0 stands for many images, all of them count as met. Arguments and errors are those of `compare`.
    """
    found = compare(first, second, compat=compat, inputs=inputs)
    if found.jaccard is None:
        raise InvalidInput(found.reasons["jaccard"])
    return found.jaccard


def jensen_shannon(first: TableLike, second: TableLike, *, compat: bool = False, inputs: Inputs = "sources") -> float:
    """Compute the Jensen-Shannon divergence, in nats, of how often two agents met images; 0 means the same.

    Arguments and errors are those of `compare`.
    """
    return compare(first, second, compat=compat, inputs=inputs).jsd_nats


def pair_tables(first: TableLike, second: TableLike, *, compat: bool = False, inputs: Inputs = "sources") -> Pairs:
    """Count how often two agents met the same images; arguments and errors are those of `compare`."""
    pair = as_table(first), as_table(second)
    check_thresholds(*((table.name, table.meta) for table in pair))
    read = original_images_of if compat else images_of
    return pair_up(
        *(
            read(*visits_of(table, inputs), book, Names(table.name, table.ids))
            for table, book in [(table, book_of(table)) for table in pair]
        )
    )


def divergence(p: Array, q: Array) -> float:
    """Compute the Jensen-Shannon divergence in nats of two distributions over the same symbols, from 0 to ln 2."""
    both = (p > 0) & (q > 0)
    alone = math.fsum(p[~both].tolist() + q[~both].tolist())
    return _divergence(p[both], q[both], np.ones(np.count_nonzero(both)), alone)


def _divergence(p: Array, q: Array, times: Array, alone: float) -> float:
    """Compute the divergence from the shares both have, how often each pair occurs, and the mass only one has."""
    shared = math.fsum((times * (p * excess(p, q) + q * excess(q, p))).tolist())
    return min(max(0.0, (alone * math.log(2) + shared) / 2), math.log(2))


def excess(p: Array, q: Array) -> Array:
    """Compute ln(p / m) with m the mean of p and q; exactly 0 where they are equal."""
    ratio: Array = -np.log1p((q - p) / (2 * p))
    return ratio


def common_symbols(first: Images, second: Images) -> tuple[Array, Array, int]:
    """Number the images of two tables; equal codes get equal numbers. Return also how many numbers there are.

    A bucket of many codes gets a number of its own, and so does the other table's bucket.
    """
    one, other = same_width(first.words, second.words)
    ranks, size = rank(np.concatenate((one, other)))
    numbers = ranks[: len(one)], ranks[len(one) :]
    for images, number in zip((first, second), numbers, strict=True):
        if images.bucket >= 0:
            number[images.bucket] = size
            size += 1
    return *numbers, size


def check_thresholds(first: tuple[str, Meta], second: tuple[str, Meta]) -> None:
    """Check that the same thresholds made the image codes of two tables, given by name and meta data.

    Raises:
        InvalidInput: The tables say that their thresholds differ.
    """
    (name, one), (other_name, other) = first, second
    if one.thresholds and other.thresholds and one.thresholds != other.thresholds:
        made = f"({one.thresholds} and {other.thresholds})"
        raise InvalidInput(f"{name} and {other_name} were made with different thresholds {made}.")


class Conditionals(msgspec.Struct, frozen=True, kw_only=True):
    """Conditional divergences in nats, between 0 (the same) and ln 2."""

    action_jsd_nats: float
    """Of the action given the image."""
    next_jsd_nats: float | None
    """Of the next image given the image."""
    reasons: dict[str, str] = {}


def compare_conditionals(first: TableLike, second: TableLike) -> Conditionals:
    """Compare what two agents did on the images they met, and which images came next.

    Each image of an agent weighs as much as the share of transitions that start from it. An outcome that the other
    agent never had on that image has probability 0 there.

    Raises:
        InvalidInput: A table has no code book or no counts, or an input that was acted on has no code.
    """
    pair = as_table(first), as_table(second)
    check_thresholds(*((table.name, table.meta) for table in pair))
    sources = _symbols([images_met(table) for table in pair], [table.obs for table in pair])
    actions = _conditional_divergence(pair, sources, [table.action for table in pair])
    try:
        images = [images_met(table, "successors") for table in pair]
    except InvalidInput as error:
        return Conditionals(action_jsd_nats=actions, next_jsd_nats=None, reasons={"next_jsd_nats": str(error)})
    nexts = _symbols(images, [table.next_obs for table in pair])
    return Conditionals(action_jsd_nats=actions, next_jsd_nats=_conditional_divergence(pair, sources, nexts))


def _symbols(images: list[Images], columns: list[Array]) -> list[Array]:
    """Return the columns with inputs replaced by numbers that both tables share."""
    *numbers, _ = common_symbols(*images)
    return [
        number[np.searchsorted(side.inputs, column)]
        for number, side, column in zip(numbers, images, columns, strict=True)
    ]


class Joint(NamedTuple):
    """Distinct (image, outcome) pairs with the share of each in all transitions and among those of its image."""

    keys: Array
    joint: Array
    given: Array


def _conditional_divergence(pair: tuple[Table, Table], images: list[Array], outcomes: list[Array]) -> float:
    _, ranks = np.unique(np.concatenate(outcomes), return_inverse=True)
    parts = np.split(ranks, [len(outcomes[0])])
    width = int(ranks.max()) + 1
    one, other = (
        joint_of(image, part, table.count, width, table.count.sum())
        for table, image, part in zip(pair, images, parts, strict=True)
    )
    return within_range((one_sided(one, other) + one_sided(other, one)) / 2)


def within_range(divergence: float) -> float:
    """Clip a divergence to the range from 0 to ln 2, which rounding may leave."""
    return min(max(0.0, divergence), math.log(2))


def joint_of(image: Array, outcome: Array, count: Array, width: int, total: float) -> Joint:
    """Count (image, outcome) pairs and return the share of each.

    Args:
        image: The image of each row, as a number.
        outcome: The outcome of each row, as a number below `width`.
        count: How often each row occurred.
        width: Number of different outcomes.
        total: The sum of all counts of the table.
    """
    keys, places = np.unique(image * width + outcome, return_inverse=True)
    joint = np.bincount(places, count)
    per_image = np.bincount(keys // width, joint)
    return Joint(keys, joint / total, joint / per_image[keys // width])


def one_sided(one: Joint, other: Joint) -> float:
    """Return the mean divergence of one side's outcomes from the average of both, weighted by its own transitions."""
    if not len(one.keys):
        return 0.0
    theirs = np.zeros(len(one.keys))
    if len(other.keys):
        at = np.searchsorted(other.keys, one.keys).clip(max=len(other.keys) - 1)
        theirs = np.where(other.keys[at] == one.keys, other.given[at], 0.0)
    return math.fsum((one.joint * excess(one.given, theirs)).tolist())
