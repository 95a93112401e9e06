"""How differently two agents act, from tables that do not fit into memory.

Beside `conditional`, whose two divergences these are. Rows meet the codes of their inputs in parts of the indices, the
rows of both tables meet in parts of the codes; what stays in memory is a part of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from openfield.errors import InvalidInput
from openfield.objectives.formats.load import load_table
from openfield.objectives.measures.conditional import (
    Conditionals,
    Joint,
    compare_conditionals,
    joint_of,
    one_sided,
    within_range,
)
from openfield.objectives.measures.similarity import check_thresholds
from openfield.objectives.outofcore.joins import MET, HugeIds, Side, book_entry, is_large, meet, mixed
from openfield.objectives.outofcore.partitions import Parts
from openfield.objectives.tables.codes import rank
from openfield.objectives.tables.histograms import Array
from openfield.objectives.tables.images import Names, find_codes
from openfield.objectives.tables.rows import Rows
from openfield.objectives.tables.transitions import sum_rows


def compare_conditional_files(first: Path, second: Path) -> Conditionals:
    """As `compare_conditionals` for files; large ones are streamed in bounded memory."""
    if is_large(first) or is_large(second):
        with suppress(HugeIds):
            return stream_conditionals(first, second)
    return compare_conditionals(load_table(first), load_table(second))


def stream_conditionals(first: Path, second: Path, *, part: int = MET) -> Conditionals:
    """As `compare_conditional_files`, through the disk; `part` is how many rows are handled at once."""
    with Side(first) as one, Side(second) as other:
        check_thresholds(*((str(side.path), side.header.meta) for side in (one, other)))
        plan = _Plan((one, other), max(one.width, other.width), part)
        actions = plan.divergence("action")
        try:
            nexts = plan.divergence("next_obs")
        except InvalidInput as error:
            return Conditionals(action_jsd_nats=actions, next_jsd_nats=None, reasons={"next_jsd_nats": str(error)})
        return Conditionals(action_jsd_nats=actions, next_jsd_nats=nexts)


class _Plan(NamedTuple):
    """Two tables, and how they are to meet."""

    sides: tuple[Side, Side]
    width: int
    """Words of the codes; an image has one more, which tells a bucket of many from all others."""
    part: int

    def divergence(self, outcome: str) -> float:
        """Of the outcome, `action` or `next_obs`, given the image."""
        words = 1 if outcome == "action" else self.width + 1
        with Parts(_pair(self.width + 1, words), "key", self.part) as pairs:
            totals = [self._put_pairs(number, outcome, pairs) for number in (0, 1)]
            return within_range(sum(_terms(records, totals) for records in pairs.in_parts()) / 2)

    def _put_pairs(self, number: int, outcome: str, pairs: Parts) -> float:
        """Puts the images and outcomes of one table aside, and says how many transitions it has."""
        side, total = self.sides[number], 0.0
        with ExitStack() as stack:
            book, later = (stack.enter_context(Parts(book_entry(self.width), "id", self.part)) for _ in range(2))
            rows = stack.enter_context(Parts(_row(0), "id", self.part))
            for each in (book, later):
                side.put_book(each)
            for block in side.rows():
                total += float(block.counts.sum())
                rows.add(_summed_rows(rows, block, outcome))
            found = self._with_codes(rows, book, number)
            if outcome == "next_obs":
                turned = stack.enter_context(Parts(_row(self.width + 1), "id", self.part))
                for records, image in found:
                    turned.add(_filled(turned, id=records["outcome"], image=image, count=records["count"]))
                for records, then in self._with_codes(turned, later, number):
                    pairs.add(_paired(pairs, number, records["image"], then, records["count"]))
            else:
                for records, image in found:
                    action = records["outcome"].view(np.uint64)[:, None]
                    pairs.add(_paired(pairs, number, image, action, records["count"]))
        return total

    def _with_codes(self, rows: Parts, book: Parts, number: int) -> Iterator[tuple[Array, Array]]:
        """The rows, and the image behind the id of each; a bucket of one side equals nothing of the other."""
        names = Names(str(self.sides[number].path))
        for records, codes in meet(rows, book):
            ids, place = np.unique(records["id"], return_inverse=True)
            images = find_codes(ids, np.zeros(len(ids)), codes, "exact", names)
            words = np.pad(images.words, ((0, 0), (0, 1)))
            if images.bucket >= 0:
                words[images.bucket] = 0
                words[images.bucket, -1] = 1 + number
            yield records, words[place.reshape(-1)]


def _summed_rows(rows: Parts, block: Rows, outcome: str) -> Array:
    """An input with its outcome and how often; equal ones of a block are added up."""
    nothing = np.zeros(len(block.obs), np.int64)
    done = sum_rows(Rows(block.obs, nothing, getattr(block, outcome), block.counts))
    return _filled(rows, id=done.obs, outcome=done.next_obs, count=done.counts)


def _paired(pairs: Parts, number: int, image: Array, outcome: Array, count: Array) -> Array:
    return _filled(pairs, key=mixed(image), side=number, image=image, outcome=outcome, count=count)


def _filled(parts: Parts, **columns: Array | int) -> Array:
    size = max(len(column) for column in columns.values() if not isinstance(column, int))
    records = parts.empty(size)
    for name, column in columns.items():
        records[name] = column
    return records


def _terms(records: Array, totals: list[float]) -> float:
    """What the images of a part add to the divergence, twice over."""
    images, _ = rank(records["image"])
    outcomes, width = rank(records["outcome"])
    sides: list[Joint] = []
    for number, total in enumerate(totals):
        mine = records["side"] == number
        sides.append(joint_of(images[mine], outcomes[mine], records["count"][mine], width, total))
    one, other = sides
    return one_sided(one, other) + one_sided(other, one)


def _row(words: int) -> DTypeLike:
    """A row on its way: with the outcome's id, or with the image's words where they are known."""
    rest = [("image", "<u8", (words,))] if words else [("outcome", "<i8")]
    return np.dtype([("id", "<i8"), ("count", "<f8"), *rest])


def _pair(image: int, outcome: int) -> DTypeLike:
    fields = [("key", "<u8"), ("side", "u1"), ("count", "<f8"), ("image", "<u8", (image,))]
    return np.dtype([*fields, ("outcome", "<u8", (outcome,))])
