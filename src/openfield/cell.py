"""A cell is one agent in one trial: the unit that is planned, played and recorded."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import NamedTuple

import msgspec

from openfield.trial import Trial, derive


class Cell(msgspec.Struct, frozen=True, dict=True):
    """One agent in one trial."""

    agent: str
    trial: Trial
    repeat: int = 0

    @cached_property
    def id(self) -> str:
        """Twelve hexadecimal digits, the same in every process."""
        return cell_id(self.agent, self.trial.id, self.repeat)

    @property
    def seed(self) -> int:
        """The agent's own seed. The world's is the trial's, so that all agents meet the same worlds.

        An unchanged twin has the world of another trial. Its agent has another seed, which does not give twins away.
        """
        twin = ("unchanged",) if self.trial.is_unchanged_twin else ()
        return derive(self.trial.seed, "agent", self.agent, self.repeat, *twin)

    @property
    def after(self) -> str | None:
        """The id of the cell whose saved agent this one starts from."""
        return None if self.trial.after is None else cell_id(self.agent, self.trial.after, self.repeat)


class CellStatus(NamedTuple):
    """How far a cell is, without its trial and episodes."""

    attempt: int = 0
    """The number of the latest attempt; 0 before the first."""
    outcome: str | None = None
    """How that ended; None while it is not over."""
    player: str | None = None
    """The fingerprint of the agent that played it; None if it is not known."""
    steps: int = 0
    """How many steps of it are recorded. Given when the cell is taken to be played."""


def cell_id(agent: str, trial: str, repeat: int) -> str:
    """Return the id of a cell from the agent's name, the trial's id and the number of the repeat."""
    return hashlib.sha256(msgspec.json.encode([agent, trial, repeat])).hexdigest()[:12]
