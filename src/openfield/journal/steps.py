"""Write and read the steps of attempts: in chunks that form a chain, and before that in tails.

A tail holds turns that were acknowledged before their chunk was full. A wire commits every turn before it answers. The
turns of all agents that are committed together are one row of `tails`, which goes when all its attempts have got their
chunks: a row in `chunks` for each would touch a page of the file for every turn. An entry says which chunk it follows,
by the beginning of that chunk's chain value. If another chunk is the last one of its attempt now, the entry no longer
counts.
"""

from __future__ import annotations

import heapq
import itertools
import os
import secrets
import sqlite3
import threading
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

import msgspec
from msgspec.structs import astuple

from openfield.errors import DamagedRun
from openfield.journal.leases import Leases, placeholders, split_blocks
from openfield.journal.recorder import join_chunks, keep_first
from openfield.journal.schema import (
    BEGUN_FACT,
    CHUNKS,
    COUNT_BEGUN,
    MAX_ROW,
    MAX_STEPS_ROW,
    explaining,
    extend_chain,
    open_to_read,
)
from openfield.record import REPLY_ENCODER, AgentState, AttemptEnd, AttemptPlayer, Chunk, Entry, EpisodeEnd

Place = tuple[str, int]
"""A cell and the number of an attempt."""
LINK_BYTES = 8
"""How much of a chain value an entry holds."""
MAX_SHARED = 1 << 20
"""Bytes of the steps in one row, if they belong to several attempts."""
MAX_KEPT = 128 << 20
"""Bytes of the rows a journal keeps. A slow agent keeps all rows that it is in, and with them turns of fast ones."""
MAX_NUMBER = 1 << 48
"""The largest number of an attempt or a step that is read: a hostile file may hold any."""
DEAD_ROWS = 64
"""How many rows are removed together."""
CHUNKS_AT_ONCE = 1
"""How many chunks are in memory at a time: one may be a single reply of half a megabyte, or of fifty."""
LAST = "SELECT first + count, chain FROM chunks WHERE cell = ? AND attempt = ? ORDER BY first DESC LIMIT 1"


