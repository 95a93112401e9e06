"""Plan an experiment: the agents and trials of each of its domains, joined into one plan.

Between `experiment`, which says what is wanted, and `plan`, which pairs agents with trials.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from openfield.domain import Domain
from openfield.errors import InvalidInput
from openfield.isolation import IsolatedAgents
from openfield.registry import AgentSource
from openfield.runner.experiment import Experiment
from openfield.runner.plan import Agents, Plan, add_controls, join_plans, make_plan


class Part(NamedTuple):
    """What is planned in one domain."""

    experiment: Experiment
    """That of this domain alone; see `Experiment.split`."""
    domain: Domain[Any]
    agents: Mapping[str, AgentSource] | None = None
    """Who plays instead of its agents."""


def plan_parts(parts: Sequence[Part], run: Path) -> Plan:
    """Return the plan of an experiment from those of its domains.

    Args:
        parts: What is planned in each domain.
        run: The run file, which keeps the seed of a sealed run.

    Raises:
        InvalidInput: A name stands for different agents or domains, or there is something wrong in a part.
    """
    sources: dict[str, str] = {}
    for part in parts:
        name, source = part.domain.name, part.experiment.domain
        if sources.setdefault(name, source) != source:
            raise InvalidInput(f"{sources[name]} and {source} are both called '{name}'. Give one of them another name.")
    parts, facts = _seal_together(parts, run)
    joined = join_plans([_plan_part(part, run) for part in parts])
    return replace(joined, facts={**joined.facts, **facts})


def _seal_together(parts: Sequence[Part], run: Path) -> tuple[Sequence[Part], dict[str, str]]:
    """Return parts that share the root seed of a sealed run, and what the run file must know of it."""
    first = parts[0].experiment
    if len(parts) == 1 or not (first.sealed or first.secret):
        return parts, {}
    from openfield.runner.sealing import seal

    for part in parts:
        part.experiment.check_source()
    seed, facts = seal(run, None if first.secret is None else Path(first.secret))
    known = {"seed": seed, "sealed": False, "secret": None}
    return [part._replace(experiment=part.experiment.change(known)) for part in parts], facts


def _plan_part(part: Part, run: Path) -> Plan:
    experiment = part.experiment
    named = experiment.read_agents() if part.agents is None else part.agents
    agents: Agents = add_controls(named) if experiment.controls else named
    if (isolation := experiment.isolation) is not None:
        agents = IsolatedAgents(agents, isolation)
    trials, facts = experiment.make_trials(part.domain, run)
    made = make_plan(agents, trials, experiment.repeats, part.domain)
    rule = experiment.make_rule({part.domain.name: experiment.batch}, experiment.max_trials)
    return replace(made, facts=facts, resources=experiment.needs, stopping=rule)
