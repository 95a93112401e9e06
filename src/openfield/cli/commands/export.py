"""`openfield export`: episodes, or the numbers of every cell, as a table for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def export(
    runs: list[Path],
    /,
    *,
    format_: Annotated[str, Parameter(name=["--format", "-f"])] = "csv",
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    metric: Annotated[list[str] | None, Parameter(consume_multiple=False)] = None,
    baseline: str | None = None,
    cell: str | None = None,
) -> None:
    """Write all episodes as a table, one row each, or the numbers of every cell, or what a domain offers beside.

    Args:
        runs: Run files.
        format_: `csv`, `jsonl`, `parquet`, or a form of the run's domain, such as the logs of birds.
        output: The file [beside the first run file].
        metric: One row for each scored cell with the numbers of this metric; give it again for further ones.
        baseline: The agent that others are held against [the domain's own].
        cell: A cell's id, or how it begins, for forms of a domain that can show one cell.

    Example:
        openfield export runs/birds.sqlite --format parquet
    """
    from openfield.errors import UnknownName
    from openfield.registry import load
    from openfield.report.export import FORMATS, write_episodes, write_numbers
    from openfield.result import Result

    result = Result(runs, baseline)
    target = output or runs[0].with_suffix(f".{format_}")
    own = {name: place for domain in result.domains.values() for name, place in getattr(domain, "exports", {}).items()}
    if format_ not in (*FORMATS, *own):
        raise UnknownName("format", format_, [*FORMATS, *own], label="Known")
    if format_ in own:
        print(load(own[format_])(runs[0], target, cell))
        return
    _refuse_idle(
        {"--cell": (cell, "a --format of the domain's own"), "--baseline": (None if metric else baseline, "--metric")}
    )
    if metric:
        print(f"{write_numbers(target, result.numbers(metric), format_):,} cells in {target}")
        return
    rows = write_episodes(target, result.cells, format_)
    print(f"{rows:,} episodes in {target}")


def _refuse_idle(given: dict[str, tuple[str | None, str]]) -> None:
    """Refuses options that would have no say in the table."""
    from openfield.errors import InvalidInput

    for option, (value, need) in given.items():
        if value is not None:
            raise InvalidInput(f"{option} has no effect without {need}; leave it out.")
