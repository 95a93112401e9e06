"""`openfield figure`: draw a figure for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from openfield.cli.shared.parameters import (
    ALL_OF_RUN,
    AS_PLAYED,
    NUMBERS,
    Metrics,
    NumberOptions,
    Output,
    SelectionOptions,
    VersionOptions,
)
from openfield.options import MORE

Kind = Literal["curves", "belief", "intervals", "profile", "learning"]
"""What a figure shows."""
Across = Literal["domains", "novelties"]
"""Where it shows numbers."""


def figure(
    runs: list[Path],
    /,
    *,
    kind: Annotated[Kind, Parameter(metavar="KIND")] = "curves",
    output: Output = None,
    width: Annotated[str, Parameter(metavar="LENGTH")] = "3.3in",
    data: bool = False,
    selection: SelectionOptions = ALL_OF_RUN,
    across: Annotated[Across | None, Parameter(group=MORE, metavar="WHAT")] = None,
    numbers: Annotated[NumberOptions, Parameter(name="*", group=MORE)] = NUMBERS,
    metric: Annotated[Metrics, Parameter(group=MORE)] = None,
    versions: VersionOptions = AS_PLAYED,
) -> None:
    """Draw a figure for a paper: PDF, SVG or PNG.

    Args:
        runs: Run files.
        kind: Curves of performance around the onset, curves of the belief, intervals of numbers, the performance
            profile of each domain, or the learning of a curriculum [curves].
        output: The file to write: its name ends with .pdf, .svg or .png [beside the first run file, as PDF].
        width: How wide the figure is, such as 3.3in, 8.4cm, 84mm or 240pt [3.3in, a column of most venues].
        data: Write its points beside it, as CSV.
        selection: What of the runs is shown.
        across: Show numbers in each domain or in each novelty [novelties].
        numbers: Which numbers are shown, and how they are computed.
        metric: Take the numbers of this metric. Repeat it for further ones.
        versions: How versions of agents are shown.

    Example:
        openfield figure runs/birds.sqlite --kind intervals -o fig.pdf
    """
    from openfield.console import escape_controls
    from openfield.report.export.paper_figure import check_format
    from openfield.result import Result

    target = output or runs[0].with_name(f"{runs[0].stem}-{kind}.pdf")
    check_format(target)
    result = Result(runs, **versions.choose())
    drawn = result.figure(kind, width, **numbers.choose(metric), **selection.choose(), across=across)
    print(f"{drawn.save(target)}: {escape_controls(drawn.caption)}")
    if data:
        print(f"Its points: {drawn.save_data(target.with_suffix('.csv'))}")
