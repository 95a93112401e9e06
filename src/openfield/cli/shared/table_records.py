"""Compute the JSON objects of tables for `openfield objectives`, in this process or with shards counted elsewhere."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from openfield.errors import MORE_MEMORY, InvalidInput, OpenfieldError

if TYPE_CHECKING:
    from openfield.objectives.evaluation import Evaluation
    from openfield.objectives.formats.shards import Apply
    from openfield.objectives.tables.table import Table, TableSummary

MAX_SHUFFLED = 1_000_000
"""Transitions of a table up to which the null of empowerment is computed without being asked for: it takes seconds."""
MAX_THINNED = 1_000_000
"""Rows of a table up to which values at equal numbers of transitions are computed."""


class TableQuestions(NamedTuple):
    """What else is asked of tables."""

    intervals: bool
    null: bool
    compat: bool
    hashed: bool
    executor: str | None
    """What counts the shards of each table; None if only large ones are cut, and counted here."""


def record_tables(paths: Sequence[Path], options: dict[str, Any], asked: TableQuestions) -> list[dict[str, Any]]:
    """Return the JSON objects of tables.

    Args:
        paths: Their files.
        options: Those of `evaluate`.
        asked: What else is asked of them.

    Raises:
        InvalidInput: Options do not go together, or there is no such executor.
    """
    both_ends, number = options["inputs"] == "all", options["num_actions"]
    if asked.intervals and both_ends:
        raise InvalidInput("--intervals are of inputs acted on; they do not go with --inputs all.")
    if number is not None and number < 1:
        raise InvalidInput(f"--num-actions is {number}; it must be positive.")
    if asked.executor and (asked.intervals or asked.null or both_ends):
        raise InvalidInput("--executor counts shards; --intervals, --null and --inputs all need the whole table.")
    with _sharing(asked.executor) as apply:
        records = [_record(path, options, asked, apply) for path in paths]
    _add_equal_numbers(paths, records, asked)
    return records


def _record(path: Path, options: dict[str, Any], asked: TableQuestions, apply: Apply | None) -> dict[str, Any]:
    """Return the JSON object of one file; one that cannot be used has null values and says why."""
    from openfield.objectives.evaluation import NAMES
    from openfield.objectives.evaluation import evaluate as compute
    from openfield.objectives.formats.large_tables import open_table
    from openfield.objectives.formats.load import file_hash, load_table
    from openfield.objectives.formats.shards import summarise_shards
    from openfield.report.objectives import evaluation_record, failure_record

    start = time.perf_counter()
    try:
        if asked.null or asked.intervals or options["inputs"] == "all":
            table: Table | TableSummary = load_table(path)
        else:
            table = open_table(path) if apply is None else summarise_shards(path, apply)
        found = compute(table, **options)
        more = {} if asked.compat else _estimate(table, found, asked)
        digest = file_hash(path) if asked.hashed else None
    except OpenfieldError as error:
        return failure_record({"table": str(path)}, str(error), options["only"] or NAMES, options["unit"])
    record = evaluation_record(found, time.perf_counter() - start, digest, options) | more
    return record | {"error": found.faults[0]} if found.faults else record


def _estimate(table: Table | TableSummary, found: Evaluation, asked: TableQuestions) -> dict[str, Any]:
    """Return the null and the excess of empowerment, saturation, and intervals if they are asked for."""
    from openfield.objectives.measures.excess import describe_saturation
    from openfield.objectives.measures.permutations import DRAWS as SHUFFLES
    from openfield.objectives.tables.table import TableSummary

    if isinstance(table, TableSummary):
        return {"empowerment": None, "saturation": describe_saturation(table.counts) or None}
    shuffled = asked.null or table.num_actions == 1 or table.counts.total <= MAX_SHUFFLED
    if not shuffled and not asked.intervals:  # without the imports that estimates need
        reason = f"more than {MAX_SHUFFLED:,} transitions; --null computes it"
        plain = {"plug_in": found.values.get("empowerment"), "null_mean": None, "excess": None, "reason": reason}
        return {"empowerment": plain, "saturation": describe_saturation(table.counts) or None}
    from openfield.objectives.intervals import DRAWS, estimate_counts
    from openfield.report.objectives import estimates_record

    shuffles = SHUFFLES if shuffled and "empowerment" in found.values else 0
    known = estimate_counts(table, draws=DRAWS if asked.intervals else 0, shuffles=shuffles)
    record = estimates_record(known, found.unit, asked.intervals)
    if not shuffled:
        record["empowerment"]["reason"] = f"more than {MAX_SHUFFLED:,} transitions; --null computes it"
    shown = [name for name in record.get("intervals", {}) if name in found.values or name == "excess"]
    record |= {"intervals": {name: record["intervals"][name] for name in shown}} if asked.intervals else {}
    return record if "empowerment" in found.values else record | {"empowerment": None}


def _add_equal_numbers(paths: Sequence[Path], records: list[dict[str, Any]], asked: TableQuestions) -> None:
    """Add to the objects of several tables their entropy and information gain at as many transitions as all have."""
    usable = [(path, record) for path, record in zip(paths, records, strict=True) if "n" in record]
    if len(usable) < 2 or asked.compat or any(record["distinct"]["transitions"] > MAX_THINNED for _, record in usable):
        return
    from openfield.objectives import load_table
    from openfield.objectives.intervals import count_table, objectives_at

    least = min(record["n"] for _, record in usable)
    if not isinstance(least, int):
        return
    for path, record in usable:
        found = objectives_at([count_table(load_table(path))], least, record["num_obs"])
        scale = {name: math.log(2) if unit == "bits" else 1.0 for name, unit in record["units"].items()}
        values = {name: value / scale[name] for name, value in found.items() if name in scale}
        record["equal"] = {"transitions": least, "values": values}


@contextmanager
def _sharing(executor: str | None) -> Iterator[Apply | None]:
    """Yield what runs a function over the shards of tables, or None if nothing was said about that.

    Raises:
        InvalidInput: There is no such executor, or Ray does not answer.
    """
    if executor is None:
        yield None
        return
    from openfield.objectives.formats.shards import map_over_ray
    from openfield.runner.cluster import Cluster, choose_workers
    from openfield.runner.ray.connection import RayConnection

    players = choose_workers(count_processors(), executor)
    if not isinstance(players, Cluster):
        yield _map_over_processes
        return
    with RayConnection(players):
        yield map_over_ray


def count_processors() -> int:
    """Return how many processes work at a time if the user does not say it."""
    return os.cpu_count() or 1


def _map_over_processes(function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """Run a function over items in one process per processor; results come in any order."""
    from concurrent.futures.process import BrokenProcessPool

    from openfield.objectives.pool import run_in_pool

    try:
        for _, result in run_in_pool(function, list(items), count_processors()):
            yield result
    except BrokenProcessPool:
        raise InvalidInput(f"A process that counted a shard died. {MORE_MEMORY}") from None
