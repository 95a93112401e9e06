"""`openfield publish`: write a static site about runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from openfield.console import escape_controls


def publish(
    runs: list[Path],
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"], metavar="FOLDER")] = Path("site"),
    no_films: bool = False,
    trust: bool = False,
) -> None:
    """Write a static site: a leaderboard with intervals, a page and the data of every run, and films.

    Args:
        runs: Run files, and folders of run files.
        output: The folder to write [site]. Put it on any web server, or open its index.html.
        no_films: Film nothing: a film plays a recorded trial again.
        trust: Run a domain that a run file names even if you did not sign it.

    Example:
        openfield publish runs/ -o site/
    """
    from openfield.report.run_list import list_runs
    from openfield.view.publish import write_site

    found = sorted(Path(each.run) for each in list_runs(runs) if not each.problem)
    for note in write_site(found, output, not no_films, trust):
        print(f"openfield: {escape_controls(note)}", file=sys.stderr)
    print(f"{output / 'index.html'}: {len(found)} run{'s' if len(found) != 1 else ''}")
