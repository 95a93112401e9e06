"""Read a run file as values: cells with their trials, finished episodes and steps.

Stands between journal and metrics: metrics, reports and exports read these and nothing else.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from openfield.cell import Cell
from openfield.core import Belief, PhaseName
from openfield.domain import says_novel
from openfield.errors import DamagedRun, InvalidInput, UnknownName
from openfield.journal.recorder import fill_truth, read_chunk, read_raw_chunk
from openfield.journal.schema import explaining, open_to_read
from openfield.record import Chunk, RawStep, Step
from openfield.registry import is_control
from openfield.trial import Trial, hash_trial

RESUMABLE = (None, "cancelled")
"""Outcomes of an attempt that goes on where it was."""
SCORED = ("done", "truncated")
"""The outcomes that speak about the agent's behaviour. All others are counted, never scored."""
OUR_FAILURES = ("world_error", "harness_error")
"""Outcomes that are no behaviour of the agent: the cell is tried again, so many times."""
MAX_RETRIES = 3
CHUNKS_AT_ONCE = 4
"""How many chunks are in memory at a time: one may be a single reply of half a megabyte, or of fifty."""


class Episode(msgspec.Struct, frozen=True, kw_only=True):
    """A finished episode."""

    number: int
    """Counted from 0 within the cell."""
    phase: PhaseName
    novel: bool
    """Whether the world differed from the normal one."""
    turns: int
    performance: float | None
    """From 0 to 1; None where the world gave none."""
    belief: Belief | None
    """The last belief reported in the episode."""
    detected: bool
    """Whether that belief says that the world has changed: by the common rule here, by the domain's in a `Result`."""
    ended: str
    """`terminated` or `truncated`."""
    detail: Any = None
    """What the domain has to say of it: the task played, the score."""
    failed: bool = False
    """Whether the agent failed to play it, or to end it within its limits; `metrics.failures` fills such ones in."""


class CellRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One agent in one trial, as far as it got."""

    id: str
    agent: str
    trial: Trial
    repeat: int
    outcome: str | None
    """How it ended; None while it is not over."""
    note: str = ""
    """What went wrong, if anything did."""
    attempt: int = 0
    """The number of the latest attempt; 0 if there was none."""
    steps: int = 0
    seconds: float = 0.0
    episodes: tuple[Episode, ...] = ()
    control: bool = False
    """Whether the agent is a control, which must fail and is in no comparison."""
    counts: bool | None = None
    """Whether it counts in the numbers, by a policy about failures (`metrics.failures`); None: by its outcome."""

    @property
    def is_scored(self) -> bool:
        """Whether it counts in the numbers."""
        return self.outcome in SCORED if self.counts is None else self.counts

    @property
    def cell(self) -> Cell:
        """What was planned."""
        return Cell(self.agent, self.trial, self.repeat)


class Run:
    """A run file, read only."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open a run file, and refuse any other file."""
        self.path = Path(path)
        self._db = open_to_read(self.path)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @property
    def facts(self) -> dict[str, str]:
        """What was said of the run as a whole."""
        return dict(self._rows("SELECT key, value FROM facts ORDER BY rowid", tuple[str, str]))

    @property
    def agents(self) -> dict[str, str | None]:
        """The agents and where they come from; None where only a Python program knows."""
        return dict(self._rows("SELECT name, source FROM agents", tuple[str, str | None]))

    def trials(self) -> Iterator[Trial]:
        """Yield all trials, in the order they were entered."""
        return (trial for _, trial in self._keyed_trials())

    def cells(self, with_episodes: bool = True, only: str | None = None) -> list[CellRecord]:
        """Return all cells, or only one, in the order they were entered, each with its latest attempt."""
        trials, agents = dict(self._keyed_trials(only)), self.agents
        episodes = self._episodes() if with_episodes else {}
        rows = self._rows(_LATEST_ATTEMPTS, _LatestAttempt, (only, only))
        return [
            CellRecord(
                id=cell,
                agent=agent,
                trial=self._known(trials, trial, cell),
                repeat=repeat,
                outcome=outcome,
                note=note or "",
                attempt=attempt or 0,
                steps=steps or 0,
                seconds=seconds or 0.0,
                episodes=tuple(episodes.get((cell, attempt), ())),
                control=is_control(agents.get(agent)),
            )
            for cell, agent, trial, repeat, attempt, outcome, note, steps, seconds in rows
        ]

    def cell(self, wanted: str) -> CellRecord:
        """Return the cell with this id, or the only one whose id begins with it."""
        cells = self.cells()
        found = [cell for cell in cells if cell.id.startswith(wanted)]
        if len(found) > 1 and wanted:
            several = ", ".join(cell.id for cell in found)
            raise InvalidInput(f"Several cells begin with '{wanted}': {several}. Give more of its id.")
        if len(found) != 1:
            raise UnknownName("cell", wanted, [cell.id for cell in cells], label="In this run")
        return found[0]

    def steps(self, cell: str, attempt: int) -> Iterator[Step]:
        """Yield all recorded steps of an attempt, each with its truth."""
        return fill_truth(step for chunk in self._chunks(cell, attempt) for step in read_chunk(chunk))

    def raw_steps(self, cell: str, attempt: int) -> Iterator[RawStep]:
        """Yield all recorded steps of an attempt, for replay."""
        return (step for chunk in self._chunks(cell, attempt) for step in read_raw_chunk(chunk))

    def state(self, cell: str, attempt: int) -> tuple[int, bytes] | None:
        """Return after how many steps the agent was saved last, and its state."""
        query = "SELECT step, data FROM states WHERE cell = ? AND attempt = ?"
        rows = self._rows(query, tuple[int, bytes], (cell, attempt))
        return next(iter(rows), None)

    def verify(self) -> list[str]:
        """Return everything that is wrong with the file: one line for each damaged part."""
        faults: list[str] = []
        try:
            faults += [text for (text,) in self._rows("PRAGMA integrity_check(20)", tuple[str]) if text != "ok"]
            faults += self._damaged_chunks()
            if not faults:
                faults += self._damaged_cells()
        except DamagedRun as error:
            faults.append(str(error))
        return faults

    def _damaged_chunks(self) -> Iterator[str]:
        expected: dict[tuple[str, int], int] = {}
        for chunk in self._all_chunks():
            if chunk.first != expected.get((chunk.cell, chunk.attempt), 0):
                yield f"Cell {chunk.cell}, attempt {chunk.attempt}: turns before {chunk.first} are missing."
            else:
                try:
                    read_chunk(chunk)
                except DamagedRun as error:
                    yield str(error)
            expected[chunk.cell, chunk.attempt] = chunk.first + chunk.count

    def _damaged_cells(self) -> Iterator[str]:
        """Yield what cells say of themselves and their turns contradict."""
        sources, _ = self.agents, self.facts
        for key, content in self._rows("SELECT id, content FROM trials", tuple[str, str]):
            if hash_trial(msgspec.json.decode(content)) != key:
                yield f"Trial {key} is not what it was."
        for cell in self.cells():
            if cell.agent not in sources:
                yield f"Cell {cell.id}: its agent '{cell.agent}' is not entered."
            for episode in contradicted(cell.episodes, self.steps(cell.id, cell.attempt)):
                yield f"Cell {cell.id}, attempt {cell.attempt}: episode {episode} is not what its turns say."

    def _episodes(self) -> dict[tuple[str, int], list[Episode]]:
        episodes: dict[tuple[str, int], list[Episode]] = {}
        query = "SELECT * FROM episodes ORDER BY cell, attempt, number"
        for cell, attempt, number, phase, novel, turns, performance, data, ended, detail in self._rows(query, _Episode):
            try:
                belief = None if data is None else _BELIEF.decode(data)
                episode = Episode(
                    number=number,
                    phase=_PHASES[phase],
                    novel=bool(novel),
                    turns=turns,
                    performance=performance,
                    belief=belief,
                    detected=belief is not None and says_novel(belief),
                    ended=ended,
                    detail=None if detail is None else msgspec.msgpack.decode(detail),
                )
            except (KeyError, msgspec.DecodeError, UnicodeDecodeError) as error:
                place = f"cell {cell}, attempt {attempt}, episode {number}"
                raise DamagedRun(f"{self.path} is damaged ({place}): {error}.") from None
            episodes.setdefault((cell, attempt), []).append(episode)
        return episodes

    def _keyed_trials(self, cell: str | None = None) -> Iterator[tuple[str, Trial]]:
        """Yield all trials with their ids, or only the trial of a cell."""
        for key, content in self._rows(_TRIALS, tuple[str, str], (cell, cell)):
            try:
                yield key, msgspec.json.decode(content, type=Trial)
            except msgspec.DecodeError as error:
                raise DamagedRun(f"{self.path}: trial {key} cannot be read: {error}.") from None

    def _known(self, trials: dict[str, Trial], key: str, cell: str) -> Trial:
        if key not in trials:
            raise DamagedRun(f"{self.path} is damaged: the trial {key} of cell {cell} is missing.")
        return trials[key]

    def _chunks(self, cell: str, attempt: int) -> Iterator[Chunk]:
        query = "SELECT * FROM chunks WHERE cell = ? AND attempt = ? ORDER BY first"
        return (Chunk(*row) for row in self._rows(query, _Chunk, (cell, attempt), CHUNKS_AT_ONCE))

    def _all_chunks(self) -> Iterator[Chunk]:
        query = "SELECT * FROM chunks ORDER BY cell, attempt, first"
        return (Chunk(*row) for row in self._rows(query, _Chunk))

    def _rows(self, query: str, kind: Any, values: Iterable[Any] = (), at_once: int = 256) -> Iterator[Any]:
        """Yield rows, each of the type it was written as: a damaged file may hold anything."""
        with explaining(self.path):
            cursor: sqlite3.Cursor = self._db.execute(query, tuple(values))
            while rows := cursor.fetchmany(at_once):
                yield from msgspec.convert(rows, list[kind])


