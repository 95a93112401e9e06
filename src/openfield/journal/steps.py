"""How turns and replies are written down: compact, self-checking, the same bytes for the same values.

Stands between rollout and journal: a rollout writes steps through a `Recorder`, which emits entries a journal keeps.
"""

from __future__ import annotations

import hashlib
import time
import zlib
from collections.abc import Iterator
from typing import Any, Protocol

import msgspec
import numpy as np

from openfield.core import Belief, PhaseName, Reply, Truth, Turn
from openfield.errors import DamagedRun
from openfield.journal.receipt import Receipt

CHUNK_BYTES = 64 * 1024
"""A chunk of the record; with 16 kB a turn costs 0.4 calls more, with 256 kB, which leave the cache, 0.3."""
HIDDEN_NANOSECONDS = 200_000_000
"""How long the end of an episode the agent is not told of may wait to be written: some last ten turns only."""
LARGE_BYTES = 128 * 1024
"""Chunks from here on hold single large replies and are stored as they are: squeezing 450 kB of numbers takes 3 ms."""
SMALL_ARRAY = 64
"""Arrays up to this many numbers are written out; larger ones leave a digest and are made again by replay."""


class Step(msgspec.Struct, frozen=True, array_like=True):
    """A reply and the turn it led to. The first step of a trial has no reply, the last one no turn."""

    reply: Reply | None
    took: int
    """Nanoseconds the agent needed."""
    turn: Turn | None
    truth: Truth | None = None
    """What is true of `turn`; None means: the same as before."""


class RawStep(msgspec.Struct, frozen=True, array_like=True):
    """A step whose turn is left as the recorded bytes, to compare a replayed turn with."""

    reply: Reply | None
    took: int
    turn: msgspec.Raw
    truth: Truth | None = None


class Chunk(msgspec.Struct, frozen=True, tag="chunk"):
    """Some steps of an attempt, compressed. It replaces whatever was recorded from its first step on."""

    cell: str
    attempt: int
    first: int
    count: int
    crc: int
    data: bytes
    full: bool = False
    """Emitted only because it was full: nobody waits for it."""
    fresh: bool = False
    """Nothing is recorded from its first step on, so there is nothing to be replaced."""


class EpisodeEnd(msgspec.Struct, frozen=True, tag="episode", kw_only=True):
    """A finished episode."""

    cell: str
    attempt: int
    number: int
    phase: PhaseName
    novel: bool
    turns: int
    performance: float | None
    belief: Belief | None
    ended: str
    detail: Any = None
    """What the truth at its end said beyond that."""


class AgentState(msgspec.Struct, frozen=True, tag="state"):
    """What an agent's `save` gave after so many recorded steps."""

    cell: str
    attempt: int
    step: int
    data: bytes


class AttemptEnd(msgspec.Struct, frozen=True, tag="end"):
    """How an attempt at a cell ended."""

    cell: str
    attempt: int
    outcome: str
    note: str
    seconds: float
    torn: bool = False
    """Whoever played it died: what is recorded is sound, and can be gone on with."""


Entry = Chunk | EpisodeEnd | AgentState | AttemptEnd


class Emit(Protocol):
    """Takes entries that belong together: all of them are kept, or none."""

    def __call__(self, *entries: Entry) -> Receipt[None] | None:
        """Takes them."""
        ...


class Recorder:
    """Gathers the steps of one attempt and emits them as entries. `buffer` is filled by the rollout."""

    def __init__(self, cell: str, attempt: int, emit: Emit, written: int = 0) -> None:
        self.cell = cell
        self.attempt = attempt
        self.buffer = bytearray()
        self._emit = emit
        self.written = written
        """Steps in finished chunks."""
        self._committed = written  # steps emitted early, and where in the buffer the next one begins
        self._mark = 0
        self._latest = b"", 0  # the last chunk and how many steps it has
        self._state: AgentState | None = None  # what waits to be emitted with the next steps
        self._episodes: list[EpisodeEnd] = []
        self._emitted = 0  # when an episode was emitted last
        self._sole = False  # whether all there is on record from the last chunk on came from here

    def rewind(self, steps: int) -> None:
        """Goes back to where the attempt had fewer steps, before anything is added; what follows replaces the rest."""
        self.written = self._committed = steps

    def flush(self, steps: int) -> None:
        """Emits what the buffer holds; `steps` is how many the attempt has so far."""
        full = (msgspec.structs.replace(chunk, full=True) for chunk in self._chunk(steps))
        self._emit(*full, *self._waiting())

    def commit(self, steps: int) -> Receipt[None] | None:
        """Emits the newest steps at once, on their own; the chunk they belong to will replace them."""
        count, first = steps - self._committed, self._committed
        early: tuple[Chunk, ...] = ()
        if count:
            data = _squeeze(_array(self.buffer[self._mark :], count))  # which costs less than the pages it saves
            early = (Chunk(self.cell, self.attempt, first, count, zlib.crc32(data), data, fresh=self._sole),)
            self._sole = True
        self._committed, self._mark = steps, len(self.buffer)
        return self._emit(*early, *self._waiting())

    def end_episode(self, episode: EpisodeEnd, state: bytes | None, steps: int, hidden: bool = False) -> None:
        """Emits an episode with its last steps, and the agent's state if it has one; a hidden one may wait a moment."""
        self._episodes.append(episode)
        if state is not None:
            self._state = AgentState(self.cell, self.attempt, steps, state)
        now = time.monotonic_ns()
        if not hidden or now - self._emitted > HIDDEN_NANOSECONDS:
            self._emitted = now
            self._emit(*self._chunk(steps), *self._waiting())

    def end(self, outcome: str, note: str, steps: int, seconds: float) -> None:
        """Emits how the attempt ended, with its last steps."""
        ended = AttemptEnd(self.cell, self.attempt, outcome, note, seconds)
        self._emit(*self._chunk(steps), *self._waiting(), ended)

    def last_turn(self, steps: int) -> msgspec.Raw | None:
        """The turn shown last, as it was written; None if that was before this recorder began."""
        count = steps - self.written
        data, count = (bytes(self.buffer), count) if count else self._latest
        return _RAW_STEPS.decode(_array(data, count))[-1].turn if count else None

    def _waiting(self) -> tuple[Entry, ...]:
        """What waits, which then waits no longer."""
        states = () if self._state is None else (self._state,)
        waiting: tuple[Entry, ...] = (*states, *self._episodes)
        self._state, self._episodes = None, []
        return waiting

    def _chunk(self, steps: int) -> tuple[Chunk, ...]:
        count = steps - self.written
        if not count:
            return ()
        data = _squeeze(_array(self.buffer, count))
        fresh = self._sole and self._committed == self.written
        chunk = Chunk(self.cell, self.attempt, self.written, count, zlib.crc32(data), data, fresh=fresh)
        self._latest = bytes(self.buffer), count
        self._sole = True
        self.buffer.clear()
        self.written = self._committed = steps
        self._mark = 0
        return (chunk,)


