"""A trial that an agent played, with the numbers of the turns at which its episodes begin.

A page of a turn must come quickly from a file of a million turns. So a cell is read by indexes, alone, and kept until
the file changes.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path

import msgspec

from openfield.capabilities import HasFilm
from openfield.domain import Domain
from openfield.errors import InvalidInput, UnknownName
from openfield.journal.reader import CellRecord, Episode, Run
from openfield.metrics.performance import count_as_test
from openfield.metrics.scenario import scenario_of
from openfield.provenance.people import person_fact
from openfield.provenance.rules import known_rules
from openfield.report.analysis import Noticing, judge_noticing
from openfield.report.film import sees_pictures
from openfield.report.words import describe_novelty
from openfield.view.library import Library, Signature, sign_file

MAX_TRIALS = 32
"""How many cells are kept as they were read."""
MAX_PEERS = 200
"""How many agents of the same trial a page offers."""


class SameTrial(msgspec.Struct, frozen=True):
    """A cell of the same trial: another agent, another repeat or another person."""

    cell: str
    agent: str
    repeat: int
    person: str


class PlayedTrial:
    """A cell, its episodes by turns, and who else played the trial."""

    def __init__(self, run: Run, cell: CellRecord) -> None:
        """Read what the pages of a cell need.

        Args:
            run: The run file, open.
            cell: The cell with its episodes.
        """
        self.cell = cell
        self.path: Path = run.path
        self.turns: int = cell.turns
        """The number of its turns."""
        self.firsts: Sequence[int] = [0, *accumulate(each.turns for each in cell.episodes)]
        """The first turn of each episode; the last number is that of an episode that is not over, if there is one."""
        facts, name = run.facts, cell.trial.domain
        self.person: str = facts.get(person_fact(cell.agent, cell.repeat), "")
        """Who played it, if people did."""
        rules = known_rules(facts, name)
        self.changes: str = describe_novelty(scenario_of(cell), {name: rules})
        """What changes at the onset, in words."""
        self.letters: bool = rules.letters
        """Whether whole numbers that are seen or answered are letters."""
        peers = run.cells_of_trial(cell.id, MAX_PEERS + 1)
        self.peers: Sequence[SameTrial] = [
            SameTrial(*each, facts.get(person_fact(*each[1:]), "")) for each in peers if each[0] != cell.id
        ][:MAX_PEERS]
        self.beside: tuple[str | None, str | None] = run.cells_beside(cell.id)
        """The cells of the same agent before and after it."""
        self.draws: bool | None = self._find_pictures(run)
        """Whether there are pictures of its turns; None if only its domain knows, which is not at hand."""

    @cached_property
    def judged(self) -> CellRecord:
        """The cell as its numbers are computed: a trial that is one training set counts as a test."""
        return count_as_test(self.cell)

    @cached_property
    def noticing(self) -> Noticing:
        """Whether the agent noticed the change."""
        return judge_noticing(self.judged)

    @property
    def onset(self) -> int | None:
        """The first test episode in a changed world; None if nothing changed so far."""
        return self.noticing.onset

    @property
    def episodes(self) -> Sequence[Episode]:
        """The finished episodes."""
        return self.cell.episodes

    def episode_of(self, turn: int) -> int:
        """Return the number of the episode that a turn belongs to."""
        return max(bisect_right(self.firsts, turn) - 1, 0)

    def turns_of(self, episode: int) -> range:
        """Return the turns of an episode, also of one that is not over.

        Raises:
            InvalidInput: There is no such episode.
        """
        known = len(self.cell.episodes)
        unfinished = self.turns > self.firsts[-1]
        if not 0 <= episode < known + unfinished:
            have = f"episodes 0 to {known + unfinished - 1}" if known + unfinished else "no episode yet"
            raise InvalidInput(f"Cell {self.cell.id} has no episode {episode}; it has {have}.")
        return range(self.firsts[episode], self.firsts[episode + 1] if episode < known else self.turns)

    def check_turn(self, turn: int) -> int:
        """Return the number of a turn that there is.

        Raises:
            InvalidInput: There is no such turn.
        """
        if not 0 <= turn < self.turns:
            have = f"turns 0 to {self.turns - 1}" if self.turns else "no turns yet"
            raise InvalidInput(f"Cell {self.cell.id} has no turn {turn}; it has {have}.")
        return turn

    def _find_pictures(self, run: Run) -> bool | None:
        if self.cell.trial.imported is not None or not self.cell.steps:
            return False
        domain = known_rules(run.facts, self.cell.trial.domain)
        draws = isinstance(domain, HasFilm) if isinstance(domain, Domain) else domain.draws
        if draws:
            return True
        if sees_pictures(run, self.cell):
            return True
        return draws


class TrialReader:
    """Reads cells of the runs in a library, and keeps those read lately."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._known: OrderedDict[tuple[Path, str], tuple[Signature, PlayedTrial]] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, run: str, cell: str) -> PlayedTrial:
        """Return a cell by the key of its run and its id, or the only one whose id begins like this.

        Raises:
            UnknownName: The trial is unknown.
        """
        path = self._library.find(run)
        signature = sign_file(path)
        with self._lock:
            known = self._known.get((path, cell))
        if known is None or known[0] != signature:
            known = signature, self._read(path, cell)
        with self._lock:
            self._known[path, cell] = known
            self._known.move_to_end((path, cell))
            while len(self._known) > MAX_TRIALS:
                self._known.popitem(last=False)
        return known[1]

    def _read(self, path: Path, cell: str) -> PlayedTrial:
        with Run(path) as opened:
            return PlayedTrial(opened, opened.cell(cell))

    def find_peer(self, trial: PlayedTrial, run: str, wanted: str) -> PlayedTrial:
        """Return another cell of the same trial.

        Raises:
            UnknownName: The trial is unknown.
        """
        known = [each.cell for each in trial.peers]
        if wanted not in known:
            raise UnknownName("cell", wanted, known, label="Of this trial")
        return self.read(run, wanted)
