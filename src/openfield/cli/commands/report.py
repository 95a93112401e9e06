"""`openfield report`: numbers with intervals, and a page to look at and to pass on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from openfield.cli.shared.results import print_result


def report(
    runs: list[Path],
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    metric: Annotated[list[str] | None, Parameter(consume_multiple=False)] = None,
    baseline: str | None = None,
    json: bool = False,
) -> None:
    """Show what runs say, several as one, and write the page.

    Args:
        runs: Run files.
        output: The page [beside the first run file].
        metric: Only these metrics: names, `module:NAME` or `file.py:NAME`; give it again for further ones.
        baseline: The agent that others are held against [the domain's own].
        json: Print the numbers as JSON and write a page only if `--output` names one.

    Example:
        openfield report runs/birds.sqlite --baseline naive
    """
    from openfield.result import Result

    result = Result(runs, baseline)
    print_result(result, json, metric)
    if output is not None or not json:
        page = result.page(output or runs[0].with_suffix(".html"), metric)
        if not json:
            print(f"\nPage: {page}")
