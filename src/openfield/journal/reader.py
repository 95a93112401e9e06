"""Read a run file as values: cells with their trials, finished episodes and steps.

Stands between journal and metrics: metrics, reports and exports read these and nothing else.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec

from openfield.cell import Cell, CellStatus, cell_id
from openfield.core import Belief, PhaseName, says_novel
from openfield.errors import DamagedRun, InvalidInput, UnknownName
from openfield.journal import schema
from openfield.journal.fingerprint import TABLES, Fingerprint
from openfield.journal.recorder import fill_truth, read_chunk, read_raw_chunk
from openfield.journal.schema import (
    BEGUN_FACT,
    DROPPED_FACT,
    LATER_FACT,
    MAX_STATE_ROW,
    MAX_STEPS_ROW,
    PLAN_FACT,
    RULE_FACT,
    SourceText,
)
from openfield.journal.steps import Place, RunFile, attempt_of
from openfield.journal.verification import (
    Attempt,
    find_bound_agents,
    find_false_arrays,
    find_false_episodes,
    find_false_sources,
    find_false_steps,
)
from openfield.parameters import is_control
from openfield.record import MAX_VALUES, RECORD_FACT, Chunk, RawStep, Step, has_too_many_values
from openfield.trial import Trial, hash_trial

S = TypeVar("S")
RESUMABLE = (None, "cancelled")
"""Outcomes of an attempt that goes on where it was."""
SCORED = ("done", "truncated")
"""The outcomes that speak about the agent's behaviour. All others are counted, never scored."""
OUR_FAILURES = ("world_error", "harness_error")
"""Outcomes that are not behaviour of the agent: the cell is tried again, this many times."""
MAX_RETRIES = 3
PART_BYTES = 1 << 20
"""Bytes of a saved state that are in memory at a time."""
MAX_TRIAL = 4 << 20
"""Bytes of the text of a trial."""


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
    strength: float | None = None
    """How strong the change was at most in it, from 0 to 1; None where the world only changes once and at once."""
    change: str = ""
    """The novelties in force then, beside a strength."""
    failed: bool = False
    """Whether the agent failed to play it, or to end it within its limits; `metrics.failures` fills such ones in."""

    @property
    def early(self) -> bool | None:
        """Whether the change was declared before it came, within the episode; None where it came at its beginning.

        Domains with samples report both.
        """
        if not isinstance(self.detail, dict):
            return None
        samples = self.detail.get("novel")
        begins_normal = isinstance(samples, list) and samples[:1] == [0] and 1 in samples
        return True if self.detail.get("early") is True else False if begins_normal else None

    @property
    def steps(self) -> int:
        """The steps of the world, if it reports them: a reply without an action takes a turn, and may take no step."""
        steps = self.detail.get("steps") if isinstance(self.detail, dict) else None
        return steps if isinstance(steps, int) and steps >= 0 else self.turns


class StatedBeliefs(msgspec.Struct, frozen=True):
    """When beliefs were stated, in steps of the world, for tests that count steps."""

    beliefs: tuple[tuple[int, float], ...]
    """After how many steps, and the probability that the world has changed."""
    onset: int | None
    """The steps before the change; None if nothing changed."""
    steps: int
    switches: tuple[tuple[int, bool], ...] = ()
    """After how many steps the world begins to differ, or is normal again, and which of the two."""


class CellRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One agent in one trial, as far as it got."""

    id: str
    agent: str
    trial: Trial
    repeat: int
    outcome: str | None
    """How it ended; None while it is not over."""
    person: str = ""
    """In a `Result`: the person of a study who played it; empty if an agent did."""
    note: str = ""
    """What went wrong, if anything did."""
    attempt: int = 0
    """The number of the latest attempt; 0 before the first."""
    steps: int = 0
    seconds: float = 0.0
    player: str | None = None
    """The fingerprint of the agent that played the latest attempt; None if it is not known."""
    version: str = ""
    """In a `Result`: `earlier` if an earlier version of the agent played it, `edited` if one that no command had,
    `unknown` if none was recorded."""
    episodes: tuple[Episode, ...] = ()
    control: bool = False
    """Whether the agent is a control, which must fail and is in no comparison."""
    counts: bool | None = None
    """Whether it counts in the numbers, by a policy about failures (`metrics.failures`); None: by its outcome."""
    stated: StatedBeliefs | None = None
    """Given in a `Result` where the test counts steps."""
    later: str = ""
    """Which cells it was entered with, if its agent had begun to play before; else empty."""
    stops: bool = False
    """Whether its run stops by itself, so that the number of trials was not fixed beforehand."""
    dropped: bool = False
    """Whether it is not played, because the run stopped by itself."""
    loose: bool = False
    """In a `Result`: whether its run says that it may score without doing anything for it, as by loose rules."""
    seed_unit: str = ""
    """In totals over several scenarios, which use the same seeds: what is alike in all of them; else empty."""

    @property
    def is_scored(self) -> bool:
        """Whether it counts in the numbers."""
        return self.outcome in SCORED if self.counts is None else self.counts

    @property
    def is_in_episode(self) -> bool:
        """Whether it has turns of an episode that is not over."""
        return self.steps > 0 and (self.outcome in RESUMABLE or self.steps - 1 > sum(e.turns for e in self.episodes))

    @property
    def turns(self) -> int:
        """The number of its turns: one for each reply, and one that waits for a reply if it is not over."""
        return self.steps if self.is_in_episode else max(self.steps - 1, 0)

    @property
    def cell(self) -> Cell:
        """The planned cell."""
        return Cell(self.agent, self.trial, self.repeat)


class RunCounts(NamedTuple):
    """How many cells and attempts a run has."""

    planned: int
    """Cells that were entered."""
    played: int
    """Cells whose latest attempt is over."""
    retried: int
    """Attempts that failed by no fault of the agent and were made again."""
    superseded: int
    """Attempts that a new one replaced for any other reason."""
    dropped: int = 0
    """Cells that are not played, because the run stopped by itself."""


class AgentProgress(NamedTuple):
    """How far an agent is."""

    planned: int
    """Its cells, without those that are not played because the run stopped by itself."""
    played: int
    """Those that are over."""
    failed: int
    """Those of them that it failed."""
    episodes: int
    turns: int
    """Those of its finished episodes."""
    performance: float | None
    """The mean over its episodes so far; None before the first."""


class Run(RunFile):
    """A run file, read only."""

    @property
    def size(self) -> int:
        """The bytes of the file once its log is written into it."""
        ((pages,),) = self._rows("PRAGMA page_count", tuple[int])
        ((each,),) = self._rows("PRAGMA page_size", tuple[int])
        return int(pages * each)

    @property
    def facts(self) -> dict[str, str]:
        """The facts of the run as a whole, without the lists of its cells."""
        rows = self._rows("SELECT key, value FROM facts ORDER BY rowid", tuple[str, str])
        lists = (PLAN_FACT, LATER_FACT, DROPPED_FACT)
        return {key: value for key, value in rows if key != BEGUN_FACT and not key.startswith(lists)}

    @property
    def agents(self) -> dict[str, str | None]:
        """The agents and where they come from; None where only a Python program knows."""
        return dict(self._rows("SELECT name, source FROM agents", tuple[str, str | None]))

    def players(self) -> dict[tuple[str, int], str]:
        """Return the known fingerprints of the agents that played, by cell and attempt."""
        rows = self._rows("SELECT cell, attempt, fingerprint FROM players", tuple[str, int, str])
        return {(cell, attempt): fingerprint for cell, attempt, fingerprint in rows}

    def sources(self) -> list[SourceText]:
        """Return the recorded texts of the files that played, by name."""
        query = "SELECT digest, name, text FROM sources ORDER BY name, digest"
        return [SourceText(*row) for row in self._rows(query, tuple[str, str, str])]

    def verdicts(self, only: str | None = None) -> dict[tuple[str, int, int], bool]:
        """Return the recorded verdicts of domains with detection rules of their own, by cell, attempt and episode.

        Args:
            only: The cell whose verdicts are wanted; None returns all.
        """
        query = schema.VERDICTS.format(only=_only("cell", only))
        rows = self._rows(query, tuple[str, int, int, int], () if only is None else (only,))
        return {(cell, attempt, number): bool(detected) for cell, attempt, number, detected in rows}

    def strengths(self, only: str | None = None) -> dict[tuple[str, int, int], tuple[float, str]]:
        """Return how strong which change was at most, by cell, attempt and episode, where the truth tells.

        Args:
            only: The cell that is wanted; None returns all.
        """
        query = schema.STRENGTHS_OF.format(only=_only("cell", only))
        rows = self._rows(query, tuple[str, int, int, float, str], () if only is None else (only,))
        return {(cell, attempt, number): (strength, change) for cell, attempt, number, strength, change in rows}

    def trials(self) -> Iterator[Trial]:
        """Yield all trials, in the order they were entered."""
        return (trial for _, trial in self._keyed_trials())

    def cells(self, with_episodes: bool = True, only: str | None = None) -> list[CellRecord]:
        """Return all cells, or only one, in the order they were entered, each with its latest attempt."""
        trials = dict(self._keyed_trials(only))
        controls = {name for name, source in self.agents.items() if is_control(source)}
        episodes = self._episodes(only) if with_episodes else {}
        later, dropped, stops = self._listed_cells(LATER_FACT), self.dropped_cells(), RULE_FACT in self.facts
        query = schema.LATEST_ATTEMPTS.format(only=_only("cells.id", only))
        with self.snapshot():
            tails = self.tails(only)
            rows = list(self._rows(query, _LatestAttempt, () if only is None else (only,)))
        return [
            CellRecord(
                id=cell,
                agent=agent,
                trial=self._known(trials, trial, cell),
                repeat=repeat,
                outcome=outcome,
                note=note or "",
                attempt=attempt or 0,
                steps=tails[cell, attempt].end if (cell, attempt) in tails else steps or 0,
                seconds=seconds or 0.0,
                player=player,
                episodes=tuple(episodes.get((cell, attempt), ())),
                control=agent in controls,
                later=later.get(cell, ""),
                stops=stops,
                dropped=cell in dropped and outcome is None,
            )
            for cell, agent, trial, repeat, attempt, outcome, note, steps, seconds, player in rows
        ]

    def dropped_cells(self) -> set[str]:
        """Return the planned cells that are not played, because the run stopped by itself."""
        return set(self._listed_cells(DROPPED_FACT))

    def _listed_cells(self, start: str) -> dict[str, str]:
        """Return the cells that facts of a kind list, each with the rest of the key of its list."""
        query = "SELECT key, value FROM facts WHERE substr(key, 1, ?) = ?"
        rows = self._rows(query, tuple[str, str], (len(start), start))
        return {cell: key.removeprefix(start) for key, text in rows for cell in text.split()}

    def places(self) -> Iterator[tuple[str, str, int]]:
        """Yield the agent, cell and number of every attempt. Nothing else is read."""
        query = "SELECT agent, id, number FROM cells JOIN attempts ON cell = id ORDER BY cells.rowid, number"
        return self._rows(query, tuple[str, str, int], (), 4096)

    def statuses(self) -> dict[str, CellStatus]:
        """Return how far every cell is that was begun, by its id. Nothing else is read."""
        rows = self._rows(schema.STATUSES, tuple[str, int, str | None, str | None], (), 4096)
        return {cell: CellStatus(*status) for cell, *status in rows}

    def scenarios(self) -> set[tuple[str, tuple[str, ...]]]:
        """Return the domains and novelties of its trials."""
        return {(trial.domain, trial.novelty) for trial in self.trials()}

    def entrants(self) -> dict[tuple[str, tuple[str, ...]], list[str]]:
        """Return the agents that have cells in each domain and novelty, in the order they were entered."""
        trials = {key: (trial.domain, trial.novelty) for key, trial in self._keyed_trials()}
        found: dict[tuple[str, tuple[str, ...]], dict[str, None]] = {scenario: {} for scenario in trials.values()}
        for trial, agent in self._rows(schema.ENTERED, tuple[str, str], (), 4096):
            found[trials[trial]][agent] = None
        return {scenario: list(agents) for scenario, agents in found.items()}

    def is_held(self, now: float) -> bool:
        """Return whether a process says that it plays a cell at this moment, in seconds since 1970."""
        return any(True for _ in self._rows(schema.HELD_CELL, tuple[str], (now,)))

    def progress(self) -> dict[str, AgentProgress]:
        """Return how far every agent is, in the order in which they were entered."""
        outcomes = ("cancelled", "superseded", "cancelled")
        rows = self._rows(schema.PROGRESS, tuple[str, int, int, int, int, int, float | None], outcomes)
        if dropped := self.dropped_cells():
            agents = self._rows("SELECT id, agent FROM cells", tuple[str, str], (), 4096)
            begun = self.statuses().keys()
            less = Counter(agent for cell, agent in agents if cell in dropped and cell not in begun)
            return {agent: AgentProgress(planned - less[agent], *rest) for agent, planned, *rest in rows}
        return {agent: AgentProgress(*counts) for agent, *counts in rows}

    def count_episodes(self) -> dict[tuple[str, int], int]:
        """Return how many finished episodes every attempt has, by cell and attempt."""
        rows = self._rows(schema.EPISODE_COUNTS, tuple[str, int, int], (), 4096)
        return {(cell, attempt): count for cell, attempt, count in rows}

    def cell(self, wanted: str) -> CellRecord:
        """Return the cell with this id, or the only one whose id begins with it."""
        rows = self._rows("SELECT id FROM cells WHERE id >= ? AND id < ? LIMIT 20", tuple[str], (wanted, f"{wanted}~"))
        found = [cell for (cell,) in rows]
        if len(found) > 1 and wanted:
            raise InvalidInput(f"Several cells begin with '{wanted}': {', '.join(found)}. Give more of its id.")
        if len(found) != 1:
            raise UnknownName("cell", wanted, self._near_cells(wanted), label="The nearest in this run")
        return self.cells(only=found[0])[0]

    def _near_cells(self, wanted: str) -> list[str]:
        """Return the ids before and after one that is not there; a run may have a million others."""
        nearest = (self._rows(query, tuple[str], (wanted,)) for query in schema.NEAR_CELLS)
        return [cell for rows in nearest for (cell,) in rows]

    def cells_of_trial(self, cell: str, limit: int) -> list[tuple[str, str, int]]:
        """Return id, agent and repeat of at most `limit` cells of the trial that a cell plays, itself included."""
        return list(self._rows(schema.CELLS_OF_TRIAL, tuple[str, str, int], (cell, limit)))

    def cells_beside(self, cell: str) -> tuple[str | None, str | None]:
        """Return the cells of the same agent that were entered before and after a cell."""
        return next(self._rows(schema.CELLS_BESIDE, tuple[str | None, str | None], (cell,)), (None, None))

    def steps(self, cell: str, attempt: int, first: int = 0) -> Iterator[Step]:
        """Yield recorded steps from a number on. From 0 on each has its truth, else once the truth changes."""
        return fill_truth(_from(first, self._chunks(cell, attempt, first), read_chunk))

    def raw_steps(self, cell: str, attempt: int, first: int = 0) -> Iterator[RawStep]:
        """Yield the recorded steps of an attempt from a number on, for replay."""
        return _from(first, self._chunks(cell, attempt, first), read_raw_chunk)

    def stated_beliefs(self, cell: str, attempt: int) -> StatedBeliefs:
        """Return the beliefs of an attempt with the steps they were stated at."""
        done = 0
        beliefs: list[tuple[int, float]] = []
        switches: list[tuple[int, bool]] = []
        for step in self.raw_steps(cell, attempt):
            if step.reply is not None:
                done += step.reply.action is not None
                beliefs += [(done, step.reply.belief.highest)] if step.reply.belief is not None else []
            if step.truth is not None and step.truth.novel != bool(switches and switches[-1][1]):
                switches.append((done, step.truth.novel))
        return StatedBeliefs(tuple(beliefs), next(iter(switches), (None,))[0], done, tuple(switches))

    def state(self, cell: str, attempt: int) -> tuple[int, bytes] | None:
        """Return after how many steps the agent was saved last, and its state."""
        query = "SELECT step, data FROM states WHERE cell = ? AND attempt = ?"
        rows = self._rows(query, tuple[int, bytes], (cell, attempt), 1, MAX_STATE_ROW)
        return next(iter(rows), None)

    def verify(self) -> list[str]:
        """Return everything that is wrong with the file: one line for each value that cannot be as it was written."""
        faults: list[str] = []
        try:
            faults += [text for (text,) in self._rows("PRAGMA integrity_check(20)", tuple[str]) if text != "ok"]
            faults += self.verify_steps()
            if not faults:
                faults += [*self.verify_plan(), *self._false_rows(), *find_false_sources(self.sources())]
            full = RECORD_FACT in self.facts
            for attempt in () if faults else self.attempts():
                faults += find_false_episodes(attempt, self.steps(attempt.cell, attempt.number))
                if full:
                    faults += find_false_arrays(attempt, self.steps(attempt.cell, attempt.number))
        except DamagedRun as error:
            faults.append(str(error))
        return faults

    def verify_steps(self) -> list[str]:
        """Return the faults of the recorded steps: gaps, damage, and chains that do not fit."""
        attempts = itertools.groupby(self._all_chunks(), attempt_of)
        return [fault for _, chunks in attempts for fault in find_false_steps(chunks)]

    def verify_plan(self) -> list[str]:
        """Return which cells and attempts are missing that were entered, by the lists that were kept of them."""
        facts = dict(self._rows("SELECT key, value FROM facts", tuple[str, str]))
        planned = {cell for key, text in facts.items() if key.startswith(PLAN_FACT) for cell in text.split()}
        cells = {cell for (cell,) in self._rows("SELECT id FROM cells", tuple[str])}
        faults = [f"Cell {cell} was planned, but its rows are missing." for cell in sorted(planned - cells)]
        faults += [f"Cell {cell} is recorded, but in no plan." for cell in sorted(cells - planned)]
        ((attempts,),) = self._rows("SELECT count(*) FROM attempts", tuple[int])
        if facts.get(BEGUN_FACT, "0") != str(attempts):
            idle = "SELECT id FROM cells EXCEPT SELECT cell FROM attempts"
            without = ", ".join(cell for (cell,) in self._rows(idle, tuple[str])) or "none"
            begun = facts.get(BEGUN_FACT, "0")
            faults.append(f"{begun} attempts were begun, and {attempts} are recorded. Cells without one: {without}.")
        return faults

    def fingerprint(self) -> str:
        """Return the fingerprint of the run: a digest over every value that a reader uses, times included."""
        found = Fingerprint()
        tails = self.tails()
        for table, query in TABLES.items():
            if table == "states":
                self._add_states(found, query)
            elif table != "steps" or not tails:
                large = MAX_STEPS_ROW if table == "episodes" else 0
                found.add(table, self._rows(query, Any, (), 64, large))
        if tails:
            found.add("steps", self._ends_of_chains())
        return str(found)

    def _add_states(self, found: Fingerprint, query: str) -> None:
        """Add the saved states of agents, which may be larger than the memory that is left."""
        with self.snapshot():
            for *place, size, row in self._rows(query, tuple[str, int, int, int, int]):
                with self._db.blobopen("states", "data", row, readonly=True) as state:
                    found.add_large("states", tuple(place), size, iter(partial(state.read, PART_BYTES), b""))

    def _ends_of_chains(self) -> Iterator[tuple[str, int, int, bytes]]:
        """Yield how many steps each attempt has and their chain, as if those in tails were in chunks already."""
        for (cell, attempt), chunks in itertools.groupby(self._all_chunks(), attempt_of):
            *_, (last, chain) = chunks
            yield cell, attempt, last.first + last.count, chain

    def planned(self) -> dict[str, tuple[str, str, int]]:
        """Return the agent, the text of the trial and the repeat of every cell by its id."""
        query = "SELECT cells.id, agent, content, repeat FROM cells JOIN trials ON trials.id = trial"
        return {cell: (agent, text, repeat) for cell, agent, text, repeat in self._rows(query, _Cell)}

    def counts(self) -> RunCounts:
        """Return how many cells are planned and played, and how many attempts were replaced."""
        outcomes = ("cancelled", "superseded", *OUR_FAILURES, "superseded")
        (row,) = self._rows(schema.COUNTS, tuple[int, int, int, int], outcomes)
        dropped = self.dropped_cells()
        return RunCounts(*row)._replace(dropped=len(dropped - self.statuses().keys()) if dropped else 0)

    def _false_rows(self) -> Iterator[str]:
        """Yield what cells, trials and attempts say of themselves and others contradict."""
        sources = self.agents
        for key, content in self._rows("SELECT id, content FROM trials", tuple[str, str]):
            self._read_trial(key, content)
            if hash_trial(msgspec.json.decode(content)) != key:
                yield f"Trial {key} has changed."
        for cell, agent, trial, repeat in self._rows("SELECT id, agent, trial, repeat FROM cells", _Cell):
            if agent not in sources:
                yield f"Cell {cell}: its agent '{agent}' is not entered."
            if cell_id(agent, trial, repeat) != cell:
                yield f"Cell {cell}: its agent, trial or repeat has changed."
        for (trial,) in self._rows("SELECT id FROM trials EXCEPT SELECT trial FROM cells", tuple[str]):
            yield f"Trial {trial} belongs to no cell."
        yield from self._false_attempts()

    def _false_attempts(self) -> Iterator[str]:
        for (cell,) in self._rows("SELECT cell FROM attempts EXCEPT SELECT id FROM cells", tuple[str]):
            yield f"Cell {cell} is not entered, but has attempts."
        gaps = "SELECT cell FROM attempts GROUP BY cell HAVING min(number) != 1 OR max(number) != count(*)"
        for (cell,) in self._rows(gaps, tuple[str]):
            yield f"Cell {cell}: an attempt is missing."
        for cell, number, outcome in self._rows(
            schema.REPLACED, tuple[str, int, str | None], (*OUR_FAILURES, "superseded")
        ):
            yield f"Cell {cell}, attempt {number}: a later one replaced it, but its outcome is recorded as {outcome}."
        for table in ("episodes", "chunks", "states", "players", "verdicts", "strengths"):
            for cell, number in self._rows(schema.ORPHANS.format(table), tuple[str, int]):
                yield f"Cell {cell}, attempt {number} is not entered, but has {table}."
        entered = set(self._rows("SELECT cell, number FROM attempts", Place)) if (tails := self.tails()) else set()
        for cell, number in sorted(tails.keys() - entered):
            yield f"Cell {cell}, attempt {number} is not entered, but has tails."

    def attempts(self) -> Iterator[Attempt]:
        """Yield all attempts with their episodes."""
        cells = {cell.id: cell for cell in self.cells(with_episodes=False)}
        episodes = self._episodes()
        players, bound = self.players(), find_bound_agents(self.facts, self.agents)
        rows = self._rows("SELECT cell, number, outcome, note FROM attempts ORDER BY cell, number", _Attempt)
        for cell, number, outcome, note in rows:
            record, player = cells[cell], players.get((cell, number))
            yield Attempt(
                cell,
                number,
                outcome,
                record.trial,
                episodes.get((cell, number), []),
                note,
                replaced=number < record.attempt,
                repeated=player is not None and players.get((cell, number + 1)) == player,
                bound=(record.trial.domain, record.agent, player) in bound,
            )

    def _episodes(self, only: str | None = None) -> dict[tuple[str, int], list[Episode]]:
        """Return the episodes of all cells, or only of one, by cell and attempt."""
        episodes: dict[tuple[str, int], list[Episode]] = {}
        query, verdicts = schema.EPISODES.format(only=_only("cell", only)), self.verdicts(only)
        strengths = self.strengths(only)
        rows = self._rows(query, _Episode, () if only is None else (only,), 64, MAX_STEPS_ROW)
        for cell, attempt, number, phase, novel, turns, performance, data, ended, detail in rows:
            strength, change = strengths.get((cell, attempt, number), (None, ""))
            try:
                if any(part is not None and has_too_many_values(part) for part in (data, detail)):
                    raise msgspec.DecodeError(f"it has more than {MAX_VALUES:,} values")
                belief = None if data is None else _BELIEF.decode(data)
                episode = Episode(
                    number=number,
                    phase=_PHASES[phase],
                    novel=bool(novel),
                    turns=turns,
                    performance=performance,
                    belief=belief,
                    detected=verdicts.get((cell, attempt, number), belief is not None and says_novel(belief)),
                    ended=ended,
                    detail=None if detail is None else msgspec.msgpack.decode(detail),
                    strength=strength,
                    change=change,
                )
            except (KeyError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                place = f"cell {cell}, attempt {attempt}, episode {number}"
                raise DamagedRun(f"{self.path} is damaged ({place}): {error}.") from None
            episodes.setdefault((cell, attempt), []).append(episode)
        return episodes

    def _keyed_trials(self, cell: str | None = None) -> Iterator[tuple[str, Trial]]:
        """Yield all trials with their ids, or only the trial of a cell."""
        query = schema.TRIALS if cell is None else schema.TRIAL
        for key, content in self._rows(query, tuple[str, str], () if cell is None else (cell,)):
            yield key, self._read_trial(key, content)

    def _read_trial(self, key: str, content: str) -> Trial:
        if len(content) > MAX_TRIAL:
            raise DamagedRun(f"{self.path}: trial {key} cannot be read: it has {len(content) >> 20} MB.")
        try:
            return msgspec.json.decode(content, type=Trial)
        except (msgspec.DecodeError, RecursionError) as error:
            raise DamagedRun(f"{self.path}: trial {key} cannot be read: {error}.") from None

    def _known(self, trials: dict[str, Trial], key: str, cell: str) -> Trial:
        if key not in trials:
            raise DamagedRun(f"{self.path} is damaged: the trial {key} of cell {cell} is missing.")
        return trials[key]


def _only(column: str, wanted: str | None) -> str:
    """Return the clause that finds one value by an index, or none: `? IS NULL OR id = ?` reads the whole table."""
    return "" if wanted is None else f"WHERE {column} = ?"


def _from(first: int, chunks: Iterable[Chunk], read: Callable[[Chunk], list[S]]) -> Iterator[S]:
    """Yield the steps of chunks without those that stand before a number."""
    for chunk in chunks:
        yield from read(chunk)[max(first - chunk.first, 0) :]


_LatestAttempt = tuple[str, str, str, int, int | None, str | None, str | None, int | None, float | None, str | None]
_Cell = tuple[str, str, str, int]
_Attempt = tuple[str, int, str | None, str]
_Episode = tuple[str, int, int, str, int, int, float | None, bytes | None, str, bytes | None]
_PHASES: dict[str, PhaseName] = {"training": "training", "test": "test"}
_BELIEF = msgspec.msgpack.Decoder(Belief)
