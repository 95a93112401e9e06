"""Gather the steps of one attempt into chunks, and emit them with the ends of episodes.

A rollout writes through a `Recorder`; a journal, here or in the parent process, keeps the entries it emits.
"""

from __future__ import annotations

import hashlib
import struct
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import msgspec

from openfield.core import Belief, Reply, Truth, Turn
from openfield.errors import DamagedRun
from openfield.journal.receipt import Receipt
from openfield.record import (
    MAX_STEP,
    MAX_VALUES,
    STEP_ENCODER,
    AgentState,
    AttemptEnd,
    Chunk,
    Entry,
    EpisodeEnd,
    LargeArray,
    RawStep,
    Step,
    has_too_many_values,
    write_large_step,
)

CHUNK_BYTES = 64 * 1024
"""Size of a chunk: with 16 kB a turn costs more, and 256 kB leave the processor's cache."""
MAX_CHUNK = 100 << 20
"""Bytes of the steps in one chunk: a step may come on top of an almost full one."""
MAX_RATIO = 250
"""How many times its bytes the steps of a large chunk may be: a small file must not take long to read."""
COSTLY_REPLY = 100_000_000
"""Nanoseconds. A reply that took longer, or used tokens, is on disk at once, for a few milliseconds, and not with its
episode."""
HIDDEN_NANOSECONDS = 200_000_000
"""How long the end of an episode may wait if the agent does not see it: some episodes last only ten turns."""
LARGE_BYTES = 128 * 1024
"""Chunks from this size on hold single large values. Numbers are stored as they are: compressing 450 kB takes 3 ms."""
FEW_BYTES = 1 << 20
"""What is unpacked at once; more is unpacked in small parts."""
PART_BYTES = 16 * 1024
SAMPLE_BYTES = 8 * 1024
MAX_BLOCK = 0xFFFF
"""Bytes of a block of a zlib stream that is stored as it is."""
SMALL_BYTES = 512
"""Chunks below this size are stored as they are: for zlib Python lets other threads go first, and agents wait."""


class OversizedChunk(DamagedRun):
    """A chunk holds more than openfield writes, so nothing more of its file is read."""


class Emit(Protocol):
    """Takes entries that belong together: all of them are kept, or none."""

    def __call__(self, *entries: Entry) -> Receipt[None] | None:
        """Take the entries."""
        ...


