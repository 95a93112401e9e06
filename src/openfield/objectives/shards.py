"""Count tables of any size in shards: ranges of source inputs, each small enough for memory, here or on a cluster.

A shard is a stretch of a sorted Parquet file that holds all rows of its inputs. The histograms of shards are whole
numbers and are added up, so the result equals that of the whole table to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from openfield.errors import InvalidInput
from openfield.files.database import Database, reading
from openfield.lazy import import_extra
from openfield.objectives.evaluation import Evaluation, evaluate
from openfield.objectives.formats.parquet import DAMAGED, FIELDS, check_sums, header_in, opened, rows_in
from openfield.objectives.tables.checks import MAX_INT64
from openfield.objectives.tables.counts import Counts, count_columns, merge_counts
from openfield.objectives.tables.rows import Array, Columns
from openfield.objectives.tables.table import Meta, TableSummary

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


class ShardCounts(NamedTuple):
    """What is known of a shard once it is counted."""

    counts: Counts
    actions: tuple[int, ...]
    rows: int
    sums: tuple[int, ...]
    """Sums of the columns, by which damage is seen."""


Apply = Callable[[Callable[[Shard], ShardCounts], Iterable[Shard]], Iterable[ShardCounts]]
"""Runs a function over shards: `map` here, the `map` of a pool of processes, or `map_over_ray`."""


def evaluate_shards(path: str | Path, apply: Apply = map, *, rows: int = SHARD_ROWS, **options: Any) -> Evaluation:
    """Compute the objectives of a sorted Parquet table of any size, shard by shard.

    Args:
        path: The file. Machines of a cluster must see it under the same path.
        apply: What runs a function over the shards.
        rows: Rows of a shard, about.
        **options: Those of `evaluate`.

    Raises:
        InvalidInput: The file is not sorted Parquet of ours, or it is damaged.
    """
    return evaluate(summarise_shards(Path(path), apply, rows), **options)


def summarise_shards(path: Path, apply: Apply = map, rows: int = SHARD_ROWS) -> TableSummary:
    """Count the histograms of a sorted Parquet table of any size, shard by shard."""
    with opened(path) as base:
        header = header_in(base, path)
        total = int(base.row("SELECT num_rows FROM parquet_file_metadata(?)", base.name_of(path))[0])
    if header is None or not header.ordered or header.num_inputs is None or header.ids is not None:
        raise InvalidInput(f"{path}: not a sorted table; openfield objectives convert {path} sorted.parquet makes one.")
    found = _Sum()
    shards = list_shards(path, rows)
    counts = merge_counts(found.add(part) for part in apply(count_shard, shards))
    if found.rows != total:
        raise InvalidInput(f"{path}: {DAMAGED} ({found.rows:,} of {total:,} rows are where the file says they are).")
    if not counts.inputs.size:
        raise InvalidInput(f"{path}: no positive counts.")
    check_sums(header, found.sums, path)
    return TableSummary(
        name=str(path),
        counts=counts,
        rows=found.rows,
        num_inputs=max(header.num_inputs, counts.inputs.size),
        num_actions=len(found.actions),
        meta=header.meta or Meta(),
        zeros=header.zeros,
        notes=header.notes,
    )


class _Sum:
    """Adds up what shards say beside their histograms."""

    def __init__(self) -> None:
        self.rows, self.sums, self.actions = 0, [0, 0, 0, 0], set[int]()

    def add(self, part: ShardCounts) -> Counts:
        self.rows += part.rows
        self.sums = [one + other for one, other in zip(self.sums, part.sums, strict=True)]
        self.actions.update(part.actions)
        return part.counts


def list_shards(path: Path, rows: int = SHARD_ROWS) -> list[Shard]:
    """Cut a sorted table into ranges of source inputs of about so many rows, by what the file says of its parts."""
    with opened(path) as base:
        groups = base.rows(
            "SELECT row_group_num_rows, stats_min_value::BIGINT, stats_max_value::BIGINT FROM parquet_metadata(?) "
            "WHERE path_in_schema = 'obs' ORDER BY row_group_id",
            base.name_of(path),
        )
    if any(low is None or high is None for _, low, high in groups):
        raise InvalidInput(f"{path}: its parts do not say which inputs they have; convert it again.")
    cuts: list[int] = []
    waiting = 0
    for size, low, _ in groups:
        if not cuts or (waiting >= rows and low > cuts[-1]):
            cuts.append(low)
            waiting = 0
        waiting += size
    end = max((high for _, _, high in groups), default=0) + 1
    return [Shard(path, low, high) for low, high in zip(cuts, [*cuts[1:], end], strict=True)]


def count_shard(shard: Shard) -> ShardCounts:
    """Count the histograms of one shard.

    Raises:
        InvalidInput: The file cannot be read, its rows are out of order, or a count is no positive whole number.
    """
    with Database(shard.path) as base, reading(shard.path, DAMAGED):
        found = base.columns(f"{rows_in(base, shard.path)} WHERE obs >= ? AND obs < ?", shard.low, shard.high)
    columns = Columns(*(np.asarray(found[name]) for name in FIELDS))
    if any(column.dtype.kind not in "iu" for column in columns) or any(map(np.ma.is_masked, found.values())):
        raise InvalidInput(f"{shard.path}: shards are counted in whole numbers only; evaluate it without shards.")
    columns = Columns(*(column.astype(np.int64, copy=False) for column in columns))
    if len(columns.counts) and int(columns.counts.min()) < 1:
        raise InvalidInput(f"{shard.path}: a count is {columns.counts.min()}; counts are positive numbers.")
    if not _in_order(columns):
        raise InvalidInput(f"{shard.path}: the rows are not in the order the file says they are.")
    actions = tuple(np.unique(columns.action).tolist())
    sums = tuple(map(_exact_sum, columns))
    if sums[3] > MAX_INT64:
        raise InvalidInput(f"{shard.path}: its counts add up to more than 64 bits; evaluate it without shards.")
    return ShardCounts(count_columns(columns, ordered=True), actions, len(columns.obs), sums)


def _exact_sum(column: Array) -> int:
    """Add up numbers of 64 bits, whose sum may have more."""
    return (int((column >> 32).sum()) << 32) + int((column & 0xFFFFFFFF).sum())


def _in_order(columns: Columns) -> bool:
    """Return whether every key comes after the one before it."""
    steps = [np.diff(column) for column in columns[:3]]
    later = (steps[0] > 0) | ((steps[0] == 0) & ((steps[1] > 0) | ((steps[1] == 0) & (steps[2] > 0))))
    return bool(later.all())


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
