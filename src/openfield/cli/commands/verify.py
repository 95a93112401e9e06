"""`openfield verify`: check that every part of a run file is as it was written."""

from __future__ import annotations

from pathlib import Path

from openfield.console import print_json


def verify(run: Path, /, *, json: bool = False) -> None:
    """Check every part of a run file and name the damaged ones.

    Args:
        run: The run file.
        json: Print the faults as JSON.

    Example:
        openfield verify runs/birds.sqlite
    """
    from openfield.errors import DamagedRun
    from openfield.journal.reader import Run

    with Run(run) as opened:
        faults = opened.verify()
    if json:
        print_json({"run": str(run), "faults": faults})
    elif not faults:
        print(f"{run} is as it was written.")
    if faults:
        raise DamagedRun("; ".join(faults))
