"""`openfield resume`: goes on with a run file."""

from __future__ import annotations

from pathlib import Path

from openfield.cli.common import print_result


def resume(run: Path, /, *, workers: int = 2, retry: bool = False, json: bool = False) -> None:
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
    from openfield.campaign import resume as resume_run
    from openfield.cli.progress import showing_progress
    from openfield.result import Result

    known = Result([run])
    agents = dict.fromkeys(cell.agent for cell in known.cells)
    trials = list({cell.trial.id: cell.trial for cell in known.cells}.values())
    repeats = 1 + max((cell.repeat for cell in known.cells), default=0)
    with showing_progress(agents, trials, repeats, known.domains) as watch:
        result = resume_run(run, workers, retry, watch)
    print_result(result, json)
