"""`openfield report`: print numbers with intervals, and write a page to look at and to pass on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from openfield.cli.shared.parameters import USUAL, Metrics, NumberOptions, Output
from openfield.cli.shared.results import print_result


def report(
    runs: list[Path],
    /,
    *,
    output: Output = None,
    metric: Metrics = None,
    baseline: Annotated[str | None, Parameter(metavar="AGENT")] = None,
    numbers: NumberOptions = USUAL,
    json: bool = False,
) -> None:
    """Print the numbers of runs, several as one, and write the report page.

    Args:
        runs: Run files.
        output: The page to write [beside the first run file].
        metric: Show only this metric: a name, `module:NAME` or `file.py:NAME`. Repeat it for further ones.
        baseline: The agent that others are compared with [the domain's own].
        numbers: How numbers are computed.
        json: Print the numbers as JSON, and write a page only if `--output` names one.

    Example:
        openfield report runs/birds.sqlite --baseline naive
    """
    from openfield.result import Result

    result = Result(runs, baseline)
    print_result(result, json, metric, numbers)
    if not json and result.provenance:
        from rich.console import Console

        from openfield.report.terminal import render_provenance

        Console().print(render_provenance(result.provenance))
    if output is not None or not json:
        page = result.page(output or runs[0].with_suffix(".html"), metric, numbers.intervals, numbers.failures)
        if not json:
            print(f"\nPage: {page}")
