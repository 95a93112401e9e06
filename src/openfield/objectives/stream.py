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
from openfield.objectives.counts import (
    Columns,
    Counts,
    count_columns,
    count_ordered,
    count_stream,
    merge_counts,
    use_compiled,
    whole_inputs,
)
from openfield.objectives.histograms import Array
from openfield.objectives.tables import Meta, Table, is_parquet, load_table

MOST_IDS = 250_000_000
"""Inputs are ticked off in an array of bytes up to this id, which the largest published environment does not reach."""


class Seen:
    """Which inputs have occurred, as long as ids stay below 250 million; beyond that nobody counts."""

    def __init__(self) -> None:
        self._ticks = np.zeros(1 << 16, bool)
        self._lost = False

    def add(self, *columns: Array) -> None:
        """Tick off the inputs in these columns."""
        for column in columns:
            if self._lost or not len(column):
                continue
            top = int(column.max())
            if top >= MOST_IDS or int(column.min()) < 0:
                self._lost, self._ticks = True, np.zeros(0, bool)
                continue
            if top >= len(self._ticks):
                grown = np.zeros(min(MOST_IDS, max(top + 1, 2 * len(self._ticks))), bool)
                grown[: len(self._ticks)] = self._ticks
                self._ticks = grown
            self._ticks[column] = True

    @property
    def count(self) -> int | None:
        """How many different inputs; None if their ids are too large."""
        return None if self._lost else int(np.count_nonzero(self._ticks))


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
        from openfield.objectives.parquet import read_header

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
    from openfield.objectives.parquet import count_rows

    rows = count_rows(path)
    watch = _Watch(path, header.num_inputs is None)
    counts = _count_parts(watch.check(), rows)
    if not counts.inputs.size:
        raise InvalidInput(f"{path}: no positive counts.")
    return Summary(
        name=str(path),
        counts=counts,
        rows=rows,
        num_inputs=header.num_inputs or watch.seen.count or counts.inputs.size,
        num_actions=watch.actions.count or 1,
        meta=header.meta,
        zeros=header.zeros,
        notes=header.notes,
    )


def _count_parts(parts: Iterator[Columns], rows: int) -> Counts:
    if not use_compiled(rows):
        return count_stream(parts)
    return merge_counts(count_ordered(block) for block in whole_inputs(parts))


class _Watch:
    """Rows on their way to be counted, checked as they pass."""

    def __init__(self, path: Path, count_inputs: bool) -> None:
        self.path = path
        self.seen = Seen()
        self.actions = Seen()
        self._count_inputs = count_inputs
        self._last = -(2**63)

    def check(self) -> Iterator[Columns]:
        """The rows of the file.

        Raises:
            InvalidInput: A count is not positive, or rows are not in the order the file claims.
        """
        from openfield.objectives.parquet import read_columns

        for part in read_columns(self.path):
            if not len(part.obs):
                continue
            if not (part.counts > 0).all():
                at = int(np.argmin(part.counts > 0))
                key = (int(part.obs[at]), int(part.action[at]), int(part.next_obs[at]))
                raise InvalidInput(f"{self.path}: the count of key {key} is {part.counts[at]}; counts are positive.")
            if part.obs[0] < self._last or (part.obs[1:] < part.obs[:-1]).any():
                raise InvalidInput(f"{self.path}: the rows are not in the order the file says they are.")
            self._last = int(part.obs[-1])
            self.actions.add(part.action)
            if self._count_inputs:
                self.seen.add(part.obs, part.next_obs)
            yield part