class TailEntry(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Some steps of an attempt in a row of tails."""

    cell: str
    attempt: Annotated[int, msgspec.Meta(ge=0, le=MAX_NUMBER)]
    first: Annotated[int, msgspec.Meta(ge=0, le=MAX_NUMBER)]
    count: Annotated[int, msgspec.Meta(ge=1, le=MAX_NUMBER)]
    crc: int
    data: bytes
    after: bytes
    """The beginning of the chain value of the chunk they follow; empty at the beginning."""


class Tail(NamedTuple):
    """The steps of an attempt that follow its last chunk."""

    chain: bytes
    """The chain value of that chunk."""
    entries: list[TailEntry]

    @property
    def end(self) -> int:
        """How many steps the attempt has."""
        return self.entries[-1].first + self.entries[-1].count

    def chunks(self) -> Iterator[tuple[Chunk, bytes]]:
        """Yield the chunks that the steps will become if no other comes, each with its chain value."""
        chain = self.chain
        for chunk in join_chunks([Chunk(*astuple(entry)[:6]) for entry in self.entries]):
            chain = extend_chain(chain, chunk.digest)
            yield chunk, chain


class Tails:
    """The rows of tails that a journal has written, and which attempts still need them."""

    def __init__(self) -> None:
        self._next = self._begun = secrets.randbits(62)  # no other journal ever gives a row the same number
        self._held: dict[Place, list[int]] = {}  # the rows that an attempt needs
        self._rows: dict[int, tuple[int, int]] = {}  # how many attempts need a row, and its size
        self._bytes = 0
        self._dead: list[int] = []  # rows that nothing needs and that are still in the file

    @property
    def places(self) -> list[Place]:
        """The attempts that have steps in rows of this journal only."""
        return list(self._held)

    @property
    def is_too_large(self) -> bool:
        """Whether the rows should be given up for chunks."""
        return self._bytes > MAX_KEPT

    def write(self, db: sqlite3.Connection, entries: Iterable[TailEntry]) -> None:
        """Write steps that are committed together."""
        block: list[TailEntry] = []
        size = 0
        for entry in entries:
            if size + len(entry.data) > MAX_SHARED and block:
                self._write_row(db, block)
                block, size = [], 0
            block.append(entry)
            size += len(entry.data)
        if block:
            self._write_row(db, block)

    def cover(self, place: Place) -> None:
        """Take note that the steps of an attempt are in a chunk now."""
        for row in self._held.pop(place, ()):
            needed, size = self._rows[row]
            if needed > 1:
                self._rows[row] = needed - 1, size
            else:
                del self._rows[row]
                self._bytes -= size
                self._dead.append(row)

    def sweep(self, db: sqlite3.Connection, least: int = DEAD_ROWS) -> None:
        """Remove the rows that nothing needs, if there are enough of them."""
        if len(self._dead) >= least:
            _delete(db, self._dead)
            self._dead = []

    def read_own(self, db: sqlite3.Connection, places: Collection[Place]) -> dict[Place, Tail]:
        """Return the tails of attempts whose steps are in rows of this journal."""
        rows = sorted({row for place in places for row in self._held.get(place, ())})
        return _follow(db, _gather(_select(db, rows), {cell for cell, _ in places}), places) if rows else {}

    def read_foreign(self, db: sqlite3.Connection, cells: Collection[str] | None = None) -> dict[Place, Tail]:
        """Return the tails that other journals wrote, living or dead; of some cells, or of all."""
        others = "SELECT crc, data FROM tails WHERE id < ? OR id >= ?"
        return _follow(db, _gather(db.execute(others, (self._begun, self._next)), cells))

    def sweep_foreign(self, db: sqlite3.Connection) -> None:
        """Remove the rows of other journals of which no entry counts."""
        others = "SELECT id, crc, data FROM tails WHERE id < ? OR id >= ?"
        left = [
            row
            for row, crc, data in db.execute(others, (self._begun, self._next))
            if not _follow(db, _gather([(crc, data)]), strict=False)
        ]
        _delete(db, left)

    def _write_row(self, db: sqlite3.Connection, entries: list[TailEntry]) -> None:
        data = _ENCODER.encode(entries)
        db.execute("INSERT INTO tails VALUES (?, ?, ?)", (self._next, zlib.crc32(data), data))
        places = {(entry.cell, entry.attempt) for entry in entries}
        for place in places:
            self._held.setdefault(place, []).append(self._next)
        self._rows[self._next] = len(places), len(data)
        self._bytes += len(data)
        self._next += 1


class EntryWriter:
    """Writes entries, and knows where the record of the attempts under way ends."""

    def __init__(self, leases: Leases) -> None:
        self.tails = Tails()
        self._leases = leases
        self._chains: dict[Place, bytes] = {}  # the chain value of the last chunk of attempts that are under way
        self._version = 0  # changes when another connection writes
        self._played: set[str] = set()
        self._read = 0  # the attempts whose agents are in that set already

    def find_played(self, db: sqlite3.Connection) -> set[str]:
        """Return the agents that have begun to play. Each attempt is read once: a server enters cells for years."""
        (last,) = db.execute("SELECT max(rowid) FROM attempts").fetchone()
        if last is not None and last > self._read:
            later = "SELECT DISTINCT agent FROM attempts JOIN cells ON cell = id WHERE attempts.rowid > ?"
            self._played.update(agent for (agent,) in db.execute(later, (self._read,)))
            self._read = last
        return self._played

    def look(self, db: sqlite3.Connection) -> None:
        """Forget the known state of the file if another journal has written meanwhile.

        Every commit begins with this.
        """
        (version,) = db.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self._version = version
            self._chains.clear()
            self._played.clear()
            self._read = 0
            self._leases.forget_checks()

    def write(self, db: sqlite3.Connection, entries: tuple[Entry, ...]) -> None:
        """Write entries in their order, and the early steps among them together."""
        self._leases.check(db, {entry.cell for entry in entries})
        early: dict[Place, list[TailEntry]] = {}
        for entry in entries:
            place = entry.cell, entry.attempt
            match entry:
                case Chunk(early=True):
                    after = self._chain(db, place)[:LINK_BYTES]
                    early.setdefault(place, []).append(_make_entry(entry, after))
                case Chunk():
                    early.pop(place, None)
                    self._write_chunk(db, entry)
                case EpisodeEnd():
                    _write_episode(db, entry)
                case AgentState():
                    db.execute("INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?)", astuple(entry))
                case AttemptPlayer():
                    db.execute("INSERT OR REPLACE INTO players VALUES (?, ?, ?)", astuple(entry))
                case AttemptEnd():
                    self.tails.write(db, early.pop(place, ()))
                    self._end(db, entry)
        self.tails.write(db, itertools.chain.from_iterable(early.values()))
        self.tails.sweep(db)
        if self.tails.is_too_large:
            self.settle_all(db)

    def begin(self, db: sqlite3.Connection, cell: str, fingerprint: str | None) -> int:
        """Start a new attempt. The record of the one before stays."""
        self.settle_cell(db, cell)
        return _begin(db, cell, fingerprint)

    def settle(self, db: sqlite3.Connection, tails: Mapping[Place, Tail]) -> None:
        """Turn tails into chunks. Then no row of tails is needed for them."""
        for place, tail in tails.items():
            for chunk, chain in tail.chunks():
                self._insert(db, chunk, chain)
            self.tails.cover(place)

    def settle_cell(self, db: sqlite3.Connection, cell: str) -> None:
        """Turn the tail of a cell into a chunk, whichever journal wrote it."""
        foreign = self.tails.read_foreign(db, {cell})
        self.settle(db, foreign | self.tails.read_own(db, [(cell, _latest(db, cell))]))
        if foreign:
            self.tails.sweep_foreign(db)

    def settle_all(self, db: sqlite3.Connection) -> None:
        """Turn all tails of this journal into chunks."""
        places = self.tails.places
        self.settle(db, self.tails.read_own(db, places))
        for place in places:  # also those that another journal went on with
            self.tails.cover(place)
        self.tails.sweep(db, least=1)

    def take_over_dead(self, db: sqlite3.Connection) -> None:
        """Turn the tails into chunks that ended journals left behind."""
        if foreign := self.tails.read_foreign(db):
            self.settle(db, {place: tail for place, tail in foreign.items() if self._leases.is_free(db, place[0])})
        self.tails.sweep_foreign(db)

    def _write_chunk(self, db: sqlite3.Connection, chunk: Chunk) -> None:
        place = chunk.cell, chunk.attempt
        if not chunk.fresh:
            self._make_room(db, chunk)
        self._insert(db, chunk, extend_chain(self._chain(db, place) if chunk.first else b"", chunk.digest))
        self.tails.cover(place)

    def _make_room(self, db: sqlite3.Connection, chunk: Chunk) -> None:
        """Remove the record from a chunk's first step on.

        Where an agent goes on from a state that was saved in a hidden episode, a chunk begins before that and ends
        after.
        """
        place = chunk.cell, chunk.attempt
        (end, _) = db.execute(LAST, place).fetchone() or (0, b"")
        if end < chunk.first:  # it follows a tail
            self.settle_cell(db, chunk.cell)
        db.execute("DELETE FROM chunks WHERE cell = ? AND attempt = ? AND first >= ?", (*place, chunk.first))
        self._chains.pop(place, None)
        (end, _) = db.execute(LAST, place).fetchone() or (0, b"")
        if end > chunk.first:
            last = "FROM chunks WHERE cell = ? AND attempt = ? ORDER BY first DESC LIMIT 1"
            before = Chunk(*db.execute(f"SELECT cell, attempt, first, count, crc, data {last}", place).fetchone())
            db.execute("DELETE FROM chunks WHERE cell = ? AND attempt = ? AND first = ?", (*place, before.first))
            kept = keep_first(before, chunk.first - before.first)
            self._insert(db, kept, extend_chain(self._chain(db, place), kept.digest))

    def _insert(self, db: sqlite3.Connection, chunk: Chunk, chain: bytes) -> None:
        db.execute("INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?)", (*astuple(chunk)[:6], chain))
        self._chains[chunk.cell, chunk.attempt] = chain

    def _chain(self, db: sqlite3.Connection, place: Place) -> bytes:
        """Return the chain value of the last chunk of an attempt; empty without chunks."""
        chain = self._chains.get(place)
        if chain is None:
            _, chain = db.execute(LAST, place).fetchone() or (0, None)
            self._chains[place] = chain = chain or b""
        return chain

    def _end(self, db: sqlite3.Connection, entry: AttemptEnd) -> None:
        place = entry.cell, entry.attempt
        self.settle(db, self.tails.read_own(db, [place]))
        row = (entry.outcome, entry.note, entry.seconds, *place)
        db.execute("UPDATE attempts SET outcome = ?, note = ?, seconds = ? WHERE cell = ? AND number = ?", row)
        self._leases.end(db, entry.cell)
        self._chains.pop(place, None)


def _write_episode(db: sqlite3.Connection, episode: EpisodeEnd) -> None:
    belief, detail = (None if part is None else REPLY_ENCODER.encode(part) for part in (episode.belief, episode.detail))
    row = (*astuple(episode)[:7], belief, episode.ended, detail)
    db.execute("INSERT OR REPLACE INTO episodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    if episode.detected is not None:
        db.execute("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?)", (*row[:3], episode.detected))
    if episode.strength is not None:
        values = (*row[:3], episode.strength, episode.change)
        db.execute("INSERT OR REPLACE INTO strengths VALUES (?, ?, ?, ?, ?)", values)


def _begin(db: sqlite3.Connection, cell: str, fingerprint: str | None) -> int:
    db.execute(
        "UPDATE attempts SET outcome = 'superseded' WHERE cell = ? "
        "AND coalesce(outcome, '') NOT IN ('world_error', 'harness_error')",
        (cell,),
    )
    number = _latest(db, cell) + 1
    db.execute("INSERT INTO attempts (cell, number) VALUES (?, ?)", (cell, number))
    db.execute(COUNT_BEGUN, (BEGUN_FACT,))
    if fingerprint is not None:
        db.execute("INSERT INTO players VALUES (?, ?, ?)", (cell, number, fingerprint))
    return number


def _latest(db: sqlite3.Connection, cell: str) -> int:
    """Return the number of the latest attempt at a cell; 0 before the first."""
    (last,) = db.execute("SELECT max(number) FROM attempts WHERE cell = ?", (cell,)).fetchone()
    return last or 0


def _make_entry(chunk: Chunk, after: bytes) -> TailEntry:
    return TailEntry(chunk.cell, chunk.attempt, chunk.first, chunk.count, chunk.crc, chunk.data, after)


class RunFile:
    """A run file that is open for reading: its rows and steps. `Run` is made of it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open a run file, and refuse any other file."""
        self.path = Path(path)
        self._db = open_to_read(self.path)
        self._lock, self._limits = threading.Lock(), threading.Lock()
        self._large: list[int] = []  # how large rows may be for those who need them larger than others

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _chunks(self, cell: str, attempt: int, first: int = 0) -> Iterator[Chunk]:
        """Yield the chunks of an attempt, from the one on that holds a step, and what follows the last one."""
        with self.snapshot():
            tail = self.tails(cell).get((cell, attempt))
            rows = self._rows(CHUNKS, _Chunk, (cell, attempt, cell, attempt, first), CHUNKS_AT_ONCE, MAX_STEPS_ROW)
            head = list(itertools.islice(rows, 1))  # from now on the others are of the same moment
        yield from (Chunk(*row) for row in itertools.chain(head, rows))
        yield from (chunk for chunk, _ in (tail.chunks() if tail is not None else ()))

    def _all_chunks(self) -> Iterator[tuple[Chunk, bytes]]:
        """Yield the chunks of all attempts, each with its chain value."""
        query = "SELECT cell, attempt, first, count, crc, data, chain FROM chunks ORDER BY cell, attempt, first"
        with self.snapshot():
            tails = self.tails()
            rows = self._rows(query, _ChainedChunk, (), CHUNKS_AT_ONCE, MAX_STEPS_ROW)
            head = list(itertools.islice(rows, 1))
        chunks = ((Chunk(*fields), chain) for *fields, chain in itertools.chain(head, rows))
        late = (each for _, tail in sorted(tails.items()) for each in tail.chunks())
        yield from heapq.merge(chunks, late, key=attempt_of)  # of one attempt, those of `chunks` come first

    def tails(self, cell: str | None = None) -> dict[Place, Tail]:
        """Return the steps that follow the last chunks of attempts: of all, or only of those at a cell."""
        with explaining(self.path), self._allowing(MAX_STEPS_ROW):
            return read_tails(self._db, cell)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read a single state of the file meanwhile, which also costs less: it is locked once. It cannot nest.

        Steps and cells are read in a snapshot anyway, because a journal moves steps from tails to chunks.
        """
        with self._lock, explaining(self.path):
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                self._db.execute("COMMIT")

    def _rows(
        self, query: str, kind: Any, values: Iterable[Any] = (), at_once: int = 256, most: int = 0
    ) -> Iterator[Any]:
        """Yield rows, each of the type it was written as: a damaged file may hold anything.

        Args:
            query: The query.
            kind: The type of a row.
            values: The parameters of the query.
            at_once: How many rows are in memory at a time.
            most: Bytes of the largest row, if it may be larger than others.
        """
        with explaining(self.path):
            with self._allowing(most):
                cursor: sqlite3.Cursor = self._db.execute(query, tuple(values))
                rows = cursor.fetchmany(at_once)
            while rows:
                yield from msgspec.convert(rows, list[kind])
                with self._allowing(most):
                    rows = cursor.fetchmany(at_once)

    @contextmanager
    def _allowing(self, most: int) -> Iterator[None]:
        """Let SQLite read rows meanwhile that are larger than usual."""
        if most <= MAX_ROW:
            yield
            return
        with self._limits:
            self._large.append(most)
            self._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(self._large))
        try:
            yield
        finally:
            with self._limits:
                self._large.remove(most)
                self._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(self._large, default=MAX_ROW))


