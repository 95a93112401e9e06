"""Run a plan: enter its cells in a run file and play those that are left; read the plan of a run file to go on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from openfield.errors import DamagedRun, InvalidInput
from openfield.isolation import Isolation, make_isolation
from openfield.journal.reader import CellRecord, Run
from openfield.journal.writer import Journal
from openfield.provenance.provenance import Remarks, RunOrigin
from openfield.provenance.trust import admit_code, list_code, sign_code, trusted_domain
from openfield.record import RECORD_FACT
from openfield.registry import list_trial_code
from openfield.runner.cluster import RESOURCES, Cluster, Players, SideBySide, assign_resources, read_kept_resources
from openfield.runner.executors import Executor, Inline, Processes
from openfield.runner.experiment import RunOptions
from openfield.runner.plan import Plan, check_plan, facts_of
from openfield.runner.scheduler import CellScheduler, Watch, is_left, is_outdated
from openfield.runner.shares import parse_share, share_plan

if TYPE_CHECKING:
    from openfield.runner.ray.connection import RayConnection

ISOLATION = "isolation"
"""The fact of a run file that says how its agents are isolated."""


def with_options(plan: Plan, options: RunOptions, experiment: Path | None = None) -> Plan:
    """Return a plan that is played with these options: its share of the cells, and what agents need beside it.

    Args:
        plan: The plan.
        options: How it is played and recorded.
        experiment: The file that describes the run, if there is one.
    """
    remarks = Remarks(options.note, options.tags, experiment)
    if options.share is not None:
        plan = share_plan(plan, parse_share(options.share))
    resources = assign_resources(plan.agents, plan.resources, options.resources)
    return replace(plan, options=options, remarks=remarks, resources=resources)


def run_plan(
    plan: Plan,
    journal: str | Path,
    workers: Players | None = None,
    retry: bool = False,
    watch: Watch | None = None,
) -> None:
    """Play all cells of a plan that a run file does not hold yet.

    Args:
        plan: What to play.
        journal: The run file.
        workers: What plays instead of what the options of the plan say.
        retry: Play cells again that an agent failed.
        watch: Called with every entry of the record, to show progress.
    """
    options, remarks = plan.options, plan.remarks
    players = options.players if workers is None else workers
    with _reaching(players, plan, Path(journal), retry) as reached, Journal(journal) as record:
        _check_isolation(record.path, plan.isolation)
        if options.record is None and record.keeps_arrays:  # it goes on as it was begun
            options = replace(options, record="full")
            plan = replace(plan, options=options)
        facts = {**facts_of(plan.cells), **plan.facts, **_isolation_facts(plan.isolation)}
        facts |= {} if options.record is None else {RECORD_FACT: options.record}
        facts |= sign_code(plan.sources.values())
        if plan.resources:
            facts[RESOURCES] = msgspec.json.encode(plan.resources).decode()
        record.enter(plan.cells, plan.sources, facts)
        scheduler = CellScheduler(record, plan, retry, watch)
        if scheduler.has_changes or remarks.note or remarks.tags:
            wrappers = list_trial_code(cell.trial for cell in plan.cells)
            origin = RunOrigin(plan.codes, plan.domains.values(), remarks, wrappers)
            record.enter((), {}, origin.facts(), origin.sources())
        scheduler.run(_make_executor(reached, scheduler, plan, record.path))


@contextmanager
def _reaching(workers: Players, plan: Plan, journal: Path, retry: bool) -> Iterator[int | SideBySide | RayConnection]:
    """Connect to the cluster if one is to play, before cells are entered: one that does not answer leaves no trace."""
    if not isinstance(workers, Cluster):
        yield workers
        return
    from openfield.runner.ray.connection import RayConnection
    from openfield.runner.ray.shipment import check_agents

    check_agents(plan)
    connection = RayConnection(workers)
    try:
        if _is_something_left(plan, journal, retry):
            connection.open()
        yield connection
    finally:
        connection.close()


def _is_something_left(plan: Plan, journal: Path, retry: bool) -> bool:
    """Return whether cells of a plan are to be played. Those of earlier agents do not count: they are entered."""
    if not journal.exists() or not journal.stat().st_size:
        return True
    with Run(journal) as run:
        known = run.statuses()
    return any(cell.id not in known or is_left(known[cell.id].outcome, retry) for cell in plan.cells)


def _make_executor(
    workers: int | SideBySide | RayConnection, scheduler: CellScheduler, plan: Plan, path: Path
) -> Executor:
    if isinstance(workers, SideBySide):
        from openfield.runner.threads import Threads

        return Threads(scheduler.emit, workers.cells)
    if isinstance(workers, int):
        return Processes(scheduler.emit, workers) if workers else Inline(scheduler.emit)
    from openfield.runner.ray.executor import RayExecutor

    return RayExecutor(scheduler.emit, scheduler.put_back, plan, path, workers)


def read_plan(
    journal: str | Path,
    retry: bool = False,
    isolation: Mapping[str, Any] | None = None,
    trust: bool = False,
    keep: bool = False,
) -> Plan:
    """Return the plan of a run file, to go on with it. The file is all it needs.

    Args:
        journal: The run file.
        retry: Play cells again that an agent failed.
        isolation: What changes in what its isolated agents may see and use, as keys of `Isolation`.
        trust: Run code that the file names even if this user did not sign it.
        keep: Keep cells that an earlier version of an agent played.

    Raises:
        InvalidInput: The file names code that may not run here, or has nothing to play.
    """
    with Run(journal) as run:
        facts, sources = run.facts, run.agents
        records = run.cells(with_episodes=False)
        _check_records(journal, records, sources)
        admit_code(run, list_code(run), trust)
        cells = [record.cell for record in records]
        domains = {name: trusted_domain(run, name, trust) for name in {cell.trial.domain for cell in cells}}
    agents = {name: source for name, source in sources.items() if source is not None}
    plan = Plan(tuple(cells), agents, domains)
    left = [
        record.cell
        for record in records
        if is_left(record.outcome, retry) or (is_outdated(record.cell, record.player, plan) and not keep)
    ]
    for name in {cell.agent for cell in left} - agents.keys():
        raise InvalidInput(f"The agent '{name}' is not one openfield starts; start its own program again to resume.")
    kept = _read_isolation(facts)
    if kept is None and isolation:
        raise InvalidInput(f"{journal} was begun without --isolate. Leave it out, or use another run file.")
    if kept is not None:
        changes = {key: value for key, value in (isolation or {}).items() if key != "isolate"}
        kept = make_isolation(**{**msgspec.to_builtins(kept), **changes})
    checked = check_plan(left, agents, kept)
    needs = {name: needs for name, needs in read_kept_resources(facts).items() if name in checked.agents}
    resources = assign_resources(checked.agents, needs)
    return replace(checked, cells=tuple(cells), domains=domains, resources=resources)


def _read_isolation(facts: Mapping[str, str]) -> Isolation | None:
    """Return how the agents of a run file are isolated; None if they are not."""
    try:
        return msgspec.json.decode(facts[ISOLATION], type=Isolation) if ISOLATION in facts else None
    except msgspec.DecodeError as error:
        raise DamagedRun(f"The run file is damaged: what it says of isolation cannot be read: {error}.") from None


def _isolation_facts(isolation: Isolation | None) -> dict[str, str]:
    return {} if isolation is None else {ISOLATION: msgspec.json.encode(isolation).decode()}


def _check_isolation(path: Path, isolation: Isolation | None) -> None:
    """Check that a run goes on as it was begun: what its numbers are worth is said of it as a whole."""
    with Run(path) as run:
        facts = run.facts
    kept = _read_isolation(facts)
    if facts and (kept is None) is not (isolation is None):
        begun, now = ("without", "Leave it out") if kept is None else ("with", "Add it")
        raise InvalidInput(f"{path} was begun {begun} --isolate. {now}, or use another run file.")
    if kept is not None and isolation is not None and kept.bubblewrap and not isolation.bubblewrap:
        raise InvalidInput(f"{path} was begun inside bubblewrap, which does not work here. Use another run file.")


def _check_records(journal: str | Path, records: Iterable[CellRecord], sources: Mapping[str, str | None]) -> None:
    """Check that a run file has cells, that their ids fit their content, and that their agents are entered."""
    if not records:
        raise InvalidInput(
            f"{journal} has no cells yet: it was stopped before it began. The command that made it begins anew."
        )
    for record in records:
        if record.cell.id != record.id:
            raise DamagedRun(f"{journal} is damaged: agent, trial or repeat of cell {record.id} is not what it was.")
        if record.agent not in sources:
            raise DamagedRun(f"{journal} is damaged: its agent '{record.agent}' is not entered.")
