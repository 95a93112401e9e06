"""`openfield report`: print numbers with intervals, and write a page to look at and to pass on."""

from __future__ import annotations

import sys
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

from cyclopts import Parameter

from openfield.cli.shared.parameters import AS_PLAYED, NUMBERS, Metrics, NumberOptions, Output, Trust, VersionOptions
from openfield.cli.shared.results import print_result
from openfield.console import escape_controls, make_console

FIGURE = ("figure", "", "figure of a paper")
OTHERS = {
    ".pdf": FIGURE,
    ".svg": FIGURE,
    ".png": FIGURE,
    ".tex": ("export", "--format latex ", "table in LaTeX"),
    ".md": ("export", "--format markdown ", "table in Markdown"),
    ".csv": ("export", "", "table of episodes"),
}
"""The commands that write other files, by their suffix: the command, its options, and what it writes."""


def report(
    runs: list[Path],
    /,
    *,
    output: Output = None,
    metric: Metrics = None,
    baseline: Annotated[str | None, Parameter(metavar="AGENT")] = None,
    numbers: NumberOptions = NUMBERS,
    versions: VersionOptions = AS_PLAYED,
    objectives: bool = False,
    films: bool = False,
    trust: Trust = False,
    json: bool = False,
) -> None:
    """Print the numbers of runs, several as one, and write the report page.

    Args:
        runs: Run files.
        output: The page to write [beside the first run file].
        metric: Show only this metric: a name, `module:NAME` or `file.py:NAME`. Repeat it for further ones.
        baseline: The agent that others are compared with [the domain's own].
        numbers: Which numbers are shown, and how they are computed.
        versions: How versions of agents are shown.
        objectives: Add what agents did, without reward, in training, before the onset and after it.
        films: Add a film of each domain that draws to the page: the first episode in a changed world, played again.
        trust: Film in domains that run files name even if you did not sign them.
        json: Print the numbers as JSON, and write a page only if `--output` names one.

    Example:
        openfield report runs/birds.sqlite --baseline naive
    """
    from openfield.result import Result

    if output is not None:
        _check_page(output, runs)
    result = Result(runs, baseline, **versions.choose())
    found = result.objectives() if objectives else None
    print_result(result, json, metric, numbers, {} if found is None else {"objectives": found})
    if found is not None and not json:
        _print_objectives(found)
    if not json and result.provenance:
        from openfield.report.terminal import render_provenance

        make_console().print(render_provenance(result.provenance))
    if output is not None or not json:
        taken = result.films(trust) if films else []
        path = output or runs[0].with_suffix(".html")
        page = result.page(path, found, taken, **numbers.choose(metric))
        if not json:
            print(f"\nPage: {page}")


def _check_page(output: Path, runs: list[Path]) -> None:
    """Refuse a file that is not a page, and name the command that writes it."""
    from openfield.errors import InvalidInput

    words = OTHERS.get(output.suffix.lower())
    if words is not None:
        command = f"openfield {words[0]} {' '.join(quote(str(run)) for run in runs)} {words[1]}-o {quote(str(output))}"
        raise InvalidInput(f"A report is an HTML page, and {output} is not. For a {words[2]}: {command}")


def _print_objectives(found: dict[str, Any]) -> None:
    """Print the objectives stage by stage, and a line for each run that cannot be counted."""
    from openfield.report.objectives import runs_lines

    print("\nObjectives without reward")
    for line in runs_lines(found):
        print(escape_controls(line))
    for run in found["runs"]:
        if "error" in run:
            print(f"openfield: {escape_controls(run['error'])}", file=sys.stderr)
