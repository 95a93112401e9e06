"""Register a run before its first trial: write what it asks, of which agents, and when it stops, and keep it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from openfield.errors import InvalidInput
from openfield.files.atomic import replacing
from openfield.journal.fingerprint import fingerprint_plan, write_trial
from openfield.journal.reader import Run
from openfield.metrics.catalogue import find_metrics
from openfield.metrics.selection import WITH_CHANGE, WITHOUT_CHANGE, name_numbers
from openfield.provenance.registration import (
    REGISTRATION_FACT,
    Registration,
    read_registration,
    read_registration_file,
)
from openfield.runner.experiment import RegisterOptions
from openfield.runner.plan import Plan


def register(plan: Plan, options: RegisterOptions, file: str, run: Path) -> Plan:
    """Return a plan that carries its registration, and write the file of it.

    Args:
        plan: The plan.
        options: What is registered of it.
        file: Where its registration is written.
        run: The run file.

    Raises:
        InvalidInput: The run was begun without it or otherwise, or the file holds something else.
    """
    if options.share is not None:
        raise InvalidInput("A run is registered as a whole, not share by share: leave out --share.")
    path = Path(file)
    if path.absolute() == run.absolute():
        raise InvalidInput(f"{path} is the run file. Name another one: --register {path.with_suffix('.json')}")
    found = make_registration(plan, options.question, options.registered or None)
    facts = _read_facts(run)
    kept = read_registration(facts, run)
    if kept is not None:
        _check_same(kept, found, f"{run} was registered")
    elif facts:
        raise InvalidInput(f"{run} was begun without being registered. Use another run file: --output FILE")
    if path.exists():
        written = read_registration_file(path)
        _check_same(written, found, f"{path} was written")
        kept = kept or written
    else:
        kept = kept or found
        with replacing(path) as draft:
            draft.write_bytes(msgspec.json.format(msgspec.json.encode(kept), indent=2) + b"\n")
    return replace(plan, facts={**plan.facts, REGISTRATION_FACT: msgspec.json.encode(kept).decode()})


def make_registration(plan: Plan, question: str = "", numbers: str | None = None) -> Registration:
    """Make the registration of a plan.

    Args:
        plan: The plan.
        question: What the run is to answer.
        numbers: The names of the numbers that it is about, with commas between them; None for those that tables show.

    Raises:
        UnknownName: There is no such number.
    """
    agents: dict[str, dict[str, str]] = {}
    for domain, agent in sorted({(cell.trial.domain, cell.agent) for cell in plan.cells}):
        known = plan.fingerprints.get((domain, agent)) or plan.sources.get(agent) or "a function of a program"
        agents.setdefault(domain, {})[agent] = known
    cells = ((cell.agent, write_trial(cell.trial), cell.repeat) for cell in plan.cells)
    rule = plan.stopping
    return Registration(
        question=question,
        started=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        agents=agents,
        trials=list(dict.fromkeys(cell.trial.id for cell in plan.cells)),
        numbers=_name_numbers(plan, numbers),
        stopping="" if rule is None else f"{rule.words} (batches {_say(rule.batches)}, {rule.most} trials at most)",
        plan=fingerprint_plan(cells),
    ).sign()


def _name_numbers(plan: Plan, wanted: str | None) -> list[str]:
    """Return the names of the registered numbers; that of the stopping rule is one of them."""
    metrics = list(find_metrics({name for domain in plan.domains.values() for name in domain.metrics}).values())
    if wanted is not None:
        found: Sequence[str] = name_numbers(wanted, metrics, ())
    else:
        known = {number.name for metric in metrics for number in metric.numbers}
        changes = any(cell.trial.novelty for cell in plan.cells)
        found = [name for name in (WITH_CHANGE if changes else WITHOUT_CHANGE) if name in known]
    aim = plan.stopping.aim if plan.stopping else None
    return list(dict.fromkeys([*found, *([aim.number] if aim and aim.number else [])]))


def _say(batches: Mapping[str, int]) -> str:
    return ", ".join(f"of {size} in {domain}" for domain, size in batches.items())


def _check_same(before: Registration, now: Registration, where: str) -> None:
    """Refuse a registration that says something else, but for the moment it was made."""
    for name, word in (
        ("question", "another question"),
        ("agents", "other agents, or other code of them"),
        ("trials", "other trials"),
        ("numbers", "other numbers"),
        ("stopping", "another stopping rule"),
        ("plan", "other cells"),
    ):
        if getattr(before, name) != getattr(now, name):
            raise InvalidInput(f"{where} with {word}. What is registered is not changed: use another file.")


def _read_facts(run: Path) -> dict[str, str]:
    if not run.exists() or not run.stat().st_size:
        return {}
    with Run(run) as file:
        return file.facts