def read_chunk(chunk: Chunk) -> list[Step]:
    """The steps of a chunk."""
    return _decode(chunk, _STEPS)


def read_raw_chunk(chunk: Chunk) -> list[RawStep]:
    """The steps of a chunk for comparison."""
    return _decode(chunk, _RAW_STEPS)


def keep_first(chunk: Chunk, count: int) -> Chunk:
    """A chunk with its first steps only."""
    kept = b"".join(bytes(step) for step in _decode(chunk, _ENCODED_STEPS)[:count])
    data = _squeeze(_array(kept, count))
    return Chunk(chunk.cell, chunk.attempt, chunk.first, count, zlib.crc32(data), data)


def fill_truth(steps: Iterator[Step]) -> Iterator[Step]:
    """The same steps, with the truth of every turn written out."""
    known: Truth | None = None
    for step in steps:
        known = step.truth or known
        yield msgspec.structs.replace(step, truth=known)


def _squeeze(steps: bytes) -> bytes:
    return zlib.compress(steps, 1 if len(steps) < LARGE_BYTES else 0)


def _array(steps: bytes | bytearray, count: int) -> bytes:
    """Encoded steps as one encoded list."""
    return _ARRAY32 + count.to_bytes(4, "big") + steps


def _decode(chunk: Chunk, decoder: msgspec.msgpack.Decoder[list[Any]]) -> list[Any]:
    place = f"cell {chunk.cell}, attempt {chunk.attempt}, turns {chunk.first} to {chunk.first + chunk.count - 1}"
    if zlib.crc32(chunk.data) != chunk.crc:
        raise DamagedRun(f"A chunk of the record is damaged ({place}): its checksum does not fit.")
    try:
        steps = decoder.decode(zlib.decompress(chunk.data))
    except (zlib.error, msgspec.DecodeError, RecursionError) as error:
        raise DamagedRun(f"A chunk of the record is damaged ({place}): {error}.") from None
    if len(steps) != chunk.count:
        raise DamagedRun(f"A chunk of the record is damaged ({place}): it holds {len(steps)} turns.")
    return steps


def write_step(step: tuple[Any, ...], buffer: bytearray) -> None:
    """Writes a step: large arrays of a reply in full, since replay needs them, those of a turn as digests."""
    size = len(buffer)
    try:
        STEP_ENCODER.encode_into(step, buffer, -1)
    except LargeArray:
        del buffer[size:]
        buffer += bytes([_FIXARRAY | len(step)]) + REPLY_ENCODER.encode(step[0])
        for part in step[1:]:
            ENCODER.encode_into(part, buffer, -1)


class LargeArray(Exception):
    """A step holds a large array; it cannot be written in one go."""


def _written_out(value: Any) -> Any:
    """Stands in for values msgspec has no form for: arrays and NumPy numbers."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} cannot be recorded; use numbers, text, lists, mappings or arrays")


def _digested(value: Any) -> Any:
    large = isinstance(value, np.ndarray) and value.size > SMALL_ARRAY
    return array_digest(value) if large else _written_out(value)


def _refused(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.size > SMALL_ARRAY:
        raise LargeArray
    return _written_out(value)


def array_digest(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """What stands for a large array in the record."""
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:32]
    return {"array": digest, "shape": list(array.shape), "dtype": str(array.dtype)}


ENCODER = msgspec.msgpack.Encoder(enc_hook=_digested)
"""Writes turns and truths."""
REPLY_ENCODER = msgspec.msgpack.Encoder(enc_hook=_written_out)
"""Writes replies, and what is kept of them elsewhere."""
KEY_ENCODER = msgspec.json.Encoder(enc_hook=_digested, order="sorted")
"""Gives equal text for equal values, whether arrays are at hand or only what the record has of them."""
STEP_ENCODER = msgspec.msgpack.Encoder(enc_hook=_refused)
"""Writes whole steps fast, if they hold no large array."""
_FIXARRAY = 0x90
_ARRAY32 = b"\xdd"
_STEPS = msgspec.msgpack.Decoder(list[Step])
_RAW_STEPS = msgspec.msgpack.Decoder(list[RawStep])
_ENCODED_STEPS = msgspec.msgpack.Decoder(list[msgspec.Raw])
