"""`openfield objectives`: what agents did, from tables, frames and whole studies.

A command: it reads files, calls `openfield.objectives` and prints. Heavy imports wait until a command needs them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import cyclopts
from cyclopts import Parameter

from openfield.errors import InvalidInput, OpenfieldError

app = cyclopts.App(name="objectives", help="Objectives without reward, from transition tables, frames and studies.")

Flag = Annotated[bool, Parameter(negative=())]


@app.default
def evaluate(
    *tables: Path,
    num_obs: int | None = None,
    num_actions: int | None = None,
    only: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    json: Flag = False,
    unit: Literal["nats", "bits"] = "nats",
    compat: Flag = False,
    inputs: Literal["sources", "all"] = "sources",
) -> None:
    """Print the objectives of transition tables.

    Args:
        tables: Published pickles, or Parquet files made by `convert` or `frames`.
        num_obs: Distinct inputs of the environment over all agents; the Dirichlet information gain needs it.
        num_actions: Actions of the environment; only checked.
        only: Name of an objective; may be given more than once.
        json: Print one JSON object.
        unit: Unit of entropies and information.
        compat: Print what the original scripts print.
        inputs: Which inputs the entropy counts: those acted on, or both ends of every transition.
    """
    from openfield.objectives.evaluate import check_names
    from openfield.objectives.wording import SCHEMA, compat_lines, evaluation_lines

    if not tables:
        raise InvalidInput("Name at least one table: openfield objectives TABLE...")
    check_names(only)
    options = {"num_obs": num_obs, "num_actions": num_actions, "only": only, "unit": unit, "inputs": inputs}
    records = [_record(path, options) for path in tables]
    if json:
        _print_json(records[0] if len(records) == 1 else {"schema": SCHEMA, "tables": records})
    else:
        for record in records:
            _print_lines(compat_lines(record) if compat else evaluation_lines(record, len(records) > 1))
    _exit_with(records, not json)


@app.command
def similarity(
    *tables: Path,
    json: Flag = False,
    compat: Flag = False,
    conditional: Flag = False,
    inputs: Literal["sources", "all"] = "sources",
) -> None:
    """Compare two tables with code books: which images both agents met, and how often.

    Args:
        tables: Two tables, the human's first by custom.
        json: Print one JSON object.
        compat: Print what the original scripts print, by their rules for index 0.
        conditional: Also compare actions, and next images, given the image.
        inputs: Which inputs are compared: those acted on, or both ends of every transition.
    """
    from openfield.objectives import compare, compare_conditionals, load_table
    from openfield.objectives.wording import compat_similarity_lines, similarity_lines, similarity_record

    if len(tables) != 2:
        raise InvalidInput(f"Similarity compares two tables; {len(tables)} were given.")
    first, second = (load_table(path) for path in tables)
    found = compare(first, second, compat=compat, inputs=inputs)
    record = similarity_record(tables, found, compare_conditionals(first, second) if conditional else None)
    if json:
        _print_json(record)
    else:
        _print_lines(compat_similarity_lines(record) if compat else similarity_lines(record))


@app.command
def convert(source: Path, target: Path) -> None:
    """Turn a published pickle into sorted Parquet, or back; works for tables larger than memory.

    Args:
        source: A table.
        target: Where to write it; `.parquet` or `.pkl` decides the form.
    """
    from openfield.objectives.convert import convert as run

    rows = run(source, target)
    print(f"{target}: {rows:,} rows, {target.stat().st_size:,} bytes")


def _record(path: Path, options: dict[str, Any]) -> dict[str, Any]:
    """What is reported about one file; one that cannot be used has null values and says why."""
    from openfield.objectives.evaluate import evaluate_file
    from openfield.objectives.wording import evaluation_record, failure_record

    start = time.perf_counter()
    try:
        found = evaluate_file(path, **options)
    except OpenfieldError as error:
        return failure_record(path, str(error), options["only"], options["unit"])
    record = evaluation_record(found, time.perf_counter() - start)
    return record | {"error": found.faults[0]} if found.faults else record


def _print_json(record: dict[str, Any]) -> None:
    import msgspec

    print(msgspec.json.encode(record).decode())


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


def _exit_with(records: list[dict[str, Any]], missing: bool) -> None:
    """One line on the error stream per file that failed, and exit status 2 if there is one."""
    failed = [record["error"] for record in records if "error" in record]
    for line in failed:
        print(line, file=sys.stderr)
    if failed:
        raise SystemExit(2)
