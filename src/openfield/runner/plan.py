"""Make a plan: agents x trials x repeats give cells, checked before anything is played.

The start of plan -> rollout -> journal -> metrics -> report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any

from openfield import __version__
from openfield.cell import Cell
from openfield.domain import Domain, check_version
from openfield.errors import AgentFault, InvalidInput
from openfield.isolation import IsolatedAgents, Isolation
from openfield.parameters import CONTROL, settle_source, split_source, write_source
from openfield.provenance.provenance import Remarks
from openfield.provenance.rules import write_rules
from openfield.provenance.trust import sign_code
from openfield.provenance.versions import Code, identify_agent
from openfield.registry import (
    CONTROLS,
    AgentSource,
    absolute,
    check_agent,
    check_extra,
    domain_source,
    find_domain,
    list_trial_code,
    name_control,
)
from openfield.runner.experiment import RunOptions
from openfield.trial import Trial

MAX_NAME = 200
"""Characters of a name that an agent gives itself over a wire. It is in every table, page and file about the agent."""


Agents = AgentSource | Sequence[AgentSource] | Mapping[str, AgentSource] | IsolatedAgents
"""One agent, several, or several by name; isolated ones come from `isolate`."""


@dataclass(frozen=True)
class Plan:
    """The cells of a run, with the agents and domains they need."""

    cells: tuple[Cell, ...]
    agents: Mapping[str, AgentSource]
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

    @property
    def sources(self) -> dict[str, str | None]:
        """The agents as text, for the run file."""
        return {name: agent_text(source) for name, source in self.agents.items()}

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
) -> Plan:
    """Pair agents with trials, and check that every domain and agent can be found.

    Args:
        agents: One agent, several, or several by name.
        trials: What they are evaluated on.
        repeats: How often each agent plays each trial.
    """
    isolation = agents.isolation if isinstance(agents, IsolatedAgents) else None
    plain = agents.agents if isinstance(agents, IsolatedAgents) else agents
    named = name_agents([plain] if isinstance(plain, str) or callable(plain) else plain)
    cells = make_cells(named, [trials] if isinstance(trials, Trial) else trials, repeats)
    if not cells:
        raise InvalidInput("There is no trial to run.")
    return check_plan(cells, named, isolation)


def check_plan(cells: Iterable[Cell], agents: Mapping[str, AgentSource], isolation: Isolation | None = None) -> Plan:
    """Return a plan whose domains, extras and agents are all there."""
    cells = tuple(cells)
    domains = {name: find_domain(name) for name in sorted({cell.trial.domain for cell in cells})}
    for domain in domains.values():
        check_extra(domain)
    for trial in {cell.trial.id: cell.trial for cell in cells}.values():
        check_version(domains[trial.domain], trial)
    agents = {name: _name_control(source, domains.values()) for name, source in agents.items()}
    if isolation is not None:
        from openfield.runner.isolation.agent import check_isolated
        from openfield.runner.isolation.bubblewrap import settle

        isolation = settle(isolation)
        agents = {name: _name_isolated(name, source) for name, source in agents.items()}
    first = {cell.trial.domain: cell.trial for cell in reversed(cells)}
    for name, agent in sorted({(cell.trial.domain, cell.agent) for cell in cells}):
        if isolation is None:
            check_agent(agents[agent], domains[name], first[name])
        else:
            check_isolated(str(agents[agent]), domains[name], isolation, first[name])
    return Plan(cells, agents, domains, isolation=isolation)


def _name_isolated(name: str, source: AgentSource) -> str:
    """Return the source of an agent as text, which another process needs."""
    text = agent_text(source)
    if text is None:
        raise InvalidInput(
            f"The agent '{name}' cannot be isolated, because another process cannot import it. "
            "Define it at the top of a module, or name it as 'package.module:name' or 'file.py:name'."
        )
    return text


def _name_control(source: AgentSource, domains: Iterable[Domain[Any]]) -> AgentSource:
    """Return the source of an agent. A name that means a control in every domain becomes the source of the control."""
    names = {name_control(source, domain) for domain in domains} if isinstance(source, str) else set()
    return names.pop() if len(names) == 1 else source


def make_cells(agents: Iterable[str], trials: Iterable[Trial], repeats: int = 1) -> list[Cell]:
    """Return all cells, trial by trial, so that a run cut short still compares the agents."""
    names = list(agents)
    cells = [Cell(agent, trial, repeat) for trial in trials for repeat in range(repeats) for agent in names]
    known = {cell.id for cell in cells}
    for cell in cells:
        if cell.after is not None and cell.after not in known:
            raise InvalidInput(f"Trial {cell.trial.id} comes after trial {cell.trial.after}, which is not in the plan.")
    return list({cell.id: cell for cell in cells}.values())


def name_agents(agents: Sequence[AgentSource] | Mapping[str, AgentSource]) -> dict[str, AgentSource]:
    """Return agents by the name their results carry; a mapping keeps its names."""
    if not agents:
        raise InvalidInput("There is no agent to evaluate. Give at least one, for instance 'random'.")
    if isinstance(agents, Mapping):
        return dict(agents)
    named: dict[str, AgentSource] = {}
    for source in agents:
        name = name_agent(source)
        if named.setdefault(name, source) is not source:
            raise InvalidInput(f"Two agents are called '{name}'. Name them: agents={{'one': ..., 'other': ...}}.")
    return named


def name_agent(source: AgentSource) -> str:
    """Return the name of an agent that the user gave none: its source with its parameters, in their one form."""
    if isinstance(source, str):
        return write_source(*split_source(source))
    if isinstance(source, partial) and not source.args:
        with suppress(InvalidInput):  # a parameter that cannot be written
            return write_source(name_agent(source.func), source.keywords)
    return str(getattr(source, "__name__", type(source).__name__))


def add_controls(agents: Sequence[AgentSource] | Mapping[str, AgentSource]) -> dict[str, AgentSource]:
    """Return agents by name with all controls after them; a name that is taken gets `control:` in front."""
    named = name_agents(agents)
    controls = {name if name not in named else f"{CONTROL}{name}": f"{CONTROL}{name}" for name in CONTROLS}
    return {**named, **controls}


def agent_text(source: AgentSource) -> str | None:
    """Return the source of an agent as text another process can use; None if there is none."""
    if isinstance(source, str):
        return absolute(settle_source(source))
    if isinstance(source, partial) and not source.args and (place := agent_text(source.func)) is not None:
        with suppress(InvalidInput):  # a parameter that cannot be written
            return settle_source(write_source(place, source.keywords))
        return None
    module, name = getattr(source, "__module__", None), getattr(source, "__qualname__", "")
    if module in (None, "__main__") or not name or "<" in name or hasattr(source, "__self__"):
        return None
    return f"{module}:{name}"


def facts_of(cells: Iterable[Cell]) -> dict[str, str]:
    """Return what a run file says of itself: which version wrote it, when, and where its domains are found."""
    cells = tuple(cells)
    names = {cell.trial.domain for cell in cells}
    found = {name: domain_source(name) for name in names}
    sources = {f"domain {name}": absolute(source) for name, source in found.items() if source not in ("", name)}
    rules = {key: text for name in sorted(names) for key, text in write_rules(find_domain(name)).items()}
    return {
        "openfield": __version__,
        "started": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        **sources,
        **rules,
        **sign_code([*sources.values(), *list_trial_code(cell.trial for cell in cells)]),
    }


def check_agent_name(name: str) -> None:
    """Refuse a name from a wire that cannot be printed or is too long to read.

    Raises:
        AgentFault: It is too long, or holds characters that cannot be printed.
    """
    if len(name) > MAX_NAME or not name.isprintable():
        raise AgentFault(f"An agent's name is at most {MAX_NAME} characters, all of which can be printed.")
