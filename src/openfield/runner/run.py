"""Run a plan: enter its cells in a run file and play those that are left; read the plan of a run file to go on."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from openfield.errors import DamagedRun, InvalidInput, UnknownName
from openfield.isolation import Isolation, make_isolation
from openfield.journal.reader import CellRecord, Run
from openfield.journal.schema import RULE_FACT, SourceText
from openfield.journal.writer import Journal
from openfield.options import changed_fields, fill
from openfield.parameters import read_agent
from openfield.provenance.provenance import Remarks, RunOrigin
from openfield.provenance.trust import admit_code, list_code, trusted_domain
from openfield.record import RECORD_FACT
from openfield.runner.cluster import RESOURCES, Cluster, Players, SideBySide, assign_resources, read_kept_resources
from openfield.runner.executors import Executor, Inline, Processes
from openfield.runner.experiment import RunOptions
from openfield.runner.plan import Plan, check_plan
from openfield.runner.scheduler import CellScheduler, RunWarning, Watch, list_left
from openfield.runner.shares import parse_share, share_plan
from openfield.runner.stopping.batches import Look
from openfield.runner.stopping.rule import check_rule, read_rule

if TYPE_CHECKING:
    from openfield.runner.ray.connection import RayConnection

CHAT_CLIENTS = frozenset({"anthropic", "cohere", "groq", "langchain", "litellm", "mistralai", "ollama", "openai"})
"""Packages that ask language models: their answers cost money, and are other ones the next time."""
CHAT_PATHS = ("/chat/completions", "/v1/messages", "/v1/responses", "/api/chat", "/api/generate")
"""Ends of the addresses that others ask, with a client of HTTP."""
REMEMBER = """To keep what was answered, give it:
    def remember(self, turn, reply):
        \"\"\"Take note of a turn that was answered before.\"\"\"
        self.history.append((turn, reply))"""
"""What an agent lacks whose calls would be paid twice."""
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
        if plan.stopping is not None:
            raise InvalidInput(f"A share does not see the trials of the others: leave out {plan.stopping.words}.")
        plan = share_plan(plan, parse_share(options.share))
    resources = assign_resources(plan.agents, plan.resources, options.resources)
    return replace(plan, options=options, remarks=remarks, resources=resources)


def run_plan(
    plan: Plan,
    journal: str | Path,
    workers: Players | None = None,
    watch: Watch | None = None,
    look: Look | None = None,
) -> None:
    """Play all cells of a plan that a run file does not hold yet.

    Args:
        plan: What to play.
        journal: The run file.
        workers: What plays instead of what the options of the plan say.
        watch: Called with every entry of the record, to show progress.
        look: Looks between two batches of a run that stops by itself; `openfield.planning.interim` makes it.
    """
    if plan.stopping is not None and look is None:
        raise InvalidInput("A run that stops by itself needs a look between its batches: play it with openfield.run.")
    options, remarks = plan.options, plan.remarks
    players = options.players if workers is None else workers
    with _reaching(players, plan, Path(journal)) as reached, Journal(journal) as record, Run(record.path) as reader:
        begun = reader.facts
        if begun:
            _check_isolation(record.path, begun, plan.isolation)
            check_rule(record.path, begun, plan.stopping)
        if options.record is None and begun.get(RECORD_FACT) == "full":  # it goes on as it was begun
            options = replace(options, record="full")
            plan = replace(plan, options=options)
        facts = {**plan.describe(), **plan.facts}
        if plan.isolation is not None:
            facts[ISOLATION] = msgspec.json.encode(changed_fields(plan.isolation)).decode()
        facts |= {} if options.record is None else {RECORD_FACT: options.record}
        facts |= {} if plan.stopping is None else {RULE_FACT: msgspec.json.encode(plan.stopping).decode()}
        if plan.resources:
            facts[RESOURCES] = msgspec.json.encode(plan.resources).decode()
        scheduler = CellScheduler(record, reader, plan, watch, look)
        if not begun:
            _say_calls_paid_twice(plan, players)
        texts: list[SourceText] = []
        if scheduler.has_changes or remarks.note or remarks.tags:
            origin = RunOrigin(plan.codes, plan.domains.values(), remarks, plan.trial_code)
            facts, texts = facts | origin.facts(), origin.sources()
        record.enter(plan.cells, plan.sources, facts, texts)
        scheduler.run(_make_executor(reached, scheduler, plan, record.path))


def _say_calls_paid_twice(plan: Plan, players: Players) -> None:
    """Say before the first call which agents would ask a model again if the run were stopped and resumed."""
    at_once = players.cells if isinstance(players, SideBySide) else players if isinstance(players, int) else None
    for (_, agent), code in plan.codes.items():
        clients = sorted(code.imports & CHAT_CLIENTS)
        asks = f"imports {', '.join(clients)}" if clients else "asks a model" if code.quotes(*CHAT_PATHS) else ""
        if not asks or code.names("remember", "remembers", "stateless"):
            continue
        cells = sum(cell.agent == agent for cell in plan.cells)
        most = "" if at_once is None else f", up to {min(max(at_once, 1), cells)} of {cells},"
        text = f"{agent} {asks} and has no remember(). If the run is stopped, the calls of the"
        message = f"{text} trials under way{most} are made and paid for again when it is resumed. {REMEMBER}"
        warnings.warn(message, RunWarning, stacklevel=3)


@contextmanager
def _reaching(workers: Players, plan: Plan, journal: Path) -> Iterator[int | SideBySide | RayConnection]:
    """Connect to the cluster if one is to play, before cells are entered: one that does not answer leaves no trace."""
    if not isinstance(workers, Cluster):
        yield workers
        return
    from openfield.runner.ray.connection import RayConnection
    from openfield.runner.ray.shipment import check_agents

    check_agents(plan)
    with closing(RayConnection(workers)) as connection:
        if list_left(plan, journal):
            connection.open()
        yield connection


def _make_executor(
    workers: int | SideBySide | RayConnection, scheduler: CellScheduler, plan: Plan, path: Path
) -> Executor:
    if isinstance(workers, SideBySide):
        from openfield.runner.threads import Threads

        return Threads(scheduler.emit, workers.cells)
    if isinstance(workers, int):
        return Processes(scheduler.emit, workers) if workers else Inline(scheduler.emit, plan)
    from openfield.runner.ray.executor import RayExecutor

    return RayExecutor(scheduler.emit, scheduler.put_back, plan, path, workers)


def read_plan(
    journal: str | Path,
    options: RunOptions | None = None,
    isolation: Mapping[str, Any] | None = None,
    trust: bool = False,
) -> Plan:
    """Return the plan of a run file, to go on with it. The file is all it needs.

    Args:
        journal: The run file.
        options: How it is played and recorded.
        isolation: Changes in the rights of its isolated agents, as keys of `Isolation`.
        trust: Run code that the file names even if this user did not sign it.

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
    agents = {name: read_agent(source) for name, source in sources.items() if source is not None}
    chosen = options or RunOptions(workers=0)
    left = list_left(Plan(tuple(cells), agents, domains, options=chosen), Path(journal))
    for name in {cell.agent for cell in left} - agents.keys():
        raise InvalidInput(f"The agent '{name}' is not one openfield starts; start its own program again to resume.")
    kept = _read_isolation(facts)
    if kept is None and isolation:
        raise InvalidInput(f"{journal} was begun without --isolate. Leave it out, or use another run file.")
    if kept is not None:
        changes = {key: value for key, value in (isolation or {}).items() if key != "isolate"}
        kept = make_isolation(**{**changed_fields(kept), **changes})
    checked = check_plan(left, agents, domains, kept)
    needs = {name: needs for name, needs in read_kept_resources(facts).items() if name in checked.agents}
    made = replace(checked, cells=tuple(cells), domains=domains, resources=needs, stopping=read_rule(facts))
    return with_options(made, chosen)


def _read_isolation(facts: Mapping[str, str]) -> Isolation | None:
    """Return how the agents of a run file are isolated; None if they are not."""
    try:
        return fill(Isolation, msgspec.json.decode(facts[ISOLATION], type=dict)) if ISOLATION in facts else None
    except (msgspec.DecodeError, InvalidInput, UnknownName) as error:
        raise DamagedRun(f"The run file is damaged: its isolation cannot be read: {error}.") from None


def _check_isolation(path: Path, facts: Mapping[str, str], isolation: Isolation | None) -> None:
    """Check that a run goes on as it was begun: isolation is a statement about the run as a whole."""
    kept = _read_isolation(facts)
    if (kept is None) is not (isolation is None):
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
            raise DamagedRun(f"{journal} is damaged: agent, trial or repeat of cell {record.id} has changed.")
        if record.agent not in sources:
            raise DamagedRun(f"{journal} is damaged: its agent '{record.agent}' is not entered.")
