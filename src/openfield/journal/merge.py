"""Join run files of disjoint or overlapping shares into one, cell by cell, in bounded memory.

A cell that several files hold is kept once. Records that say the same are equal whatever time they took; one that is
not over gives way to a longer one that begins the same; all others are a conflict, which is named.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from msgspec.structs import astuple

from openfield.errors import InvalidInput, JournalError
from openfield.files.atomic import replacing
from openfield.journal.reader import PART_BYTES, RESUMABLE, Run
from openfield.journal.recorder import read_raw_chunk
from openfield.journal.schema import BEGUN_FACT, EPISODES, PLAN_FACT, close_written, explaining, open_to_write
from openfield.journal.steps import Place, Tail
from openfield.record import Chunk, RawStep

OWN_ROWS = ("attempts", "episodes", "chunks", "states", "players", "verdicts", "strengths")
"""The tables whose rows belong to a cell."""
PART = "part "
"""How the keys of facts begin that name a merged file; its fingerprint is their value."""
EQUAL_FACTS = ("isolation", "rules ")
"""How the keys of facts begin that must say the same in all parts: they are said of the run as a whole."""
OWN_FACTS = ("sealed seed", "secret digest", "trials of", "started", PLAN_FACT)
"""Facts that each part may have of its own."""


class MergeCounts(NamedTuple):
    """The parts of a merged file."""

    parts: int
    cells: int
    shared: int
    """How often a cell was in one more file."""


def merge_runs(parts: Sequence[str | Path], output: str | Path) -> MergeCounts:
    """Join run files into a new one.

    Args:
        parts: The run files. The order of cells in the new file follows theirs.
        output: The new file. It appears whole, or not at all.

    Raises:
        InvalidInput: Two files contradict each other, or cannot be joined.
        DamagedRun: The steps of a file do not fit their chain.
    """
    paths, target = [Path(part) for part in parts], Path(output)
    _check_paths(paths, target)
    with replacing(target) as draft:
        close_written(open_to_write(draft))
        with explaining(target):
            db = sqlite3.connect(f"file:{quote(str(draft.resolve()))}", uri=True, isolation_level=None)
            try:
                db.execute("PRAGMA synchronous = OFF")  # the whole file is brought to the disk in the end
                db.execute("PRAGMA trusted_schema = OFF")
                merge = _Merge(db)
                for path in paths:
                    merge.add(path)
                return merge.finish(len(paths))
            finally:
                db.close()


def _check_paths(paths: Sequence[Path], target: Path) -> None:
    if target.exists():
        raise InvalidInput(f"{target} exists. Merging makes a new file: name another one.")
    if not paths:
        raise InvalidInput("There is nothing to merge. Give the run files, then -o and the new file.")
    real = [path.resolve() for path in paths]
    for path in paths:
        if real.count(path.resolve()) > 1:
            raise InvalidInput(f"{path} is given twice.")


class _Merge:
    """The new file, and the part that is added to it."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._path = Path()
        self._origins: dict[str, str] = {}  # the part that a fact comes from
        self._shared = 0
        self._tails: dict[Place, Tail] = {}  # steps of the part that are not in its chunks
        db.execute("CREATE TEMP TABLE taken (cell TEXT PRIMARY KEY)")
        db.execute("CREATE TEMP TABLE givers (cell TEXT PRIMARY KEY, part TEXT)")  # whose record of a cell was taken

    def add(self, path: Path) -> None:
        """Add the cells of a file that the new one lacks."""
        self._path = path
        fingerprint, self._tails = _check_part(path)
        self._db.execute("ATTACH ? AS part", (f"file:{quote(str(path.resolve()))}?mode=ro",))
        try:
            with explaining(path):
                self._db.execute("BEGIN")
                self._add_plan()
                self._add_facts(fingerprint)
                self._add_cells()
                self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            self._db.execute("DETACH part")

    def finish(self, parts: int) -> MergeCounts:
        """Return a summary of the merge."""
        (cells,) = self._db.execute("SELECT count(*) FROM cells").fetchone()
        (attempts,) = self._db.execute("SELECT count(*) FROM attempts").fetchone()
        if attempts:
            self._db.execute("INSERT INTO facts VALUES (?, ?)", (BEGUN_FACT, str(attempts)))
        return MergeCounts(parts, cells, self._shared)

    def _add_plan(self) -> None:
        for table, query in (("trial", _OTHER_TRIALS), ("cell", _OTHER_CELLS)):
            for (wrong,) in self._db.execute(query):
                raise InvalidInput(
                    f"{self._path} contradicts {self._find_giver(wrong)}: {table} {wrong} is another one."
                )
        self._db.execute("INSERT OR IGNORE INTO main.trials SELECT id, content FROM part.trials ORDER BY rowid")
        self._db.execute("INSERT OR IGNORE INTO main.agents SELECT name, source FROM part.agents ORDER BY rowid")
        self._db.execute(
            "INSERT OR IGNORE INTO main.sources SELECT digest, name, text FROM part.sources ORDER BY rowid"
        )

    def _add_facts(self, fingerprint: str) -> None:
        """Add the facts of the part as a whole, and its fingerprint."""
        known = dict(self._db.execute("SELECT key, value FROM main.facts"))
        facts = dict(self._db.execute("SELECT key, value FROM part.facts ORDER BY rowid"))
        for key in sorted({*known, *facts}) if self._origins else ():
            needed = key == EQUAL_FACTS[0] or (key in known and key in facts)
            if key.startswith(EQUAL_FACTS) and needed and known.get(key) != facts.get(key):
                first = self._origins.get(key) or next(iter(self._origins.values()))
                raise InvalidInput(
                    f"{self._path} and {first} have different values of '{key}', so they cannot be one run."
                )
        facts.pop(BEGUN_FACT, None)
        for key, value in {**facts, f"{PART}{self._path.name}": fingerprint}.items():
            names = self._name_fact(key) if key.startswith((*OWN_FACTS, PART, "command ")) else [key]
            kept = next((name for name in names if known.get(name, value) == value), key)
            known.setdefault(kept, value)
            self._origins.setdefault(key, str(self._path))
            self._db.execute("INSERT OR IGNORE INTO main.facts VALUES (?, ?)", (kept, value))

    def _name_fact(self, key: str) -> Iterator[str]:
        """Yield the names that a fact of the part may have in the new file: parts may be called the same."""
        yield key
        if not key.startswith(PART):
            key = f"{key} of {self._path.name}"
            yield key
        yield from (f"{key} ({number})" for number in itertools.count(2))

    def _add_cells(self) -> None:
        both = "SELECT id FROM part.cells WHERE id IN (SELECT id FROM main.cells) ORDER BY rowid"
        shared = [cell for (cell,) in self._db.execute(both)]
        self._shared += len(shared)
        self._db.execute("DELETE FROM temp.taken")
        new = "SELECT id FROM part.cells WHERE id NOT IN (SELECT id FROM main.cells)"
        self._db.execute(f"INSERT INTO temp.taken {new}")
        self._db.executemany("INSERT INTO temp.taken VALUES (?)", ((cell,) for cell in shared if self._is_better(cell)))
        self._db.execute("INSERT OR REPLACE INTO temp.givers SELECT cell, ? FROM temp.taken", (str(self._path),))
        self._db.execute(
            "INSERT OR IGNORE INTO main.cells (id, agent, trial, repeat) "
            "SELECT id, agent, trial, repeat FROM part.cells ORDER BY rowid"
        )
        known = {name for (name,) in self._db.execute("SELECT name FROM part.sqlite_master")}
        for table in OWN_ROWS if "strengths" in known else OWN_ROWS[:-1]:
            self._db.execute(f"DELETE FROM main.{table} WHERE cell IN (SELECT cell FROM temp.taken)")
            if table == "states":
                self._add_states()
                continue
            names = ", ".join(name for (name,) in self._db.execute(_COLUMNS, (table,)))
            rows = f"SELECT {names} FROM part.{table} WHERE cell IN (SELECT cell FROM temp.taken) ORDER BY rowid"
            self._db.execute(f"INSERT INTO main.{table} ({names}) {rows}")
        taken = {cell for (cell,) in self._db.execute("SELECT cell FROM temp.taken")} if self._tails else set()
        late = (each for (cell, _), tail in self._tails.items() if cell in taken for each in tail.chunks())
        rows_of_late = ((*astuple(chunk)[:6], chain) for chunk, chain in late)
        self._db.executemany("INSERT INTO main.chunks VALUES (?, ?, ?, ?, ?, ?, ?)", rows_of_late)

    def _add_states(self) -> None:
        """Add the saved states of the cells taken, in parts: one may be larger than the memory that is left."""
        chosen = "SELECT rowid, cell, attempt, step FROM part.states WHERE cell IN (SELECT cell FROM temp.taken)"
        room = "INSERT INTO main.states (cell, attempt, step, data) VALUES (?, ?, ?, zeroblob(?))"
        for row, *place in self._db.execute(f"{chosen} ORDER BY rowid").fetchall():
            with self._db.blobopen("states", "data", row, readonly=True, name="part") as saved:
                added = self._db.execute(room, (*place, len(saved)))
                with self._db.blobopen("states", "data", added.lastrowid or 0) as copy:
                    for data in iter(partial(saved.read, PART_BYTES), b""):
                        copy.write(data)

    def _is_better(self, cell: str) -> bool:
        """Return whether the part has more of a cell than the files before it; refuse records that differ."""
        ours, theirs = self._records("main", cell), self._records("part", cell)
        for mine, other in zip(ours, theirs, strict=False):
            shorter, longer = sorted((mine, other), key=lambda each: (each.outcome not in RESUMABLE, each.steps))
            if not self._begins_alike(cell, mine, other) or (
                shorter.outcome not in RESUMABLE and shorter.result != longer.result
            ):
                raise InvalidInput(
                    f"{self._path} and {self._find_giver(cell)} contradict each other on cell {cell} "
                    f"(attempt {mine.number}). "
                    "Was its agent another one? Merge one of them only, or name the agents differently."
                )
        return [_extent(each) for each in theirs] > [_extent(each) for each in ours]

    def _find_giver(self, wanted: str) -> str:
        """Return the file before this one that gave a cell, or a cell of a trial."""
        query = "SELECT part FROM temp.givers JOIN main.cells ON id = cell WHERE ? IN (id, trial) ORDER BY cells.rowid"
        (path,) = self._db.execute(query, (wanted,)).fetchone() or ("a file before it",)
        return str(path)

    def _begins_alike(self, cell: str, mine: _Record, other: _Record) -> bool:
        """Return whether two records of an attempt show the same steps as far as both go, whatever time they took."""
        if mine.chain == other.chain:
            return True
        steps = self._steps("main", cell, mine.number), self._steps("part", cell, other.number)
        return all(_without_time(one) == _without_time(two) for one, two in zip(*steps, strict=False))

    def _records(self, schema: str, cell: str) -> list[_Record]:
        """Return all attempts at a cell."""
        attempts = f"SELECT number, outcome, note FROM {schema}.attempts WHERE cell = ? ORDER BY number"
        chunk = f"SELECT first + count, chain FROM {schema}.chunks WHERE cell = ? AND attempt = ? ORDER BY first DESC"
        episodes = EPISODES.replace("FROM ", f"FROM {schema}.").format(only="WHERE cell = ? AND attempt = ?")
        found = []
        for number, outcome, note in self._db.execute(attempts, (cell,)).fetchall():
            steps, chain = self._db.execute(f"{chunk} LIMIT 1", (cell, number)).fetchone() or (0, b"")
            for late, link in self._late(schema, cell, number):
                steps, chain = late.first + late.count, link
            rows = self._db.execute(episodes, (cell, number)).fetchall()
            found.append(_Record(number, outcome, steps, chain, (outcome, note, rows)))
        return found

    def _steps(self, schema: str, cell: str, attempt: int) -> Iterator[RawStep]:
        query = f"SELECT cell, attempt, first, count, crc, data FROM {schema}.chunks WHERE cell = ? AND attempt = ?"
        rows = self._db.execute(f"{query} ORDER BY first", (cell, attempt))
        late = (chunk for chunk, _ in self._late(schema, cell, attempt))
        chunks = itertools.chain((Chunk(*row) for row in rows), late)
        return itertools.chain.from_iterable(map(read_raw_chunk, chunks))

    def _late(self, schema: str, cell: str, attempt: int) -> Iterator[tuple[Chunk, bytes]]:
        """Yield what follows the last chunk of an attempt; the new file has nothing of that kind."""
        tail = self._tails.get((cell, attempt)) if schema == "part" else None
        return iter(()) if tail is None else tail.chunks()


