"""`openfield resume`: go on with a run file."""

from __future__ import annotations

from pathlib import Path

from openfield.cli.shared.parameters import NO_ISOLATION, Trust, check_cluster
from openfield.cli.shared.results import admit_all, fail_if_nothing_scored, play_plan, print_result
from openfield.isolation import IsolationOptions
from openfield.runner.experiment import RunOptions

RUN_OPTIONS = RunOptions()


def resume(
    run: Path,
    /,
    *,
    options: RunOptions = RUN_OPTIONS,
    trust: Trust = False,
    json: bool = False,
    isolation: IsolationOptions = NO_ISOLATION,
) -> None:
    """Go on with a run that was stopped.

    Args:
        run: The run file.
        options: How cells are played and recorded.
        trust: Run agents and domains that the file names even if you did not sign them.
        json: Print the numbers as JSON.
        isolation: What changes in how agents are isolated.

    Example:
        openfield resume runs/birds.sqlite
    """
    from openfield.options import fill
    from openfield.runner.run import read_plan

    chosen = fill(RunOptions, options.given)
    check_cluster(options, chosen)
    admit_all(run, trust)
    plan = read_plan(run, chosen, isolation.given, trust)
    result = play_plan(plan, run, as_json=json)
    print_result(result, json)
    fail_if_nothing_scored(result, plan.cells)
