"""Read run files as one: which record of a cell counts, what its agent is called, and what it detected.

Between the journal and `Result`, which is made of these cells.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec

from openfield.cell import Cell
from openfield.core import Belief, says_novel
from openfield.domain import Domain
from openfield.errors import DamagedRun, InvalidInput, OpenfieldError, UnknownName
from openfield.journal.fingerprint import fingerprint_plan
from openfield.journal.reader import RESUMABLE, CellRecord, Run
from openfield.journal.schema import LOOSE_FACT
from openfield.parameters import shorten_agents
from openfield.provenance.rules import DomainRules, find_false_rules, own_rule, read_rules
from openfield.registry import known_domain
from openfield.trial import Trial


class RunRecord(msgspec.Struct, frozen=True):
    """The facts of a run file as a whole."""

    run: str
    """The name of the file."""
    fingerprint: str
    """Changes with any value of the run, times included."""
    plan: str
    """The fingerprint of the plan, which `openfield run --dry-run` printed before."""
    planned: int
    played: int
    retried: int
    superseded: int
    dropped: int = 0
    """Cells that are not played, because the run stopped by itself."""

    def describe(self, whose: str = "") -> dict[str, str]:
        """Return it in words, by title."""
        cells = f"{self.planned} planned, {self.played} played" + (f", {self.dropped} not needed" * (self.dropped > 0))
        attempts = f"{self.retried} retried, {self.superseded} superseded"
        words = {"cells": f"{cells}; attempts: {attempts}", "plan": self.plan, "fingerprint": self.fingerprint}
        return {f"{title}{whose}": text for title, text in words.items()}


def name_versions(files: Sequence[Sequence[CellRecord]], paths: Sequence[Path]) -> Iterator[list[CellRecord]]:
    """Yield the cells of each file; where versions of an agent contradict each other, named for their files."""
    played: dict[str, CellRecord] = {}
    differing: set[tuple[str, str]] = set()
    for cells in files:
        for cell in cells:
            other = played.setdefault(cell.id, cell)
            if None not in (cell.player, other.player) and cell.player != other.player and _contradict(cell, other):
                differing.add((cell.trial.domain, cell.agent))
    stems = [path.stem for path in paths]
    names = stems if len({*stems}) == len(stems) else [str(path) for path in paths]
    for cells, name in zip(files, names, strict=True):
        yield [
            _call(cell, f"{cell.agent} ({name})") if (cell.trial.domain, cell.agent) in differing else cell
            for cell in cells
        ]


def _call(cell: CellRecord, name: str) -> CellRecord:
    """Return a cell of an agent that is called something else; it is another cell then."""
    return msgspec.structs.replace(cell, agent=name, id=Cell(name, cell.trial, cell.repeat).id)


def rename_agents(cells: list[CellRecord], names: Mapping[str, str]) -> list[CellRecord]:
    """Return cells whose agents have other names; they may be named as tables show them, in short.

    Raises:
        UnknownName: There is no agent of a name.
        InvalidInput: Two agents would have the same name, or one that no agent can have.
    """
    known = {cell.agent for cell in cells}
    shown = {short: agent for agent, short in shorten_agents(known).items()}
    for name, new in names.items():
        if name not in known and name not in shown:
            raise UnknownName("agent", name, known, label="In these runs")
        if not new.isprintable():
            raise InvalidInput(f"The name {new!r} of '{name}' has characters that cannot be printed.")
    names = {name if name in known else shown[name]: new for name, new in names.items()}
    made = [names.get(name, name) for name in known]
    if len({*made}) < len(made):
        twice = next(name for name in made if made.count(name) > 1)
        raise InvalidInput(f"Two agents would be called '{twice}'. Choose another name.")
    return [msgspec.structs.replace(cell, agent=names.get(cell.agent, cell.agent)) for cell in cells]


def list_superseded(run: Run, cells: Sequence[CellRecord]) -> Iterator[CellRecord]:
    """Yield what earlier versions of agents played to the end, as agents of their own."""
    known, found = {cell.id: cell for cell in cells}, dict[tuple[str, str], CellRecord]()
    players = run.players()
    for attempt in run.attempts():
        cell, player = known[attempt.cell], players.get((attempt.cell, attempt.number))
        planned = sum(phase.episodes for phase in cell.trial.phases)
        if attempt.outcome != "superseded" or player is None or player == cell.player or not planned:
            continue
        if len(attempt.episodes) == planned:
            earlier = msgspec.structs.replace(
                _call(cell, f"{cell.agent} (version {player[:8]})"),
                outcome="done",
                note="",
                attempt=attempt.number,
                player=player,
                episodes=tuple(attempt.episodes),
                steps=sum(each.turns for each in attempt.episodes) + 1,
            )
            found[earlier.id, player] = earlier
    yield from found.values()


def read_cells(run: Run, superseded: bool = False) -> tuple[list[CellRecord], dict[str, Domain[Any] | DomainRules]]:
    """Return the cells of a run file, with detections by the rules of their domains, and these domains.

    A trial that is one training set counts as a test, as in the papers.

    Args:
        run: The run file.
        superseded: Add what earlier versions of agents played.
    """
    from openfield.metrics.performance import count_as_test

    cells = run.cells()
    cells += list_superseded(run, cells) if superseded else ()
    loose = {key.removeprefix(LOOSE_FACT) for key in run.facts if key.startswith(LOOSE_FACT)}
    cells = [msgspec.structs.replace(cell, loose=True) if cell.id in loose else cell for cell in cells]
    domains = {name: _find_domain(run, name) for name in sorted({cell.trial.domain for cell in cells})}
    telling = {cell.agent for cell in cells if any(episode.belief for episode in cell.episodes)}
    detected = (_detect(count_as_test(cell), domains[cell.trial.domain]) for cell in cells)
    return [_state(cell, run) if cell.agent in telling else cell for cell in detected], domains


def _state(cell: CellRecord, run: Run) -> CellRecord:
    """Return a cell with its beliefs step by step, if its test counts steps or has only borders between tasks."""
    from openfield.metrics.performance import has_borders

    if not any(phase.steps for phase in cell.trial.phases) and not has_borders(cell.trial):
        return cell
    return msgspec.structs.replace(cell, stated=run.stated_beliefs(cell.id, cell.attempt))


def check_verdicts(run: Run) -> Iterator[str]:
    """Yield the recorded rules and verdicts on beliefs that domains contradict, where they are at hand."""
    verdicts, facts = run.verdicts(), run.facts
    find = cache(partial(_find_domain, run))
    try:
        for name in {trial.domain for trial in run.trials()}:
            read_rules(facts, name)
    except DamagedRun as error:
        yield str(error)
        return
    for domain in map(find, sorted({trial.domain for trial in run.trials()})):
        yield from () if isinstance(domain, DomainRules) else find_false_rules(facts, domain)
    for attempt in run.attempts() if verdicts else ():
        rule = _rule_of(find(attempt.trial.domain), attempt.trial)
        for episode in attempt.episodes:
            recorded = verdicts.pop((attempt.cell, attempt.number, episode.number), None)
            if recorded is not None and rule is not None and recorded != (episode.belief and rule(episode.belief)):
                said = "there is no belief" if episode.belief is None else f"its belief says {not recorded}"
                yield f"{attempt.place}, episode {episode.number}: detected is recorded as {recorded}; {said}."
    for cell, attempted, number in verdicts:
        yield f"Cell {cell}, attempt {attempted}, episode {number} is not entered, but has a verdict."


def choose_record(known: CellRecord, other: CellRecord, path: Path) -> CellRecord:
    """Return which of two records of a cell counts: the one that is over, or that got further.

    Args:
        known: The record of a file that was read before.
        other: The record of the same cell in another file.
        path: That file.

    Raises:
        InvalidInput: Both are over and differ.
    """
    is_over, is_other_over = known.outcome not in RESUMABLE, other.outcome not in RESUMABLE
    if _contradict(known, other):
        raise InvalidInput(
            f"{path} and an earlier file contradict each other on cell {known.id} of '{known.agent}'. "
            "Read them apart, or name the agents differently: --agent NAME=AGENT."
        )
    return other if (is_other_over, other.steps) > (is_over, known.steps) else known


def _contradict(known: CellRecord, other: CellRecord) -> bool:
    """Return whether two records of a cell are over and differ."""
    over = known.outcome not in RESUMABLE and other.outcome not in RESUMABLE
    return over and (known.outcome, known.episodes) != (other.outcome, other.episodes)


def read_record(path: Path) -> RunRecord:
    """Return the facts of a run file as a whole."""
    with Run(path) as run:
        return RunRecord(path.name, run.fingerprint(), fingerprint_plan(run.planned().values()), *run.counts())


def _find_domain(run: Run, name: str) -> Domain[Any] | DomainRules:
    """Return a domain that is at hand, or else what the file says of it: reading imports nothing a file names."""
    facts = run.facts
    try:
        return known_domain(name, facts.get(f"domain {name}", ""))
    except OpenfieldError as error:
        if f"rules {name}" not in facts:
            warnings.warn(f"{run.path}: beliefs of 0.5 and more count as detections: {error}", stacklevel=3)
        return read_rules(facts, name)


def _rule_of(domain: Domain[Any] | DomainRules, trial: Trial) -> Callable[[Belief], bool] | None:
    """Return the rule for detections in a trial; None where only the recorded verdicts are known."""
    if isinstance(domain, Domain):
        return own_rule(domain, trial) or says_novel
    threshold = domain.threshold
    return None if threshold is None else lambda belief: belief.highest >= threshold


def _detect(cell: CellRecord, domain: Domain[Any] | DomainRules) -> CellRecord:
    """Return a cell with the detections of its episodes by the rule of its domain."""
    rule = _rule_of(domain, cell.trial)
    if rule is None or not any(episode.belief for episode in cell.episodes):
        return cell
    episodes = [
        episode if episode.belief is None else msgspec.structs.replace(episode, detected=rule(episode.belief))
        for episode in cell.episodes
    ]
    return msgspec.structs.replace(cell, episodes=tuple(episodes))
