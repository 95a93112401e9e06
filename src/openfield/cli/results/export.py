"""`openfield export`: write episodes, or the numbers of every cell, as a table for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from openfield.cli.shared.parameters import (
    ALL_OF_RUN,
    AS_PLAYED,
    KindOfFailures,
    KindOfIntervals,
    Metrics,
    Numbers,
    Output,
    SelectionOptions,
    VersionOptions,
)
from openfield.console import say_count
from openfield.options import MORE

if TYPE_CHECKING:
    from openfield.result import Result

Columns = Literal["domains", "novelties", "numbers", "tasks"]
"""What stands across in a table."""

SUFFIXES = {"markdown": "md", "latex": "tex"}
"""The suffixes of files that are not named for their format."""


def export(
    runs: list[Path],
    /,
    *,
    format_: Annotated[str, Parameter(name=["--format", "-f"], metavar="NAME")] = "csv",
    output: Output = None,
    numbers: Numbers = None,
    across: Annotated[Columns | None, Parameter(metavar="WHAT")] = None,
    selection: Annotated[SelectionOptions, Parameter(name="*", group=MORE)] = ALL_OF_RUN,
    metric: Metrics = None,
    baseline: Annotated[str | None, Parameter(metavar="AGENT")] = None,
    intervals: KindOfIntervals | None = None,
    failures: KindOfFailures = "count",
    cell: Annotated[str | None, Parameter(group=MORE, metavar="ID")] = None,
    versions: VersionOptions = AS_PLAYED,
) -> None:
    """Write episodes or numbers as a table, or another format of the domain.

    Args:
        runs: Run files.
        format_: `csv`, `jsonl`, `parquet`; `markdown`, `latex` or `html` for the results as tables of a paper or a
            page; or a format of the run's domain, such as the logs of birds [csv].
        output: The file to write [beside the first run file].
        numbers: The numbers of a table for a paper or a page: `all`, or names such as before,after,oscr [the six that
            matter most, and returns where there is no scale].
        across: What stands across in such a table: domains, novelties or numbers [the first of which there are
            several]; `tasks` puts agents across, and the tasks of a curriculum below each other.
        selection: What of the runs such a table shows.
        metric: Write one row for each scored cell, with the numbers of this metric. Repeat it for further ones.
        baseline: The agent that others are compared with [the domain's own].
        intervals: Write one row for each number of each agent instead, with intervals by this rule.
        failures: Count trials that an agent failed, as 0 where it failed, or exclude them [count].
        cell: The id of a cell, or its beginning, for formats that show one cell.
        versions: How versions of agents are shown.

    Example:
        openfield export runs/birds.sqlite --format parquet
    """
    from openfield.errors import InvalidInput, UnknownName
    from openfield.registry import load
    from openfield.report.export.paper_table import FORMS, write_tables
    from openfield.report.export.rows import FORMATS
    from openfield.result import Result

    result = Result(runs, baseline, **versions.choose())
    target = output or runs[0].with_suffix(f".{SUFFIXES.get(format_, format_)}")
    own = _list_own_formats(result)
    if format_ not in (*FORMATS, *FORMS, *own):
        raise UnknownName("format", format_, [*FORMATS, *FORMS, *own], label="Known")
    if format_ in own:
        if versions != AS_PLAYED:
            raise InvalidInput(f"--rename and --superseded have no effect on --format {format_}; leave them out.")
        print(load(own[format_])(runs[0], target, cell))
        return
    if cell is not None:
        raise InvalidInput("--cell has no effect without a --format of the domain's own; leave it out.")
    if format_ in FORMS:
        whole = result.summary(metric, intervals or "conservative", failures, numbers)
        tables = write_tables(target, result.select(whole, **selection.choose()), result.domains, format_, across)
        print(f"{say_count(tables, 'table')} in {target}")
        return
    _refuse_layout(format_, numbers is not None, across is not None or selection != ALL_OF_RUN)
    print(f"{_write_rows(result, target, format_, metric, intervals, failures)} in {target}")


def _refuse_layout(format_: str, has_numbers: bool, has_choice: bool) -> None:
    """Refuse options of tables for papers where all rows are written."""
    from openfield.errors import InvalidInput

    if has_numbers:
        raise InvalidInput(f"--numbers has no effect on --format {format_}, which has all numbers; leave it out.")
    if has_choice:
        raise InvalidInput(
            f"--across, --agent, --novelty and --domain have no effect on --format {format_}, which has all rows."
        )


def _list_own_formats(result: Result) -> dict[str, str]:
    """Return the formats of the domains of a result, each with the function that writes it."""
    from openfield.domain import Domain

    known = [domain for domain in result.domains.values() if isinstance(domain, Domain)]
    return {name: place for domain in known for name, place in domain.exports.items()}


def _write_rows(
    result: Result,
    target: Path,
    format_: str,
    metric: list[str] | None,
    intervals: KindOfIntervals | None,
    failures: KindOfFailures,
) -> str:
    """Write numbers if there is a rule of intervals, cells if there is a metric, or else episodes.

    Args:
        result: What is written.
        target: The file.
        format_: `csv`, `jsonl` or `parquet`.
        metric: The metrics.
        intervals: The rule of the intervals.
        failures: Whether trials that an agent failed count.

    Returns:
        What was written, in words.
    """
    from openfield.errors import InvalidInput
    from openfield.report.export.rows import write_rows

    if intervals is not None:
        rows = result.rows("estimates", metrics=metric, intervals=intervals, failures=failures)
        return say_count(write_rows(target, *rows, format_), "number")
    if metric:
        rows = result.rows("cells", metrics=metric, failures=failures)
        return say_count(write_rows(target, *rows, format_), "cell")
    for option, given in (("--baseline", result.baseline is not None), ("--failures exclude", failures != "count")):
        if given:
            raise InvalidInput(f"{option} has no effect without --metric or --intervals; leave it out.")
    return say_count(write_rows(target, *result.rows("episodes"), format_), "episode")
