"""Make a plan: agents x trials x repeats give cells, checked before anything is played.

The start of plan -> rollout -> journal -> metrics -> report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any

from openfield import __version__
from openfield.cell import Cell
from openfield.core import AgentFactory
from openfield.domain import Domain, check_version
from openfield.errors import AgentFault, InvalidInput
from openfield.isolation import IsolatedAgents, Isolation
from openfield.parameters import CONTROL, AgentText, make_agent_text, read_agent, write_source
from openfield.provenance.provenance import Remarks
from openfield.provenance.rules import write_rules
from openfield.provenance.trust import sign_code
from openfield.provenance.versions import Code, identify_agent
from openfield.registry import (
    CONTROLS,
    AgentSource,
    absolute,
    check_agent_source,
    check_extra,
    domain_source,
    find_domain,
    known_domain,
    list_trial_code,
    name_control,
)
from openfield.runner.experiment import RunOptions
from openfield.runner.stopping.rule import StoppingRule, join_rules
from openfield.trial import Trial

MAX_NAME = 200
"""Characters of a name that an agent gives itself over a wire. It is in every table, page and file about the agent."""


PlannedAgent = AgentText | Callable[..., Any]
"""An agent of a plan: its text, split, or what makes it."""
Agents = AgentSource | Sequence[AgentSource] | Mapping[str, AgentSource] | IsolatedAgents
"""One agent, several, or several by name; isolated ones come from `isolate`."""


@dataclass(frozen=True)
class Plan:
    """The cells of a run, with the agents and domains they need."""

    cells: tuple[Cell, ...]
    agents: Mapping[str, PlannedAgent]
    domains: Mapping[str, Domain[Any]]
    facts: Mapping[str, str] = field(default_factory=dict)
    """What the run file keeps of how the plan was made."""
    isolation: Isolation | None = None
    """What isolated agents may see and use; None plays them in the processes of openfield."""
    options: RunOptions = field(default_factory=lambda: RunOptions(workers=0))
    """How the cells are played and recorded."""
    remarks: Remarks = field(default_factory=Remarks)
    """What the user says about the command, and the experiment file."""
    resources: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """What agents need of a machine of a cluster, by name: `num_cpus` (1), `num_gpus` (0) and others."""
    stopping: StoppingRule | None = None
    """When the run stops by itself; None plays all cells."""
    factories: Mapping[tuple[str, str], AgentFactory] = field(default_factory=dict)
    """The agents that were found when the plan was checked, by their text and the name of the domain."""

    @cached_property
    def texts(self) -> dict[str, AgentText | None]:
        """The agents as text that a process in another folder can use; None for those that have none."""
        return {name: settle_agent(agent) for name, agent in self.agents.items()}

    @property
    def sources(self) -> dict[str, str | None]:
        """The agents as text, for the run file."""
        return {name: None if text is None else text.text for name, text in self.texts.items()}

    @cached_property
    def trial_code(self) -> list[str]:
        """The code of users that the trials name."""
        return list_trial_code({cell.trial.id: cell.trial for cell in self.cells}.values())

    def describe(self) -> dict[str, str]:
        """Return the facts of a run file: which version wrote it, when, and where its domains are found."""
        found = {name: domain_source(name) for name in self.domains}
        sources = {f"domain {name}": absolute(source) for name, source in found.items() if source not in ("", name)}
        rules = {key: text for name in sorted(self.domains) for key, text in write_rules(self.domains[name]).items()}
        return {
            "openfield": __version__,
            "started": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            **sources,
            **rules,
            **sign_code([*sources.values(), *self.trial_code, *self.texts.values()]),
        }

    @cached_property
    def codes(self) -> dict[tuple[str, str], Code]:
        """The code behind every agent, by domain and name, as far as it is found."""
        pairs = sorted({(cell.trial.domain, cell.agent) for cell in self.cells if cell.agent in self.agents})
        found = {pair: identify_agent(self.agents[pair[1]], self.domains[pair[0]]) for pair in pairs}
        return {pair: code for pair, code in found.items() if code is not None}

    @cached_property
    def fingerprints(self) -> dict[tuple[str, str], str]:
        """The fingerprint of every agent whose code was found, by domain and name."""
        return {pair: code.version.fingerprint for pair, code in self.codes.items()}


def make_plan(
    agents: Agents,
    trials: Trial | Iterable[Trial],
    repeats: int = 1,
    domain: Domain[Any] | None = None,
) -> Plan:
    """Pair agents with trials, and check that every domain and agent can be found.

    Args:
        agents: One agent, several, or several by name.
        trials: The trials they are evaluated on.
        repeats: How often each agent plays each trial.
        domain: The domain of the trials; without it domains are looked for by name.
    """
    isolation = agents.isolation if isinstance(agents, IsolatedAgents) else None
    plain = agents.agents if isinstance(agents, IsolatedAgents) else agents
    named = name_agents([plain] if isinstance(plain, str | AgentText) or callable(plain) else plain)
    cells = make_cells(named, [trials] if isinstance(trials, Trial) else trials, repeats)
    if not cells:
        raise InvalidInput("There is no trial to run.")
    names = sorted({cell.trial.domain for cell in cells})
    domains = {name: find_domain(name) if domain is None or domain.name != name else domain for name in names}
    return check_plan(cells, named, domains, isolation)


def join_plans(plans: Sequence[Plan]) -> Plan:
    """Return the plan of all cells of these, which are played and recorded alike.

    Raises:
        InvalidInput: The same name stands for different agents.
    """
    agents: dict[str, PlannedAgent] = {}
    for plan in plans:
        for name, agent in plan.agents.items():
            if agents.setdefault(name, agent) != agent:
                raise InvalidInput(f"Two agents are called '{name}': {agents[name]} and {agent}. Name one otherwise.")
    first, *others = plans
    return (
        replace(
            first,
            cells=tuple({cell.id: cell for plan in plans for cell in plan.cells}.values()),
            agents=agents,
            domains={name: domain for plan in plans for name, domain in plan.domains.items()},
            facts={key: text for plan in plans for key, text in plan.facts.items()},
            resources={name: needs for plan in plans for name, needs in plan.resources.items()},
            factories={key: factory for plan in plans for key, factory in plan.factories.items()},
            stopping=join_rules([plan.stopping for plan in plans]),
        )
        if others
        else first
    )


def check_plan(
    cells: Iterable[Cell],
    agents: Mapping[str, PlannedAgent],
    domains: Mapping[str, Domain[Any]],
    isolation: Isolation | None = None,
) -> Plan:
    """Return a plan whose extras and agents are all there."""
    cells = tuple(cells)
    for domain in {cell.trial.domain: domains[cell.trial.domain] for cell in cells}.values():
        check_extra(domain)
    for trial in {cell.trial.id: cell.trial for cell in cells}.values():
        check_version(domains[trial.domain], trial)
    agents = {name: _name_control(agent, domains.values()) for name, agent in agents.items()}
    if isolation is not None:
        from openfield.runner.isolation.agent import check_isolated
        from openfield.runner.isolation.bubblewrap import adapt_isolation

        isolation = adapt_isolation(isolation)
        agents = {name: _name_isolated(name, agent) for name, agent in agents.items()}
    first = {cell.trial.domain: cell.trial for cell in reversed(cells)}
    factories: dict[tuple[str, str], AgentFactory] = {}
    for name, agent in sorted({(cell.trial.domain, cell.agent) for cell in cells}):
        source = agents[agent]
        if isolation is not None:
            check_isolated(str(source), domains[name], isolation, first[name])
        elif (found := check_agent_source(source, domains[name], first[name])) and isinstance(source, AgentText):
            factories[source.text, name] = found
    return Plan(cells, agents, domains, isolation=isolation, factories=factories)


def _name_isolated(name: str, agent: PlannedAgent) -> AgentText:
    """Return an agent as text, which another process needs."""
    text = settle_agent(agent)
    if text is None:
        raise InvalidInput(
            f"The agent '{name}' cannot be isolated, because another process cannot import it. "
            "Define it at the top of a module, or name it as 'package.module:name' or 'file.py:name'."
        )
    return text


def _name_control(agent: PlannedAgent, domains: Iterable[Domain[Any]]) -> PlannedAgent:
    """Return an agent. A name that means a control in every domain becomes the text of the control."""
    if not isinstance(agent, AgentText):
        return agent
    found = {named.text: named for named in (name_control(agent, domain) for domain in domains)}
    return next(iter(found.values())) if len(found) == 1 else agent


def make_cells(agents: Iterable[str], trials: Iterable[Trial], repeats: int = 1) -> list[Cell]:
    """Return all cells, trial by trial, so that a run cut short still compares the agents."""
    names = list(agents)
    cells = [Cell(agent, trial, repeat) for trial in trials for repeat in range(repeats) for agent in names]
    known = {cell.id for cell in cells}
    for cell in cells:
        if cell.after is not None and cell.after not in known:
            raise InvalidInput(f"Trial {cell.trial.id} comes after trial {cell.trial.after}, which is not in the plan.")
    return list({cell.id: cell for cell in cells}.values())


def name_agents(agents: Sequence[AgentSource] | Mapping[str, AgentSource]) -> dict[str, PlannedAgent]:
    """Return agents by the name their results carry; a mapping keeps its names."""
    if not agents:
        raise InvalidInput("There is no agent to evaluate. Give at least one, for instance 'random'.")
    if isinstance(agents, Mapping):
        return {name: read_agent(source) for name, source in agents.items()}
    named: dict[str, PlannedAgent] = {}
    for agent in [read_agent(source) for source in agents]:
        name = name_agent(agent)
        if named.setdefault(name, agent) != agent:
            raise InvalidInput(f"Two agents are called '{name}'. Name them: agents={{'one': ..., 'other': ...}}.")
    return named


def name_agent(agent: PlannedAgent) -> str:
    """Return the name of an agent that the user gave none: its source with its parameters, in their one form."""
    if isinstance(agent, AgentText):
        return agent.name
    if isinstance(agent, partial) and not agent.args:
        with suppress(InvalidInput):  # a parameter that cannot be written
            return write_source(name_agent(agent.func), agent.keywords)
    return str(getattr(agent, "__name__", type(agent).__name__))


def add_controls(agents: Sequence[AgentSource] | Mapping[str, AgentSource]) -> dict[str, PlannedAgent]:
    """Return agents by name with all controls after them; a name that is taken gets `control:` in front."""
    named = name_agents(agents)
    controls = {name if name not in named else f"{CONTROL}{name}": f"{CONTROL}{name}" for name in CONTROLS}
    return {**named, **name_agents(controls)}


def settle_agent(agent: PlannedAgent) -> AgentText | None:
    """Return an agent as text that a process in another folder can use, or None."""
    if isinstance(agent, AgentText):
        return agent.settle(absolute)
    if isinstance(agent, partial) and not agent.args and (found := settle_agent(agent.func)) is not None:
        with suppress(InvalidInput):  # a parameter that cannot be written
            return read_agent(write_source(found.place, agent.keywords)).settle()
        return None
    module, name = getattr(agent, "__module__", None), getattr(agent, "__qualname__", "")
    if module in (None, "__main__") or not name or "<" in name or hasattr(agent, "__self__"):
        return None
    return make_agent_text(f"{module}:{name}", {})


def facts_of(cells: Iterable[Cell]) -> dict[str, str]:
    """Return the facts of a run file with cells that were not planned here, such as those of a server."""
    cells = tuple(cells)
    return Plan(cells, {}, {name: known_domain(name) for name in {cell.trial.domain for cell in cells}}).describe()


def check_agent_name(name: str) -> None:
    """Refuse a name from a wire that cannot be printed or is too long to read.

    Raises:
        AgentFault: It is too long, or holds characters that cannot be printed.
    """
    if len(name) > MAX_NAME or not name.isprintable():
        raise AgentFault(f"An agent's name is at most {MAX_NAME} characters, all of which can be printed.")
