"""`openfield export`: episodes as a table for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter


def export(
    runs: list[Path],
    /,
    *,
    format_: Annotated[Literal["csv", "jsonl", "parquet"], Parameter(name=["--format", "-f"])] = "csv",
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
) -> None:
    """Write all episodes as a table, one row each.

    Parameters
    ----------
    runs
        Run files.
    format_
        The kind of file.
    output
        The file [beside the first run file].
    """
    from openfield.report.export import write_episodes
    from openfield.result import Result

    target = output or runs[0].with_suffix(f".{format_}")
    rows = write_episodes(target, Result(runs).cells, format_)
    print(f"{rows:,} episodes in {target}")
