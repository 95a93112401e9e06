"""Conditional divergences of two agents: of the action given the image, and of the next image given the image.

The original computes these two and never prints them. `similarity` has the divergences that it prints.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec
import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.measures.similarity import check_thresholds, common_symbols, excess
from openfield.objectives.tables.histograms import Array
from openfield.objectives.tables.images import Images, images_met
from openfield.objectives.tables.table import Table, TableLike, as_table


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
    actions = _divergence(pair, sources, [table.action for table in pair])
    try:
        images = [images_met(table, "successors") for table in pair]
    except InvalidInput as error:
        return Conditionals(action_jsd_nats=actions, next_jsd_nats=None, reasons={"next_jsd_nats": str(error)})
    nexts = _symbols(images, [table.next_obs for table in pair])
    return Conditionals(action_jsd_nats=actions, next_jsd_nats=_divergence(pair, sources, nexts))


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


def _divergence(pair: tuple[Table, Table], images: list[Array], outcomes: list[Array]) -> float:
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
