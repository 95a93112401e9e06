"""Tables that do not fit into memory, and tables cut into shards: the same histograms, bit for bit.

Between `parquet` and the objectives. A shard holds all rows of its source inputs; whoever counts shards, here, in other
processes or on other machines, merges whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.formats.load import is_parquet, load_table
from openfield.objectives.tables.checks import check_rows
from openfield.objectives.tables.counts import (
    PLAIN_ACTIONS,
    Counts,
    count_columns,
    count_ordered,
    count_stream,
    merge_counts,
    use_compiled,
    whole_inputs,
)
from openfield.objectives.tables.histograms import Array, sorted_distinct
from openfield.objectives.tables.rows import Columns, Rows
from openfield.objectives.tables.table import Meta, Table

MOST_IDS = 250_000_000
"""Inputs are ticked off in an array of bytes up to this id, which the largest published environment does not reach."""
MOST_ODD = 1 << 22
"""So many inputs with other ids are remembered one by one, in 32 MB and as much again where they are sorted."""


class Seen:
    """Which inputs have occurred; if there are too many beside ids below 0 or from 250 million on, nobody counts."""

    def __init__(self) -> None:
        self._ticks = np.zeros(1 << 16, bool)
        self._most = MOST_IDS
        """Ids from here on are remembered: from the first odd one on, those that no tick was made for yet."""
        self._odd: list[Array] = []
        self._lost = False

    def add(self, *columns: Array) -> None:
        """Tick off the inputs in these columns."""
        for column in columns:
            if self._lost or not len(column):
                continue
            if int(column.max()) < self._most and int(column.min()) >= 0:
                self._tick(column)
                continue
            self._most = len(self._ticks)  # 250 MB of ticks for a few ids among many large ones would be too much
            odd = np.asarray((column < 0) | (column >= self._most), bool)
            self._tick(column[~odd])
            self._remember(column[odd])

    @property
    def count(self) -> int | None:
        """How many different inputs; None if too many of their ids are odd."""
        return None if self._lost else int(np.count_nonzero(self._ticks)) + len(_union(self._odd))

    def _tick(self, ids: Array) -> None:
        top = int(ids.max(initial=0))
        if top >= len(self._ticks):
            grown = np.zeros(min(MOST_IDS, max(top + 1, 2 * len(self._ticks))), bool)
            grown[: len(self._ticks)] = self._ticks
            self._ticks = grown
        self._ticks[ids.astype(np.int64) if ids.dtype == object else ids] = True

    def _remember(self, ids: Array) -> None:
        self._odd.append(sorted_distinct(ids))
        if sum(map(len, self._odd[1:])) > max(len(self._odd[0]), 1 << 16):  # what is known is sorted anew as it doubles
            self._odd = [_union(self._odd)]
            self._lost = len(self._odd[0]) > MOST_ODD
            self._odd = [] if self._lost else self._odd


def _union(parts: Sequence[Array]) -> Array:
    return sorted_distinct(np.concatenate(parts)) if parts else np.empty(0, np.int64)


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """All that the five objectives need to know of a table, however large."""

    name: str
    counts: Counts
    rows: int
    num_inputs: int
    """Distinct inputs seen, or at least so many."""
    num_actions: int
    """Distinct actions seen, or at least so many."""
    meta: Meta = Meta()
    zeros: int = 0
    notes: tuple[str, ...] = ()


def summarise(table: Table) -> Summary:
    """The summary of a table in memory."""
    return Summary(
        name=table.name,
        counts=table.counts,
        rows=len(table.obs),
        num_inputs=table.num_inputs,
        num_actions=table.num_actions,
        meta=table.meta,
        zeros=table.zeros,
        notes=table.notes,
    )


def summarise_file(path: str | Path) -> Summary:
    """The summary of a table file; sorted Parquet is streamed in bounded memory, whatever its size."""
    path = Path(path)
    if is_parquet(path):
        from openfield.objectives.formats.parquet import read_header

        header = read_header(path)
        if header is not None and header.ordered:
            return _summarise_stream(path, header)
    return summarise(load_table(path))


def shard_columns(columns: Columns, shards: int) -> list[Columns]:
    """Rows cut into so many shards by source input."""
    place = columns.obs % shards
    return [Columns(*(column[place == number] for column in columns)) for number in range(shards)]


def count_shards(
    shards: Iterable[Columns], apply: Callable[[Callable[[Any], Counts], Iterable[Any]], Iterable[Counts]] = map
) -> Counts:
    """The histograms of a sharded table.

    Args:
        shards: Rows; no source input is in two of them.
        apply: What runs a function over the shards: `map` here, a pool's or a cluster's `map` elsewhere.
    """
    return merge_counts(apply(count_columns, (shard for shard in shards if len(shard.obs))))


def count_files(
    paths: Sequence[Path], apply: Callable[[Callable[[Any], Counts], Iterable[Any]], Iterable[Counts]] = map
) -> Counts:
    """The histograms of a table whose shards lie in sorted Parquet files."""
    return merge_counts(apply(count_file, paths))


def count_file(path: Path) -> Counts:
    """The histograms of one file."""
    return summarise_file(path).counts


def _summarise_stream(path: Path, header: Any) -> Summary:
    from openfield.objectives.formats.parquet import count_rows

    rows = count_rows(path)
    watch = _Watch(path)
    counts = _count_parts(watch.check(), rows)
    if not counts.inputs.size:
        raise InvalidInput(f"{path}: no positive counts.")
    exact = watch.seen.count
    seen = exact or counts.inputs.size
    if header.num_inputs is not None and header.num_inputs < seen:
        raise InvalidInput(f"{path}: its description speaks of {header.num_inputs} inputs, its rows have {seen}.")
    notes = header.notes or tuple(watch.notes)  # what was read in the first place was noted when it was written
    if exact is None and header.num_inputs is None:
        notes += (
            "too many inputs with large ids to count: those that were only led to are left out of distinct inputs",
        )
    return Summary(
        name=str(path),
        counts=counts,
        rows=rows,
        num_inputs=exact or max(seen, header.num_inputs or 0),
        num_actions=watch.actions,
        meta=header.meta,
        zeros=header.zeros + watch.zeros,
        notes=notes,
    )


def _count_parts(parts: Iterator[Columns], rows: int) -> Counts:
    if not use_compiled(rows):
        return count_stream(parts)
    return merge_counts(count_ordered(block) for block in whole_inputs(parts))


class _Watch:
    """Rows on their way to be counted, checked as they pass."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seen = Seen()
        self.zeros = 0
        self.notes: dict[str, None] = {}
        self._actions, self._odd_actions = Seen(), set[int]()

    @property
    def actions(self) -> int:
        """How many different actions have passed."""
        return (self._actions.count or 0) + len(self._odd_actions)

    def check(self) -> Iterator[Columns]:
        """The rows of the file with positive counts.

        Raises:
            InvalidInput: A count is not a positive number, or rows are not in the order the file says they are.
        """
        from openfield.objectives.formats.parquet import read_columns

        for part in read_columns(self.path):
            if not len(part.obs):
                continue
            rows, zeros, notes = check_rows(Rows(part.obs, part.action, part.next_obs, part.counts), str(self.path))
            self.zeros, self.notes = self.zeros + zeros, self.notes | dict.fromkeys(notes)
            self._note(rows)
            yield Columns(rows.obs, rows.next_obs, rows.action, rows.counts)

    def _note(self, rows: Rows) -> None:
        small = (rows.action >= 0) & (rows.action < PLAIN_ACTIONS)
        self._actions.add(rows.action[small])
        if not small.all():
            self._odd_actions.update(np.unique(rows.action[~small]).tolist())
        self.seen.add(rows.obs, rows.next_obs)