def contradicted(episodes: Iterable[Episode], steps: Iterator[Step]) -> Iterator[int]:
    """Yield the numbers of episodes that are missing or whose recorded turns give another performance."""
    last = next(steps, None)
    for number, episode in enumerate(episodes):
        played, before = 0, last
        for step in itertools.islice(steps, episode.turns):
            before, last, played = last, step, played + 1
        # a limit ends an episode after the turn it shows, everything else with the reply to its last turn
        ends = [step.truth.performance for step in (before, last) if step is not None and step.truth is not None]
        if episode.number != number or played != episode.turns or episode.performance not in ends:
            yield episode.number


_LatestAttempt = tuple[str, str, str, int, int | None, str | None, str | None, int | None, float | None]
_Episode = tuple[str, int, int, str, int, int, float | None, bytes | None, str, bytes | None]
_Chunk = tuple[str, int, int, int, int, bytes]
_PHASES: dict[str, PhaseName] = {"training": "training", "test": "test"}
_BELIEF = msgspec.msgpack.Decoder(Belief)
_TRIALS = """
    SELECT id, content FROM trials
    WHERE ? IS NULL OR id = (SELECT trial FROM cells WHERE id = ?) ORDER BY rowid
"""
_LATEST_ATTEMPTS = """
    SELECT id, agent, trial, repeat, number, outcome, note,
      (SELECT max(first + count) FROM chunks WHERE chunks.cell = id AND attempt = number), seconds
    FROM cells LEFT JOIN attempts ON cell = id AND number = (SELECT max(number) FROM attempts WHERE cell = id)
    WHERE ? IS NULL OR id = ? ORDER BY cells.rowid
"""
