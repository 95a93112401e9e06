"""Agents x trials x repeats -> cells.

The start of plan -> rollout -> journal -> metrics -> report.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from openfield import __version__
from openfield.errors import AgentFault, InvalidInput
from openfield.registry import AgentSource, absolute, domain_source
from openfield.trial import Trial, derive

LONGEST_NAME = 200
"""Characters of a name that an agent gives itself over a wire: it is in every table, page and file about it."""


class Cell(msgspec.Struct, frozen=True):
    """One agent in one trial."""

    agent: str
    trial: Trial
    repeat: int = 0

    @property
    def id(self) -> str:
        """Twelve hexadecimal digits, the same in every process."""
        return cell_id(self.agent, self.trial.id, self.repeat)

    @property
    def seed(self) -> int:
        """The agent's own seed; the world's is the trial's, so that all agents meet the same worlds."""
        return derive(self.trial.seed, "agent", self.agent, self.repeat)

    @property
    def after(self) -> str | None:
        """The cell whose saved agent this one starts from."""
        return None if self.trial.after is None else cell_id(self.agent, self.trial.after, self.repeat)


def cell_id(agent: str, trial: str, repeat: int) -> str:
    """The id of a cell."""
    return hashlib.sha256(msgspec.json.encode([agent, trial, repeat])).hexdigest()[:12]


def make_cells(agents: Iterable[str], trials: Iterable[Trial], repeats: int = 1) -> list[Cell]:
    """All cells, trial by trial, so that a run cut short still compares the agents."""
    names = list(agents)
    cells = [Cell(agent, trial, repeat) for trial in trials for repeat in range(repeats) for agent in names]
    known = {cell.id for cell in cells}
    for cell in cells:
        if cell.after is not None and cell.after not in known:
            raise InvalidInput(f"Trial {cell.trial.id} comes after trial {cell.trial.after}, which is not in the plan.")
    return list({cell.id: cell for cell in cells}.values())


def name_agents(agents: Sequence[AgentSource] | Mapping[str, AgentSource]) -> dict[str, AgentSource]:
    """Agents by the name their results carry; a mapping names them as it likes."""
    if not agents:
        raise InvalidInput("There is no agent to evaluate. Give at least one, for instance 'random'.")
    if isinstance(agents, Mapping):
        return dict(agents)
    named: dict[str, AgentSource] = {}
    for source in agents:
        name = source if isinstance(source, str) else getattr(source, "__name__", type(source).__name__)
        if named.setdefault(name, source) is not source:
            raise InvalidInput(f"Two agents are called '{name}'. Name them: agents={{'one': ..., 'other': ...}}.")
    return named


def agent_text(source: AgentSource) -> str | None:
    """The source as text another process can use; None if there is none."""
    if isinstance(source, str):
        return absolute(source)
    module, name = getattr(source, "__module__", None), getattr(source, "__qualname__", "")
    if module in (None, "__main__") or not name or "<" in name or hasattr(source, "__self__"):
        return None
    return f"{module}:{name}"


def facts_of(cells: Iterable[Cell]) -> dict[str, str]:
    """What a run file says of itself: who wrote it, when, and where its domains are found."""
    names = {cell.trial.domain for cell in cells}
    found = {name: domain_source(name) for name in names}
    sources = {f"domain {name}": absolute(source) for name, source in found.items() if source not in ("", name)}
    return {"openfield": __version__, "started": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", **sources}


def check_visitor(name: str) -> None:
    """Refuses names of agents over a wire that nobody could read.

    Raises:
        AgentFault: It is too long, or holds characters that cannot be printed.
    """
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise AgentFault(f"An agent's name is at most {LONGEST_NAME} characters, all of which can be printed.")