class Recorder:
    """Gathers the steps of one attempt and emits them as entries."""

    def __init__(self, cell: str, attempt: int, emit: Emit, written: int = 0, full: bool = False) -> None:
        """Start recording, or go on.

        Args:
            cell: The cell.
            attempt: The number of the attempt.
            emit: Takes the entries.
            written: How many steps were written before.
            full: Whether large arrays of turns are kept, and not only their digests.
        """
        self.cell = cell
        self.attempt = attempt
        self.written = written
        """Steps in finished chunks."""
        self.rule: Callable[[Belief], bool] | None = None
        """The domain's own rule for detections, applied when an episode ends; None where the common rule holds."""
        self.due = False
        """Whether the steps so far should be emitted with `settle` before the next one."""
        self._steps = self._committed = written  # all steps, and those emitted early
        self._emit, self._full = emit, full
        self._buffer = bytearray()
        self._costly = False  # whether the chunk under way ends with a costly reply
        self._mark = 0  # where in the buffer the first step begins that was not emitted early
        self._latest = b""  # the steps of the last chunk, as a list
        self._state: AgentState | None = None  # waits to be emitted with the next steps, as do the episodes
        self._episodes: list[EpisodeEnd] = []
        self._emitted = 0  # when an episode was emitted last
        self._receipt: Receipt[None] | None = None  # of the last step, if it was emitted in a hurry
        self._sole = False  # whether everything on record from the last chunk on came from here

    def rewind(self, steps: int) -> None:
        """Go back to an earlier step before anything is added. What follows replaces the rest."""
        self.written = self._committed = self._steps = steps

    def write(self, reply: Reply | None, took: int, turn: Turn | msgspec.Raw | None, truth: Truth | None) -> None:
        """Add a step.

        Args:
            reply: The agent's reply; None before the first turn.
            took: Nanoseconds the agent needed.
            turn: The turn it led to; None if there is no new one.
            truth: The truth about the turn; None if that is the same as before.
        """
        step = (reply, took, turn) if truth is None else (reply, took, turn, truth)
        buffer, size = self._buffer, len(self._buffer)
        try:
            try:
                STEP_ENCODER.encode_into(step, buffer, -1)
            except LargeArray:
                del buffer[size:]
                write_large_step(step, buffer, self._full)
        except BaseException:
            del buffer[size:]  # no half step stays
            raise
        if took > COSTLY_REPLY or len(buffer) > CHUNK_BYTES:
            self.due = True
            self._costly = took > COSTLY_REPLY
            if len(buffer) - size > MAX_STEP:
                large, buffer[size:] = len(buffer) - size, b""
                raise ValueError(f"a step of {large >> 20} MB; {MAX_STEP >> 20} MB are allowed")
            if has_too_many_values(bytes(buffer[size:])):
                del buffer[size:]
                raise ValueError(f"a step of more than {MAX_VALUES:,} values")
        self._steps += 1

    def hurry(self) -> None:
        """Let the last step be emitted now, however short its reply took: tokens were paid for it."""
        self.due = self._costly = True

    def settle(self) -> None:
        """Emit the steps so far, because the chunk is full or the last reply was costly."""
        if len(self._buffer) > CHUNK_BYTES:
            self.flush(self._costly)
        elif self._costly:
            self.commit(self._costly)
        self.due = False

    def flush(self, costly: bool = False) -> None:
        """Emit the steps so far as a chunk. Its commit may wait for company, unless the last reply was costly."""
        chunks = [msgspec.structs.replace(chunk, full=not costly, costly=costly) for chunk in self._chunk()]
        receipt = self._emit(*chunks, *self._waiting())
        self._receipt = receipt if costly else None

    def commit(self, costly: bool = False) -> Receipt[None] | None:
        """Emit the newest steps at once, on their own. The chunk they belong to will replace them.

        Args:
            costly: The last reply may have been paid for, so that a power cut must not lose it either.
        """
        count, first = self._steps - self._committed, self._committed
        if not count and self._receipt is not None and self._state is None and not self._episodes:
            return self._receipt
        early: tuple[Chunk, ...] = ()
        if count:
            steps = _as_list(self._buffer[self._mark :], count)
            place = self.cell, self.attempt, first, count
            early = (_pack(place, steps, self._sole, costly, self._full, early=self._sole),)
            self._sole = True
        self._committed, self._mark = self._steps, len(self._buffer)
        self._receipt = self._emit(*early, *self._waiting())
        return self._receipt

    def end_episode(self, episode: EpisodeEnd, state: bytes | None, hidden: bool = False) -> None:
        """Emit an episode with its last steps and the agent's state.

        Args:
            episode: The episode that ended.
            state: What the agent's `save` gave; None if it has none.
            hidden: The agent does not see the end, so it may wait a moment.
        """
        if self.rule is not None and episode.belief is not None:
            episode = msgspec.structs.replace(episode, detected=self.rule(episode.belief))
        self._episodes.append(episode)
        if state is not None:
            self._state = AgentState(self.cell, self.attempt, self._steps, state)
        now = time.monotonic_ns()
        if not hidden or now - self._emitted > HIDDEN_NANOSECONDS:
            self._emitted = now
            self._receipt = self._emit(*self._chunk(), *self._waiting())

    def end(self, outcome: str, note: str, seconds: float) -> None:
        """Emit how the attempt ended, with its last steps."""
        ended = AttemptEnd(self.cell, self.attempt, outcome, note, seconds)
        self._emit(*self._chunk(), *self._waiting(), ended)

    def last_turn(self) -> msgspec.Raw | None:
        """Return the turn shown last, as it was written; None if that was before this recorder began."""
        count = self._steps - self.written
        steps = _as_list(self._buffer, count) if count else self._latest
        return _RAW_STEPS.decode(steps)[-1].turn if steps else None

    def _waiting(self) -> tuple[Entry, ...]:
        """Return what waits to be emitted, and forget it."""
        states = () if self._state is None else (self._state,)
        waiting: tuple[Entry, ...] = (*states, *self._episodes)
        self._state, self._episodes = None, []
        return waiting

    def _chunk(self) -> tuple[Chunk, ...]:
        count = self._steps - self.written
        if not count:
            return ()
        fresh = self._sole and self._committed == self.written
        place = self.cell, self.attempt, self.written, count
        self._latest = _as_list(self._buffer, count)
        chunk = _pack(place, self._latest, fresh, self._costly, self._full)
        self._sole = True
        self._buffer.clear()
        self.written = self._committed = self._steps
        self._mark, self._costly = 0, False
        return (chunk,)


