"""`openfield resume`: go on with a run file."""

from __future__ import annotations

from pathlib import Path

from openfield.cli.shared.parameters import (
    ALL,
    HERE,
    NO_ISOLATION,
    NO_REMARKS,
    ClusterOptions,
    Concurrency,
    IsolationOptions,
    PaceOptions,
    RecordOptions,
    Trust,
)
from openfield.cli.shared.results import fail_if_nothing_scored, play_plan, print_result
from openfield.cli.shared.trust import admit_all
from openfield.options import Whole, given


def resume(
    run: Path,
    /,
    *,
    workers: Whole = 2,
    cluster: ClusterOptions = HERE,
    concurrency: Concurrency = None,
    retry: bool = False,
    record: RecordOptions = NO_REMARKS,
    trust: Trust = False,
    json: bool = False,
    isolation: IsolationOptions = NO_ISOLATION,
    pace: PaceOptions = ALL,
) -> None:
    """Go on with a run that was stopped.

    Args:
        run: The run file.
        workers: Processes that play [2]; 0 plays in this one.
        cluster: Where cells are played.
        concurrency: Play so many cells at once in this process, for agents that wait, such as language models.
        retry: Play the cells again that an agent failed.
        record: What is kept and noted.
        trust: Run agents and domains that the file names even if you did not sign them.
        json: Print the numbers as JSON.
        isolation: What changes in how agents are isolated.
        pace: How much is played.

    Example:
        openfield resume runs/birds.sqlite
    """
    from openfield.runner.cluster import PROCESSES, choose_workers
    from openfield.runner.run import read_plan

    remarks = record.remarks()
    admit_all(run, trust)
    read = read_plan(run, retry, given(isolation), trust, record.keep)
    plan = cluster.apply(pace.apply(record.change(read)))
    players = cluster.check(choose_workers(workers, cluster.executor or PROCESSES, concurrency))
    result = play_plan(plan, run, players, retry, json, record.keep, remarks)
    print_result(result, json)
    fail_if_nothing_scored(result, plan.cells)