def attempt_of(chunk: tuple[Chunk, bytes]) -> Place:
    """Return the attempt that a chunk belongs to."""
    return chunk[0].cell, chunk[0].attempt


def has_tails(db: sqlite3.Connection) -> bool:
    """Return whether there are steps in a file that are not in chunks."""
    return db.execute("SELECT id FROM tails LIMIT 1").fetchone() is not None


def read_tails(db: sqlite3.Connection, cell: str | None = None) -> dict[Place, Tail]:
    """Return the tails of all attempts, or only those at a cell.

    Raises:
        DamagedRun: A row cannot be read, or its steps do not follow each other.
    """
    return _follow(db, _gather(db.execute("SELECT crc, data FROM tails"), None if cell is None else {cell}))


def _select(db: sqlite3.Connection, rows: list[int]) -> Iterator[tuple[int, bytes]]:
    for block in split_blocks(rows):
        yield from db.execute("SELECT crc, data FROM tails WHERE id IN ?".replace("?", placeholders(len(block))), block)


def _delete(db: sqlite3.Connection, rows: list[int]) -> None:
    for block in split_blocks(rows):
        db.execute("DELETE FROM tails WHERE id IN ?".replace("?", placeholders(len(block))), block)


def _gather(rows: Iterable[tuple[int, bytes]], cells: Collection[str] | None = None) -> dict[Place, list[TailEntry]]:
    """Return the entries of rows by their attempts: of some cells, or of all."""
    found: dict[Place, list[TailEntry]] = {}
    for crc, data in rows:
        for entry in _decode(crc, data):
            if cells is None or entry.cell in cells:
                found.setdefault((entry.cell, entry.attempt), []).append(entry)
    return found