def read_chunk(chunk: Chunk) -> list[Step]:
    """Return the steps of a chunk."""
    return _decode(chunk, _STEPS)


def read_raw_chunk(chunk: Chunk) -> list[RawStep]:
    """Return the steps of a chunk with their turns as bytes."""
    return _decode(chunk, _RAW_STEPS)


def digest_chunk(chunk: Chunk) -> bytes:
    """Return the digest of the steps of a chunk: that of their uncompressed bytes; empty if they cannot be read.

    Raises:
        OversizedChunk: They are too many.
    """
    try:
        return hashlib.sha256(unpack(chunk)).digest()
    except OversizedChunk:
        raise
    except DamagedRun:
        return b""


def keep_first(chunk: Chunk, count: int) -> Chunk:
    """Return a chunk of the first steps only."""
    kept = b"".join(bytes(step) for step in _decode(chunk, _ENCODED_STEPS)[:count])
    return _pack((chunk.cell, chunk.attempt, chunk.first, count), _as_list(kept, count))


def join_chunks(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield the steps of chunks that follow each other as few chunks, each as large as one may be."""
    place, count, joined = ("", 0, 0), 0, bytearray()
    for chunk in chunks:
        if not count:
            place = chunk.cell, chunk.attempt, chunk.first
        for step in _decode(chunk, _ENCODED_STEPS):
            joined += step
        count += chunk.count
        if len(joined) > MAX_STEP // 2:  # one more step, however large, must not make a chunk too large
            yield _pack((*place, count), _as_list(joined, count))
            count = 0
            joined.clear()
    if count:
        yield _pack((*place, count), _as_list(joined, count))


def fill_truth(steps: Iterator[Step]) -> Iterator[Step]:
    """Yield the same steps with the truth of every turn written out."""
    known: Truth | None = None
    for step in steps:
        known = step.truth or known
        yield msgspec.structs.replace(step, truth=known)


def _pack(
    place: tuple[str, int, int, int],
    steps: bytes,
    fresh: bool = False,
    costly: bool = False,
    full: bool = False,
    early: bool = False,
) -> Chunk:
    """Return steps as a chunk. Compressing costs less than the pages it saves.

    Args:
        place: Cell, attempt, first step and number of steps.
        steps: The steps.
        fresh: Nothing is recorded from the first step on.
        costly: A reply took long.
        full: They hold pictures, which are compressed however large they are.
        early: The chunk that they belong to is still to come, and is the one that the chain needs.
    """
    data, digest = _compress(steps, full), b"" if early else hashlib.sha256(steps).digest()
    return Chunk(*place, zlib.crc32(data), data, fresh=fresh, costly=costly, digest=digest, early=early)


def _compress(steps: bytes, full: bool) -> bytes:
    if SMALL_BYTES <= len(steps) < LARGE_BYTES:
        return zlib.compress(steps, 1)
    if len(steps) >= LARGE_BYTES and (full or _shrinks(steps)):
        return _store(steps, len(steps) // MAX_RATIO + 1)
    return _store(steps, len(steps))


def _store(steps: bytes, plain: int) -> bytes:
    """Return steps as a zlib stream. Its first bytes are as they are, in a fifth of the time that zlib takes."""
    parts: list[bytes | memoryview] = [_STREAM]
    view = memoryview(steps)  # slices of it copy nothing
    for at in range(0, plain, MAX_BLOCK):
        size = min(plain - at, MAX_BLOCK)
        parts += (_BLOCK.pack(at + size == len(steps), size, size ^ 0xFFFF), view[at : at + size])
    if plain < len(steps):
        packing = zlib.compressobj(1, wbits=-zlib.MAX_WBITS)
        parts += (packing.compress(view[plain:]), packing.flush())
    return b"".join([*parts, zlib.adler32(steps).to_bytes(4, "big")])


def _shrinks(steps: bytes) -> bool:
    """Return whether a large chunk is worth compressing, as texts are, by a sample from its middle: 0.1 ms."""
    middle = len(steps) // 2
    return len(zlib.compress(steps[middle : middle + SAMPLE_BYTES], 1)) < SAMPLE_BYTES / 2


def inflate(data: bytes) -> bytes:
    """Return the steps of a chunk.

    Raises:
        OversizedChunk: They are more than openfield writes: a hostile file may hold some that grow without end.
        zlib.error: They cannot be read.
    """
    unpacking = zlib.decompressobj()
    steps = unpacking.decompress(data, FEW_BYTES)
    room = min(MAX_CHUNK, max(LARGE_BYTES, MAX_RATIO * len(data)))
    if unpacking.eof and len(steps) <= room:
        return steps
    return _inflate_large(data, room)


def _inflate_large(data: bytes, room: int) -> bytes:
    """Return the steps of a chunk, which are counted first: parts of too many would fill the memory."""
    unpacking, size = zlib.decompressobj(), 0
    for at in range(0, len(data), PART_BYTES):
        size += len(unpacking.decompress(data[at : at + PART_BYTES]))
        if size > room:
            raise OversizedChunk(f"its {len(data) >> 10} kB hold more than {room >> 10} kB")
    if not unpacking.eof:
        raise zlib.error("it is cut short")
    return zlib.decompress(data, bufsize=size)


def _as_list(steps: bytes | bytearray, count: int) -> bytes:
    """Return encoded steps as one encoded list."""
    return _ARRAY32 + count.to_bytes(4, "big") + steps


def unpack(chunk: Chunk) -> bytes:
    """Return the encoded steps of a chunk.

    Raises:
        DamagedRun: They cannot be read, or are too many.
    """
    if zlib.crc32(chunk.data) != chunk.crc:
        raise DamagedRun(f"A chunk of the record is damaged ({_place(chunk)}): its checksum does not fit.")
    try:
        steps = inflate(chunk.data)
    except zlib.error as error:
        raise DamagedRun(f"A chunk of the record is damaged ({_place(chunk)}): {error}.") from None
    except OversizedChunk as error:
        raise OversizedChunk(f"A chunk of the record is too large ({_place(chunk)}): {error}.") from None
    if has_too_many_values(steps):
        reason = f"it holds more than {MAX_VALUES:,} values"
        raise OversizedChunk(f"A chunk of the record is too large ({_place(chunk)}): {reason}.")
    return steps


def _decode(chunk: Chunk, decoder: msgspec.msgpack.Decoder[list[Any]]) -> list[Any]:
    try:
        steps = decoder.decode(unpack(chunk))
    except (msgspec.DecodeError, RecursionError) as error:
        raise DamagedRun(f"A chunk of the record is damaged ({_place(chunk)}): {error}.") from None
    if len(steps) != chunk.count:
        raise DamagedRun(f"A chunk of the record is damaged ({_place(chunk)}): it holds {len(steps)} turns.")
    return steps


def _place(chunk: Chunk) -> str:
    return f"cell {chunk.cell}, attempt {chunk.attempt}, turns {chunk.first} to {chunk.first + chunk.count - 1}"


_ARRAY32 = b"\xdd"
_STREAM = b"\x78\x01"  # how a zlib stream begins
_BLOCK = struct.Struct("<BHH")  # before each block that is not compressed: whether it is the last, and its size
_STEPS = msgspec.msgpack.Decoder(list[Step])
_RAW_STEPS = msgspec.msgpack.Decoder(list[RawStep])
_ENCODED_STEPS = msgspec.msgpack.Decoder(list[msgspec.Raw])
