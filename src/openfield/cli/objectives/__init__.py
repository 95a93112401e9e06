"""`openfield objectives`: what agents did, from tables, runs, frames and whole studies.

A command: it reads files, calls `openfield.objectives` and prints. Heavy imports wait until a command needs them.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import cyclopts
from cyclopts import Parameter

from openfield.cli.objectives.runs import RunFiles, evaluate_run_files
from openfield.cli.objectives.tables import convert, frames
from openfield.console import print_json
from openfield.errors import InvalidInput, OpenfieldError
from openfield.options import MORE, Whole

if TYPE_CHECKING:
    from openfield.objectives.evaluation import Evaluation

app = cyclopts.App(
    name="objectives",
    help="Say what agents did, without asking for their reward.",
    default_parameter=Parameter(negative=()),
)

app.command(convert)
app.command(frames)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # nothing here multiplies matrices; idle threads cost 40 ms


@app.default
def evaluate(
    *tables: Path,
    num_obs: Whole | None = None,
    num_actions: Annotated[Whole | None, Parameter(group=MORE)] = None,
    only: Annotated[tuple[str, ...], Parameter(metavar="NAME")] = (),
    json: bool = False,
    unit: Annotated[Literal["nats", "bits"], Parameter(metavar="UNIT")] = "nats",
    compat: Annotated[bool, Parameter(group=MORE)] = False,
    inputs: Annotated[Literal["sources", "all"], Parameter(metavar="WHICH", group=MORE)] = "sources",
    intervals: bool = False,
    human: Annotated[Path | None, Parameter(metavar="RUN")] = None,
    human_agent: Annotated[str | None, Parameter(metavar="NAME", group=MORE)] = None,
    thresholds: Annotated[Path | None, Parameter(metavar="FILE", group=MORE)] = None,
    pictures: Annotated[bool, Parameter(group=MORE)] = False,
) -> None:
    """Print the objectives of transition tables, or of runs: how did behaviour change when the world did?

    Args:
        tables: Published pickles, Parquet files made by `convert` or `frames`, or run files.
        num_obs: The number of distinct inputs of the environment over all agents. A table needs it for the Dirichlet
            information gain.
        num_actions: The number of actions of the environment. It is only checked: fewer than were seen is an error.
        only: Show only this objective. Repeat it for further ones.
        json: Print one JSON object.
        unit: The unit of entropies and information [nats].
        compat: Print what the original scripts print.
        inputs: Which inputs the entropy counts: those acted on, or both ends of every transition [sources].
        intervals: Add 95 % intervals to the values of tables. Runs always have them.
        human: A run in which a person played, for the human similarity.
        human_agent: The name of the person in that run; needed if several agents are in it.
        thresholds: A table made by `frames`, whose thresholds discretise the pictures of runs [their own].
        pictures: Count pictures of the world, drawn anew, instead of what agents were shown.

    Example:
        openfield objectives human.pkl agent.pkl --num-obs 65536
    """
    from openfield.objectives.evaluation import check_names
    from openfield.report.objectives import SCHEMA, compat_lines, evaluation_lines, runs_lines

    if not tables:
        raise InvalidInput("Name at least one table: openfield objectives TABLE...")
    if compat and unit == "bits":
        raise InvalidInput("--compat prints the original's numbers, which are in nats.")
    check_names(only)
    if human or human_agent or thresholds or pictures or any(_is_sqlite(path) for path in tables):
        if compat or inputs == "all" or num_actions is not None or intervals:
            raise InvalidInput("--compat, --inputs all, --intervals and --num-actions are for tables, not for runs.")
        asked = RunFiles(tables, human, human_agent, thresholds, pictures)
        record = evaluate_run_files(asked, num_obs=num_obs, only=only, unit=unit)
        if json:
            print_json(record)
        else:
            _print_lines(runs_lines(record))
        _exit_with(record["runs"])
        return
    if intervals and inputs == "all":
        raise InvalidInput("--intervals are of inputs acted on; they do not go with --inputs all.")
    if num_actions is not None and num_actions < 1:
        raise InvalidInput(f"--num-actions is {num_actions}; it must be positive.")
    options = {"num_obs": num_obs, "num_actions": num_actions, "only": only, "unit": unit, "inputs": inputs}
    records = [_record(path, options, hashed=json, intervals=intervals) for path in tables]
    if json:
        print_json(records[0] if len(records) == 1 else {"schema": SCHEMA, "tables": records})
    else:
        for record in records:
            titled = len(records) > 1
            _print_lines(compat_lines(record, titled) if compat else evaluation_lines(record, titled))
    _exit_with(records)


@app.command
def similarity(
    *tables: Path,
    json: bool = False,
    compat: bool = False,
    conditional: bool = False,
    inputs: Literal["sources", "all"] = "sources",
) -> None:
    """Compare two tables with code books: which images both agents met, and how often.

    Args:
        tables: Two tables, the human's first by custom.
        json: Print one JSON object.
        compat: Print what the original scripts print, by their rules for index 0.
        conditional: Also compare actions, and next images, given the image.
        inputs: Which inputs are compared: those acted on, or both ends of every transition.

    Example:
        openfield objectives similarity human.pkl agent.pkl
    """
    from openfield.objectives.formats.large_tables import compare_conditional_files, compare_files
    from openfield.objectives.formats.load import file_hash
    from openfield.report.objectives import (
        compat_similarity_lines,
        similarity_failure,
        similarity_lines,
        similarity_record,
    )

    start = time.perf_counter()
    if len(tables) != 2:
        raise InvalidInput(f"Similarity compares two tables; {len(tables)} were given.")
    try:
        found = compare_files(*tables, compat=compat, inputs=inputs)
        more = compare_conditional_files(*tables) if conditional else None
        asked = {
            "sha256": [file_hash(path) for path in tables] if json else None,
            "options": {"compat": compat, "inputs": inputs, "conditional": conditional},
            "seconds": round(time.perf_counter() - start, 4),
        }
        record = similarity_record(tables, found, more, asked)
    except OpenfieldError as error:
        record = similarity_failure(tables, str(error))
    if json:
        print_json(record)
    elif "error" not in record:
        _print_lines(compat_similarity_lines(record) if compat else similarity_lines(record))
    _exit_with([record])


@app.command
def study(
    source: Path,
    /,
    *,
    output: Annotated[Path | None, Parameter(name=("--output", "-o"), metavar="DIR")] = None,
    workers: Whole | None = None,
    json: bool = False,
) -> None:
    """Evaluate all tables of a folder or manifest, correlate, and write a page.

    Args:
        source: A folder of tables named as published, or a TOML manifest.
        output: The folder for the page, drawings and cached results [`study` beside the tables].
        workers: Processes that evaluate [one per processor]; 0 evaluates in this one.
        json: Print the study as one JSON object.

    Example:
        openfield objectives study tables/ -o study
    """
    from openfield.objectives.study.manifest import find_entries
    from openfield.objectives.study.study import run_study
    from openfield.report.objectives import study_lines, study_record
    from openfield.report.study_page import write_study

    if workers is not None and workers < 0:
        raise InvalidInput(f"--workers is {workers}; it must not be negative.")
    entries = find_entries(source)
    folder = output or (source if source.is_dir() else source.parent) / "study"
    with _progress() as show:
        found = run_study(entries, folder / "cache", workers=_workers(workers), progress=show)
    page = write_study(found, folder, f"Objectives of {source.resolve().name}")
    if json:
        print_json(study_record(found))
    else:
        _print_lines(study_lines(found))
        places = len({row.environment for row in found.rows})
        print(f"{page}: {len(found.rows)} agents in {places} environments, {len(found.correlations)} correlations")
    problems = [f"{row.environment}/{row.agent}: {problem}" for row in found.rows for problem in row.problems]
    _exit_with([{"error": problem} for problem in problems])


def _workers(asked: int | None) -> int:
    return (os.cpu_count() or 1) if asked is None else asked


def _is_sqlite(path: Path) -> bool:
    """Whether the file begins as SQLite's do; asked before SQLite opens it, whose locks closing it would drop."""
    try:
        with path.open("rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except OSError:
        return False  # whoever reads it as a table says why


def _record(path: Path, options: dict[str, Any], hashed: bool, intervals: bool) -> dict[str, Any]:
    """What is reported about one file; one that cannot be used has null values and says why."""
    from openfield.objectives.evaluation import evaluate_file
    from openfield.objectives.formats.load import file_hash
    from openfield.report.objectives import evaluation_record, failure_record

    start = time.perf_counter()
    try:
        found = evaluate_file(path, **options)
        around = _intervals(path, found) if intervals else {}
        digest = file_hash(path) if hashed else None
    except OpenfieldError as error:
        return failure_record(path, str(error), options["only"], options["unit"])
    record = evaluation_record(found, time.perf_counter() - start, digest, options) | around
    return record | {"error": found.faults[0]} if found.faults else record


def _intervals(path: Path, found: Evaluation) -> dict[str, Any]:
    """Intervals of a table's values, from its counts."""
    from openfield.objectives import load_table
    from openfield.objectives.measures.intervals import bootstrap_counts, in_unit
    from openfield.report.objectives import intervals_record

    num_obs = found.num_obs if found.values.get("info_gain_dirichlet") is not None else None
    drawn = bootstrap_counts(load_table(path), num_obs=num_obs)
    return intervals_record({name: in_unit(drawn[name], name, found.unit) for name in found.values})


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Show a bar on the error stream while a study runs, if that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        bar = progress.add_task("tables")
        yield lambda done, total: progress.update(bar, completed=done, total=total)


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


def _exit_with(records: list[dict[str, Any]]) -> None:
    """One line on the error stream per file that failed, and exit status 2 if there is one."""
    failed = [record["error"] for record in records if "error" in record]
    for line in failed:
        print(f"openfield: {line}", file=sys.stderr)
    if failed:
        raise SystemExit(2)
