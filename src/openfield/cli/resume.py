"""`openfield resume`: goes on with a run file."""

from __future__ import annotations

from pathlib import Path

from openfield.cli.shared.common import Whole, agents_aside, fail_if_nothing_scored, print_result


def resume(run: Path, /, *, workers: Whole = 2, retry: bool = False, json: bool = False) -> None:
    """Go on with a run that was stopped.

    Parameters
    ----------
    run
        The run file.
    workers
        Processes that play; 0 plays in this one.
    retry
        Try cells again that an agent failed.
    json
        Print the numbers as JSON.
    """
    from openfield.cli.shared.progress import showing_progress
    from openfield.result import Result
    from openfield.runner.run import resume as resume_run

    known = Result([run])
    cells = [record.cell for record in known.cells]
    with showing_progress(cells, run, known.domains) as watch, agents_aside(json):
        result = resume_run(run, workers, retry, watch)
    print_result(result, json)
    fail_if_nothing_scored(result, cells)
