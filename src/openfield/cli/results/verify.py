"""`openfield verify`: prove that a run file is as it was written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from openfield.cli.shared.parameters import Trust
from openfield.cli.shared.results import admit_domains, print_record
from openfield.console import print_json

if TYPE_CHECKING:
    from openfield.journal.reader import Run
    from openfield.run_files import RunRecord

MAX_NAMED = 10
"""Cells that are named in a line."""


def verify(
    run: Path,
    /,
    *,
    fingerprint: Annotated[str | None, Parameter(metavar="DIGITS")] = None,
    plan: Annotated[str | None, Parameter(metavar="DIGITS|FILE")] = None,
    replay: bool = False,
    trust: Trust = False,
    json: bool = False,
) -> None:
    """Compute every value of a run file again from its turns, and name those that differ.

    Args:
        run: The run file.
        fingerprint: Compare the run with a published fingerprint.
        plan: Compare the plan of the run with the fingerprint that `run --dry-run` printed, or the run with what a
            file of `run --register` says.
        replay: Play the recorded replies again in fresh worlds, and compare every turn and truth.
        trust: Replay in domains that the file names even if you did not sign them.
        json: Print the faults as JSON.

    Example:
        openfield verify runs/birds.sqlite --replay
    """
    from openfield.errors import DamagedRun, InvalidInput
    from openfield.run_files import read_record

    if trust and not replay:
        raise InvalidInput("--trust needs --replay: nothing else runs code that the file names.")
    faults = _find_faults(run, replay, trust)
    record = None if faults else read_record(run)
    if record is not None and fingerprint is not None and fingerprint.strip().lower() != record.fingerprint:
        faults.append(f"The fingerprint of {run} is {record.fingerprint}, not {fingerprint}.")
    if record is not None and plan is not None:
        faults += _compare_plan(run, record, plan)
    unplayed = [] if faults else _list_unplayed(run)
    if json:
        print_json({"run": str(run), "faults": faults, "record": record, "unplayed": unplayed})
    elif record is not None and not faults:
        print(f"{run} is as it was written{', and its worlds show the same turns' if replay else ''}.")
        if imported := _count_imported(run):
            print(f"{imported} of its cells were imported: their results were played elsewhere and are taken as given.")
        if unplayed:
            more = f" and {len(unplayed) - MAX_NAMED} more" if len(unplayed) > MAX_NAMED else ""
            print(f"Planned and not played yet: {', '.join(unplayed[:MAX_NAMED])}{more}.")
        print_record(record)
    if faults:
        raise DamagedRun("; ".join(fault.removesuffix(".") for fault in faults) + ".")


def _compare_plan(run: Path, record: RunRecord, wanted: str) -> Iterator[str]:
    """Yield how the plan of a run is not the one with a fingerprint, or the run not what a file registers."""
    if re.fullmatch(r"\s*[0-9a-fA-F]{1,64}\s*", wanted):
        if wanted.strip().lower() != record.plan:
            yield f"The fingerprint of the plan of {run} is {record.plan}, not {wanted}: other cells are in it."
        return
    from openfield.provenance.registration import list_deviations, read_registration_file
    from openfield.result import Result

    registered, result = read_registration_file(Path(wanted)), Result([run])
    if result.registration is None:
        yield f"{run} was not registered before its first trial."
    elif result.registration != registered:
        yield f"{run} was registered otherwise than {wanted} says."
    if registered.plan != record.plan:
        yield f"The fingerprint of the plan of {run} is {record.plan}, and {wanted} registers {registered.plan}."
    yield from list_deviations(registered, result.cells)


def _list_unplayed(path: Path) -> list[str]:
    """Return the planned cells that were never begun, each with its agent."""
    from openfield.journal.reader import Run

    with Run(path) as run:
        return [
            f"{cell.id} ({cell.agent})"
            for cell in run.cells(with_episodes=False)
            if not cell.attempt and not cell.dropped
        ]


def _count_imported(path: Path) -> int:
    from openfield.journal.reader import Run

    with Run(path) as run:
        return sum(cell.trial.imported is not None for cell in run.cells(with_episodes=False))


def _find_false_registration(run: Run) -> Iterator[str]:
    """Yield that what was registered of a run was changed since, if it was."""
    from openfield.errors import DamagedRun
    from openfield.provenance.registration import read_registration

    try:
        read_registration(run.facts, run.path)
    except DamagedRun as error:
        yield str(error)


def _find_faults(path: Path, replay: bool, trust: bool) -> list[str]:
    from openfield.domain import check_version, make_world
    from openfield.journal.reader import Run
    from openfield.journal.verification import find_false_turns
    from openfield.provenance.provenance import find_false_players
    from openfield.provenance.rules import find_false_rules
    from openfield.run_files import check_verdicts

    with Run(path) as run:
        faults = run.verify()
        faults += [] if faults else [*check_verdicts(run), *find_false_players(run), *_find_false_registration(run)]
        if replay and not faults:
            domains = admit_domains(run, trust)
            for trial in run.trials():
                check_version(domains[trial.domain], trial)
            faults += [fault for domain in domains.values() for fault in find_false_rules(run.facts, domain)]
            for attempt in run.attempts():
                steps = run.raw_steps(attempt.cell, attempt.number)
                faults += find_false_turns(attempt, partial(make_world, domains[attempt.trial.domain]), steps)
    return faults