def _decode(crc: int, data: bytes) -> list[TailEntry]:
    if not isinstance(data, bytes) or zlib.crc32(data) != crc:
        raise DamagedRun("A row of early turns is damaged: its checksum does not fit.")
    try:
        return _ENTRIES.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise DamagedRun(f"A row of early turns is damaged: {error}.") from None


def _follow(
    db: sqlite3.Connection,
    found: dict[Place, list[TailEntry]],
    places: Collection[Place] | None = None,
    strict: bool = True,
) -> dict[Place, Tail]:
    """Return what follows the last chunk of each attempt, without entries that no longer count.

    Args:
        db: The run file.
        found: All entries by attempt.
        places: The attempts that are wanted; None means all.
        strict: Whether entries that do not follow each other are an error.
    """
    tails = {}
    for place, entries in found.items():
        if places is not None and place not in places:
            continue
        end, chain = msgspec.convert(db.execute(LAST, place).fetchone() or (0, b""), tuple[int, bytes])
        counting = [entry for entry in entries if entry.after == chain[:LINK_BYTES]]
        counting.sort(key=lambda entry: entry.first)
        for entry in counting if strict else ():
            if entry.first != end:
                wrong = "are missing" if entry.first > end else "are recorded twice"
                turns = f"turns {min(end, entry.first)} to {max(end, entry.first) - 1}"
                raise DamagedRun(f"Cell {place[0]}, attempt {place[1]}: {turns} {wrong}.")
            end += entry.count
        if counting:
            tails[place] = Tail(chain, counting)
    return tails


_ENCODER = msgspec.msgpack.Encoder()
_ENTRIES = msgspec.msgpack.Decoder(list[TailEntry])
_Chunk = tuple[str, int, int, int, int, bytes]
_ChainedChunk = tuple[str, int, int, int, int, bytes, bytes]
