"""Write results that were played elsewhere into a run file.

Each imported episode is recorded as one turn that asks nothing and ends it, with the truth about it, and a reply with
the agent's belief. So a file with imported cells is read, reported and verified like any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from openfield import __version__
from openfield.cell import Cell
from openfield.core import Ask, Belief, PhaseName, Reply, Truth, Turn
from openfield.domain import Domain
from openfield.errors import InvalidInput
from openfield.journal.reader import Run
from openfield.journal.recorder import Recorder
from openfield.journal.writer import Journal
from openfield.provenance.rules import own_rule, write_rules
from openfield.rollout import Rollout
from openfield.trial import Trial


class ImportedEpisode(NamedTuple):
    """The result of an episode that was played elsewhere."""

    phase: PhaseName
    novel: bool
    performance: float | None
    belief: Belief | None = None
    detail: Any = None
    """What the domain's own worlds report of an episode in `Truth.detail`, as far as known. A key `published` with
    numbers by name stands for a trial of which only these are known."""


class ImportedTrial(NamedTuple):
    """The results of an agent in a trial that was played elsewhere; `trial.imported` names their file."""

    agent: str
    trial: Trial
    episodes: Sequence[ImportedEpisode]


class ImportedWorld:
    """Shows the results of a trial, an episode a turn."""

    def __init__(self, episodes: Sequence[ImportedEpisode]) -> None:
        self._episodes, self._number = episodes, 0

    @property
    def over(self) -> bool:
        """True while the last episode is shown."""
        return self._number == len(self._episodes) - 1

    def reset(self) -> Turn:
        """Show the first episode."""
        return self._show()

    def step(self, reply: Reply) -> Turn:
        """Show the next episode."""
        self._number += 1
        return self._show()

    def look(self, query: str) -> Any:
        """Show nothing: results have no pictures."""

    def close(self) -> None:
        """Do nothing: there is nothing to free."""

    def _show(self) -> Turn:
        shown = self._episodes[self._number]
        self.truth = Truth(novel=shown.novel, episode_over=True, performance=shown.performance, detail=shown.detail)
        return Turn(ask=Ask.NONE, observation=None, phase=shown.phase, first=True, last="terminated")


def import_trials(domain: Domain[Any], imported: Iterable[ImportedTrial], path: Path) -> int:
    """Write trials into a run file, and return how many were not there before."""
    counts, cells = Counter[tuple[str, str]](), list[tuple[Cell, ImportedTrial]]()
    for each in imported:
        if not each.episodes or each.trial.imported is None:
            raise InvalidInput(f"Trial {each.trial.id} has no results to import.")
        key = each.agent, each.trial.id
        cells.append((Cell(each.agent, each.trial, counts[key]), each))
        counts[key] += 1
    if not cells:
        raise InvalidInput("There are no results to import.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with Journal(path) as journal:
        facts = {"openfield": __version__, **write_rules(domain)}
        journal.enter([cell for cell, _ in cells], {cell.agent: None for cell, _ in cells}, facts)
        with Run(path) as run:
            known = {record.id for record in run.cells(with_episodes=False) if record.attempt}
        fresh = [(cell, each) for cell, each in cells if cell.id not in known]
        for cell, each in fresh:
            _write(journal, domain, cell, each.episodes)
    return len(fresh)


def _write(journal: Journal, domain: Domain[Any], cell: Cell, episodes: Sequence[ImportedEpisode]) -> None:
    recorder = Recorder(cell.id, journal.begin(cell.id), journal.add)
    recorder.rule = own_rule(domain, cell.trial)
    rollout = Rollout(ImportedWorld(episodes), recorder=recorder)
    for episode in episodes:
        rollout.reply(Reply(None, episode.belief))
    rollout.close(rollout.outcome, "")
