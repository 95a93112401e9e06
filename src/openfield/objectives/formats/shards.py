"""Count tables of any size in shards: ranges of source inputs, each small enough for memory, here or on a cluster.

A shard is a stretch of a sorted Parquet file that holds all rows of its inputs. The histograms of shards are added up,
so the result equals that of the whole table to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from openfield.errors import InvalidInput
from openfield.files.database import Database, reading
from openfield.lazy import import_extra
from openfield.objectives.formats.load import check_form, is_parquet
from openfield.objectives.formats.parquet import (
    DAMAGED,
    FIELDS,
    Header,
    check_inputs,
    check_sums,
    count_inputs,
    header_in,
    opened,
    repeated_key,
    rows_in,
    wrong_column,
)
from openfield.objectives.tables.checks import BEYOND_64_BITS, MAX_INT64, check_rows
from openfield.objectives.tables.counts import Counts, count_columns, merge_counts
from openfield.objectives.tables.rows import Array, Columns, Rows
from openfield.objectives.tables.table import TableSummary

SHARD_ROWS = 1 << 21
"""Rows of a shard, about: a hundred MB while they are counted. All rows of one input are in one shard."""
AHEAD = 2
"""Tasks for each processor of a cluster that wait or run at a time."""


class Shard(NamedTuple):
    """The rows of a file whose source inputs are in a range."""

    path: Path
    low: int
    high: int
    """The first input after the range."""
    name: str = ""
    """The file that messages speak of, if it is another."""
    rounded: bool = False
    """Whether counts are taken as float64, as those of all shards together are beyond 64 bits."""


class ShardCounts(NamedTuple):
    """The facts of a shard once it is counted."""

    counts: Counts
    actions: tuple[int, ...]
    rows: int
    zeros: int
    """Rows with a count of zero, which are left out."""
    sums: tuple[int, ...]
    """Sums of the columns with whole numbers, by which damage is seen."""
    notes: tuple[str, ...]


Apply = Callable[[Callable[[Shard], ShardCounts], Iterable[Shard]], Iterable[ShardCounts]]
"""Runs a function over shards: `map` here, the `map` of a pool of processes, or `map_over_ray`."""


def summarise_shards(
    path: Path, apply: Apply = map, rows: int = SHARD_ROWS, *, name: Path | None = None
) -> TableSummary:
    """Count the histograms of a sorted Parquet table of any size, shard by shard.

    Args:
        path: The file.
        apply: What runs a function over the shards.
        rows: Rows of a shard, about.
        name: The file that messages speak of, if it is another.

    Raises:
        InvalidInput: The file is not sorted Parquet of ours, or it is damaged.
    """
    named = name or path
    check_form(path)
    unsorted = InvalidInput(
        f"{named}: not a sorted table; openfield objectives convert {named} sorted.parquet makes one."
    )
    if not is_parquet(path):
        raise unsorted
    with opened(path) as base:
        header = header_in(base, path)
        if header is None or not header.ordered:
            raise unsorted
        total = int(base.row("SELECT num_rows FROM parquet_file_metadata(?)", base.name_of(path))[0])
        inputs = count_inputs(base, path) if header.num_inputs is None else header.num_inputs
        shards = [shard._replace(name=str(named)) for shard in _cut(base, path, rows)]
    found = _Sum(apply(count_shard, shards))
    if sum(found.sums[3:]) > MAX_INT64:
        found = _Sum(apply(count_shard, [shard._replace(rounded=True) for shard in shards]))
    found.check(header, total, named)
    return TableSummary(
        name=str(named),
        counts=found.counts,
        rows=found.rows,
        num_inputs=inputs,
        num_actions=len(found.actions),
        meta=header.meta,
        zeros=header.zeros + found.zeros,
        notes=header.notes or tuple(found.notes),
    )


class _Sum:
    """What shards say, added up."""

    def __init__(self, parts: Iterable[ShardCounts]) -> None:
        self.rows = self.zeros = 0
        self.sums: list[int] = []
        self.actions, self.notes = set[int](), dict[str, None]()
        self.counts = merge_counts(map(self._add, parts))

    def _add(self, part: ShardCounts) -> Counts:
        self.rows += part.rows
        self.zeros += part.zeros
        self.sums = [one + other for one, other in zip(self.sums or [0] * len(part.sums), part.sums, strict=True)]
        self.actions.update(part.actions)
        self.notes |= dict.fromkeys(part.notes)
        return part.counts

    def check(self, header: Header, total: int, path: Path) -> None:
        """Compare the counts with the description in the file."""
        if self.rows != total:
            raise InvalidInput(f"{path}: {DAMAGED} ({self.rows:,} of {total:,} rows are where the file says they are).")
        if not self.counts.inputs.size:
            raise InvalidInput(f"{path}: no positive counts.")
        check_sums(header, self.sums, path)
        check_inputs(header, self.counts.inputs.size, path)
        try:
            _ = self.counts.total
        except OverflowError:
            raise InvalidInput(f"{path}: the sum of all counts is beyond the range of float64.") from None


def _cut(base: Database, path: Path, rows: int) -> list[Shard]:
    """Cut a sorted table into ranges of source inputs of about equal size, by what the file says of its parts."""
    groups = base.rows(
        "SELECT row_group_num_rows, stats_min_value::BIGINT, stats_max_value::BIGINT FROM parquet_metadata(?) "
        "WHERE path_in_schema = 'obs' AND row_group_num_rows > 0 ORDER BY row_group_id",
        base.name_of(path),
    )
    if any(low is None or high is None for _, low, high in groups):
        raise InvalidInput(f"{path}: its parts do not say which inputs they have; convert it again.")
    if not groups:
        return []
    cuts, waiting = [min(low for _, low, _ in groups)], 0
    for size, low, _ in groups:
        if waiting >= rows and low > cuts[-1]:
            cuts.append(low)
            waiting = 0
        waiting += size
    end = max(high for _, _, high in groups) + 1
    return [Shard(path, low, high) for low, high in zip(cuts, [*cuts[1:], end], strict=True)]


def count_shard(shard: Shard) -> ShardCounts:
    """Count the histograms of one shard.

    Raises:
        InvalidInput: The file cannot be read, its rows are out of order, or a count is not a number from 0 on.
    """
    name = Path(shard.name or shard.path)
    with Database(shard.path) as base, reading(name, DAMAGED):
        query = f"{rows_in(base, shard.path)} WHERE obs BETWEEN ? AND ?"
        found = base.columns(query, shard.low, shard.high - 1)
    columns = Columns(*(_whole_column(found[field], field, name) for field in FIELDS))
    _check_order(columns, name)
    sums = tuple(_exact_sum(column) for column in columns if column.dtype.kind != "f")
    checked, zeros, notes = check_rows(Rows(columns.obs, columns.action, columns.next_obs, columns.counts), str(name))
    counts = checked.counts.astype(np.float64) if shard.rounded else checked.counts
    positive = Columns(checked.obs, checked.next_obs, checked.action, counts)
    return ShardCounts(
        counts=count_columns(positive, ordered=True),
        actions=tuple(np.unique(checked.action).tolist()),
        rows=len(columns.obs),
        zeros=zeros,
        sums=sums,
        notes=(BEYOND_64_BITS,) if shard.rounded else notes,
    )


def _whole_column(found: Array, field: str, name: Path) -> Array:
    """Return a column in 64 bits; counts may be fractions."""
    column = np.asarray(found)
    if np.ma.is_masked(found):
        raise wrong_column(name, field, "numbers")
    if column.dtype == np.uint64 and len(column) and int(column.max()) > MAX_INT64:
        raise InvalidInput(f"{name}: column {field} has numbers beyond 64 bits; convert it first.")
    return column.astype(np.float64 if column.dtype.kind == "f" else np.int64, copy=False)


def _exact_sum(column: Array) -> int:
    """Add up numbers of 64 bits, whose sum may have more."""
    return (int((column >> 32).sum()) << 32) + int((column & 0xFFFFFFFF).sum())


def _check_order(columns: Columns, name: Path) -> None:
    """Check that every key comes after the one before it."""
    size = max(len(columns.obs) - 1, 0)
    same, behind = np.ones(size, bool), np.zeros(size, bool)
    for column in columns[:3]:
        behind |= same & (column[1:] < column[:-1])
        same &= column[1:] == column[:-1]
    if behind.any():
        raise InvalidInput(f"{name}: the rows are not in the order the file says they are.")
    if same.any():
        obs, following, action = (int(column[np.argmax(same)]) for column in columns[:3])
        raise repeated_key((obs, action, following), str(name))


def map_over_ray(function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """Run a function over items on the Ray cluster that the program is connected to; results come in any order.

    Raises:
        InvalidInput: The program is not connected; `ray.init()` connects it.
    """
    ray = import_extra("ray", "ray", "Counting over Ray")
    if not ray.is_initialized():
        raise InvalidInput("Ray is not connected. Call ray.init() first, with the address of a cluster or without.")
    remote = ray.remote(function)
    room = AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
    running: list[Any] = []
    for item in items:
        running.append(remote.remote(item))
        if len(running) >= room:
            (done, *_), running = ray.wait(running)
            yield _get(ray, done)
    for done in running:
        yield _get(ray, done)


def _get(ray: Any, result: Any) -> Any:
    try:
        return ray.get(result)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause if isinstance(error.cause, InvalidInput) else error
        raise InvalidInput(str(cause).splitlines()[-1]) from None
