"""`openfield merge`: join run files into one."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

from cyclopts import Parameter

from openfield.console import print_json, say_count


def merge(
    runs: list[Path],
    /,
    *,
    output: Annotated[Path, Parameter(name=("--output", "-o"), metavar="FILE")],
    json: bool = False,
) -> None:
    """Join run files into one. A cell that several of them hold is kept once, and shares that are missing are named.

    Args:
        runs: Run files: the shares of a plan, or copies that went on apart.
        output: The new run file.
        json: Print a summary of the merge as JSON.

    Example:
        openfield merge share-*.sqlite -o runs/all.sqlite
    """
    from openfield.errors import Incomplete
    from openfield.journal.merge import merge_runs
    from openfield.journal.reader import Run
    from openfield.runner.shares import find_missing

    missing = find_missing(runs)
    counts = merge_runs(runs, output)
    with Run(output) as run:
        found = run.counts()
        left = counts.cells - found.played - found.dropped
    if json:
        print_json({**counts._asdict(), "missing": [each._asdict() for each in missing], "left": left})
    else:
        shared = f" Files overlap in {counts.shared}; equal records were kept once." if counts.shared else ""
        print(f"{say_count(counts.cells, 'cell')} of {say_count(counts.parts, 'file')} in {output}.{shared}")
        if left:
            verb = "is" if left == 1 else "are"
            print(f"{left:,} of them {verb} not over. To go on: openfield resume {quote(str(output))}")
    if missing:
        raise Incomplete(f"{output} lacks the shares {'; '.join(map(str, missing))}.")
