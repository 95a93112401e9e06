"""`openfield resume`: go on with a run file."""

from __future__ import annotations

from pathlib import Path

from openfield.cli.shared.results import agents_aside, fail_if_nothing_scored, print_result
from openfield.options import Whole


def resume(run: Path, /, *, workers: Whole = 2, retry: bool = False, json: bool = False) -> None:
    """Go on with a run that was stopped.

    Args:
        run: The run file.
        workers: Processes that play [2]; 0 plays in this one.
        retry: Play the cells again that an agent failed.
        json: Print the numbers as JSON.

    Example:
        openfield resume runs/birds.sqlite
    """
    from openfield.cli.shared.progress import showing_progress
    from openfield.result import Result
    from openfield.runner.run import read_plan, run_plan

    plan = read_plan(run, retry)
    with showing_progress(plan, run) as watch, agents_aside(json):
        run_plan(plan, run, workers, retry, watch)
    result = Result([run])
    print_result(result, json)
    fail_if_nothing_scored(result, plan.cells)