def _without_time(step: RawStep) -> tuple[Any, ...]:
    """Return a step without the time that its reply took."""
    reply = None if step.reply is None else (step.reply.action, step.reply.belief)
    return reply, bytes(step.turn), step.truth


class _Record(NamedTuple):
    """An attempt as a file records it."""

    number: int
    outcome: str | None
    steps: int
    chain: bytes
    result: tuple[Any, ...]
    """Its outcome, note and episodes."""


def _extent(record: _Record) -> tuple[bool, int]:
    """Return how far an attempt got."""
    return record.outcome not in RESUMABLE, record.steps


def _check_part(path: Path) -> tuple[str, dict[Place, Tail]]:
    """Check that the steps of a run fit their chains and no cell is missing; return its fingerprint and its tails."""
    with Run(path) as run:
        if faults := [*run.verify_steps(), *run.verify_plan()]:
            raise JournalError(f"{path} is damaged: {faults[0]}")
        return run.fingerprint(), run.tails()


_COLUMNS = "SELECT name FROM pragma_table_info(?, 'main') ORDER BY cid"
_OTHER_TRIALS = """
    SELECT theirs.id FROM part.trials AS theirs JOIN main.trials AS ours USING (id)
    WHERE theirs.content IS NOT ours.content
"""
_OTHER_CELLS = """
    SELECT theirs.id FROM part.cells AS theirs JOIN main.cells AS ours USING (id)
    WHERE (theirs.agent, theirs.trial, theirs.repeat) IS NOT (ours.agent, ours.trial, ours.repeat)
"""
