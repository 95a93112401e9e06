"""The record of a rollout: steps, ends of episodes and attempts, and how their values are written and compared.

The same values give the same bytes. A `journal.recorder.Recorder` gathers these entries, a journal keeps them.
"""

from __future__ import annotations

import enum
import hashlib
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from openfield.core import Belief, PhaseName, Reply, Truth, Turn
from openfield.errors import AgentProtocol, describe_error, shorten

__all__ = ["AgentState", "AttemptEnd", "AttemptPlayer", "Chunk", "Entry", "EpisodeEnd", "Step"]

SMALL_ARRAY = 64
"""Arrays up to this many numbers are written out. Larger ones leave a digest, and replay makes them again."""
RECORD_FACT = "record"
"""The fact of a run file that says which of these it keeps, if that was said."""
MAX_STEP = 64 << 20
"""Bytes of one step, that is a reply and the turn it led to. An agent that replies with more is flooding."""
MAX_VALUES = 4_000_000
"""Values in one step or detail, of which each list and mapping counts as eight: a byte may become 64 in memory."""
MAX_REPLY_NOTE = 8 << 20
"""Bytes of the note of a reply."""
UNWRITABLE = (TypeError, ValueError, OverflowError, RecursionError)
"""What encoding raises for values that have no form in the record."""


_CONTAINER = 8
_CONTAINERS = bytes((*range(0x80, 0xA0), 0xDC, 0xDD, 0xDE, 0xDF))
"""How lists and mappings begin in MessagePack."""
_FIXED = {2: (0xCC, 0xD0), 3: (0xCD, 0xD1, 0xD4, 0xDC, 0xDE), 4: (0xD5,), 5: (0xCA, 0xCE, 0xD2, 0xDD, 0xDF)}
_LONG = {9: (0xCB, 0xCF, 0xD3), 6: (0xD6,), 10: (0xD7,), 18: (0xD8,)}
_SIZED = {-1: (0xC4, 0xC7, 0xD9), -2: (0xC5, 0xC8, 0xDA), -4: (0xC6, 0xC9, 0xDB)}
_WIDTHS = {kind: width for widths in (_FIXED, _LONG, _SIZED) for width, kinds in widths.items() for kind in kinds}
"""Bytes of each kind of value, or those of its length, negative."""


class Step(msgspec.Struct, frozen=True, array_like=True):
    """A reply and the turn it led to. The first step of a trial has no reply, the last one no turn."""

    reply: Reply | None
    took: int
    """Nanoseconds the agent needed."""
    turn: Turn | None
    truth: Truth | None = None
    """The truth about `turn`; None means the same as before."""


class RawStep(msgspec.Struct, frozen=True, array_like=True):
    """A step whose turn is left as the recorded bytes, to compare a replayed turn with."""

    reply: Reply | None
    took: int
    turn: msgspec.Raw
    truth: Truth | None = None


class Chunk(msgspec.Struct, frozen=True, tag="chunk"):
    """Some steps of an attempt, compressed. It replaces everything recorded from its first step on."""

    cell: str
    attempt: int
    first: int
    count: int
    crc: int
    data: bytes
    full: bool = False
    """Emitted only because it was full: no reply waits for it."""
    costly: bool = False
    """A reply in it took long, and may have been paid for: a power cut must not lose it."""
    fresh: bool = False
    """Nothing is recorded from its first step on, so there is nothing to replace."""
    digest: bytes = b""
    """The SHA-256 of its uncompressed bytes, a link of the chain of an attempt's steps; empty if it is early."""
    early: bool = False
    """Written on its own to be acknowledged, and fresh: the chunk that its steps belong to is still to come."""


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
    """The detail of the truth at its end."""
    detected: bool | None = None
    """Whether the belief is a detection by a rule of the domain's own; None where the common rule holds."""
    strength: float | None = None
    """How strong the change was at most in it; None where the truth does not tell."""
    change: str = ""
    """The novelties in force then."""


class EpisodeInProgress:
    """The episode in progress: which one it is, where it began, and what the agent believes in it."""

    __slots__ = ("belief", "change", "first", "novel", "number", "strength")

    def __init__(self, number: int = 0, first: int = 0, novel: bool = False) -> None:
        self.number = number
        self.first = first
        """How many turns had been taken when it began."""
        self.novel = novel
        """Whether it began in a changed world."""
        self.belief: Belief | None = None
        """The last belief the agent reported."""
        self.strength: float | None = None
        """How strong the change was at most so far, if the truth tells."""
        self.change = ""

    def note(self, truth: Truth) -> None:
        """Take note of a truth that tells how strong the change is."""
        self.novel |= truth.novel
        if truth.strength is not None and truth.strength > (-1.0 if self.strength is None else self.strength):
            self.strength, self.change = truth.strength, truth.change


class AgentState(msgspec.Struct, frozen=True, tag="state"):
    """The bytes an agent's `save` gave after a number of recorded steps."""

    cell: str
    attempt: int
    step: int
    data: bytes


class AttemptEnd(msgspec.Struct, frozen=True, tag="end"):
    """The outcome of an attempt at a cell."""

    cell: str
    attempt: int
    outcome: str
    note: str
    seconds: float
    torn: bool = False
    """The process that played it died. Its record is sound, and the attempt can go on from there."""


class AttemptPlayer(msgspec.Struct, frozen=True, tag="player"):
    """Which version of an agent plays an attempt, where it is not the one that the plan has."""

    cell: str
    attempt: int
    fingerprint: str


Entry = Chunk | EpisodeEnd | AgentState | AttemptPlayer | AttemptEnd


def write_large_step(step: tuple[Any, ...], buffer: bytearray, full: bool = False) -> None:
    """Append a step that `STEP_ENCODER` refuses.

    Large arrays of a reply are written out, since replay needs them, those of a turn as digests.

    Args:
        step: Reply, time, turn and perhaps truth.
        buffer: Where it is written.
        full: Whether the bytes of the turn's arrays are kept beside their digests.
    """
    reply, took, turn, *truth = step
    buffer += bytes([_FIXARRAY | len(step)]) + REPLY_ENCODER.encode(reply)
    ENCODER.encode_into(took, buffer, -1)
    (_FULL_ENCODER if full else ENCODER).encode_into(turn, buffer, -1)
    for part in truth:
        ENCODER.encode_into(part, buffer, -1)


def has_too_many_values(data: bytes | bytearray) -> bool:
    """Return whether encoded values would take much more memory than they have bytes."""
    if len(data) <= MAX_VALUES // _CONTAINER:
        return False
    most = len(data) + (_CONTAINER - 1) * (len(data) - len(data.translate(None, _CONTAINERS)))
    return most > MAX_VALUES and _exceeds(data)


def _exceeds(data: bytes | bytearray) -> bool:
    """Go through encoded values one by one, without making them, as long as there are not too many."""
    at, counted, end = 0, 0, len(data)
    while at < end:
        kind = data[at]
        counted += _CONTAINER if kind in _CONTAINERS else 1
        if counted > MAX_VALUES:
            return True
        width = _WIDTHS.get(kind)
        if width is None:
            at += 1 + (kind & 31 if 0xA0 <= kind < 0xC0 else 0)
        elif width > 0:
            at += width
        else:  # how long it is follows
            at += 1 - width + int.from_bytes(data[at + 1 : at + 1 - width], "big") + (0xC7 <= kind <= 0xC9)
    return False


def explain_unwritable(reply: object) -> str:
    """Return why a reply cannot be recorded, as the rest of a sentence about it; empty if it can."""
    try:
        encoded = REPLY_ENCODER.encode(reply)
    except UNWRITABLE as reason:
        return f"cannot be recorded: {reason}"
    if len(encoded) > MAX_STEP:
        return f"has {len(encoded) >> 20} MB; {MAX_STEP >> 20} MB are allowed"
    return f"has more than {MAX_VALUES:,} values" if has_too_many_values(encoded) else ""


def is_same_turn(turn: Turn, recorded: msgspec.Raw) -> bool:
    """Return whether a replayed turn is the recorded one. Arrays whose bytes are kept must fit their digests."""
    return _is_equal(ENCODER.encode(turn), bytes(recorded), _TURNS)


def is_same_truth(truth: Truth, recorded: Truth) -> bool:
    """Return whether the truth about a replayed turn is the recorded one."""
    return _is_equal(ENCODER.encode(truth), ENCODER.encode(recorded), _TRUTHS)


def is_same_reply(reply: object, recorded: Reply | None) -> bool:
    """Return whether an agent that is shown an old turn again answers as it did. Notes may differ: they hold times."""
    try:
        if type(reply) is not Reply or recorded is None:
            return False
        one, other = (each if each.note is None else replace(each, note=None) for each in (reply, recorded))
        return _is_equal(REPLY_ENCODER.encode(one), REPLY_ENCODER.encode(other), _REPLIES)
    except Exception:  # an agent's values may raise anything
        return False


def make_plain(reply: Reply) -> Reply:
    """Return a reply as the record gives it back. An action of plain data and NumPy's is left as it is.

    Raises:
        AgentProtocol: A part of it has no form in the record.
    """
    action, belief, note = reply.action, reply.belief, reply.note
    try:
        action = _read_back(action, _VALUES) if _may_be_disguised(action) else action
        if type(belief) is Belief and belief.detail is not None:
            belief = Belief(belief.novel, belief.level, _read_back(belief.detail, _VALUES))
    except ValueError as error:
        raise AgentProtocol(f"the reply cannot be recorded: {error}.") from None
    if belief is not None and not (
        type(belief) is Belief and belief.level is None and type(belief.novel) is float and 0.0 <= belief.novel <= 1.0
    ):
        try:
            belief = check_belief(belief)
        except ValueError as error:
            raise AgentProtocol(f"{shorten(belief)} is not a belief: {error}.") from None
    if note is not None:
        try:
            note = check_note(note)
        except ValueError as error:
            raise AgentProtocol(f"the note cannot be recorded: {error}.") from None
    return Reply(action, belief, reply.took if type(reply.took) is float else NO_TIME, note)


def _may_be_disguised(action: object) -> bool:
    """Return whether an action could fail inside the world, which would not be counted against the agent."""
    try:
        return _is_disguised(action)
    except Exception:  # which an object of an agent's own class may raise
        return True


def _is_disguised(value: object) -> bool:
    """Return whether a value is, or holds, one of a class derived from that of plain data. Enumerations may be."""
    kind = type(value)  # compared one by one: to look it up would call methods of its own class
    if kind is int or kind is float or kind is str or kind is bool or kind is bytes or value is None:
        return False
    if kind is dict:
        return any(_is_disguised(each) for pair in value.items() for each in pair)  # type: ignore[attr-defined]
    if kind is list or kind is tuple:
        return any(_is_disguised(each) for each in value)  # type: ignore[attr-defined]
    if kind is np.ndarray:
        return value.dtype.hasobject  # type: ignore[attr-defined, no-any-return]
    derived = isinstance(value, dict | list | str | bytes | int | float | np.ndarray)
    return derived and not isinstance(value, enum.Enum) and kind.__module__ != "numpy"


def check_belief(belief: object) -> Belief:
    """Return a belief as the record gives it back, and check that it is a probability.

    Raises:
        ValueError: It is not.
    """
    plain: Belief = _read_back(belief, _BELIEFS)
    chances = plain.novel if isinstance(plain.novel, tuple) else (plain.novel,)
    if not chances or not all(0.0 <= chance <= 1.0 for chance in chances):
        raise ValueError("the probability that the world has changed is a number from 0 to 1")
    return plain


def check_note(note: object) -> Any:
    """Return a note as the record gives it back, and check that a step has room for it and the rest.

    Raises:
        ValueError: It has no form in the record, or is too large.
    """
    return _read_back(note, _VALUES, MAX_REPLY_NOTE)


def observation_key(observation: Any) -> Any:
    """Return a hashable key of an observation for measures that count; a picture is returned as it is."""
    return observation if is_picture(observation) else action_key(observation)


def action_key(action: Any) -> bytes:
    """Return equal bytes for equal values, whether arrays are at hand or only their digests."""
    return _KEY_ENCODER.encode(action)


def is_picture(observation: Any) -> bool:
    """Return whether an observation is bytes in rows and columns, alone or with one, three or four channels."""
    if not isinstance(observation, np.ndarray) or observation.dtype != np.uint8:
        return False
    return observation.ndim == 2 or (observation.ndim == 3 and observation.shape[2] in (1, 3, 4))


def array_digest(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Return what stands for a large array in the record."""
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:32]
    return {"array": digest, "shape": list(array.shape), "dtype": str(array.dtype)}


def restore_arrays(value: Any) -> Any:
    """Return a recorded value with arrays in place of those whose bytes are kept; digests stay digests.

    Raises:
        ValueError: The bytes of an array do not match its digest.
    """
    if isinstance(value, dict):
        if value.keys() == _KEPT:
            return _restore(value)
        return {name: restore_arrays(part) for name, part in value.items()}
    return [restore_arrays(part) for part in value] if isinstance(value, list) else value


def _restore(kept: dict[str, Any]) -> Any:
    try:
        array = np.frombuffer(kept["data"], np.dtype(kept["dtype"])).reshape(kept["shape"])
    except (TypeError, ValueError, SyntaxError, OverflowError) as error:
        raise ValueError(f"a recorded array cannot be read: {error}") from None
    if array_digest(array) != {name: part for name, part in kept.items() if name != "data"}:
        raise ValueError("the bytes of a recorded array do not match its digest")
    return array.copy()  # the agent could have written to the shown one


def _read_back(value: object, decoder: msgspec.msgpack.Decoder[Any], most: int | None = None) -> Any:
    """Write a value that an agent gave and read it again; objects of its own may raise anything on the way."""
    try:
        data = REPLY_ENCODER.encode(value)
        if most is None or len(data) <= most:
            return decoder.decode(data)
    except Exception as error:
        raise ValueError(describe_error(error).partition(": ")[2]) from None
    raise ValueError(f"it has {len(data) >> 20} MB; {most >> 20} MB are allowed")


class LargeArray(Exception):
    """A step holds a large array, so that it cannot be written in one go."""


def _is_equal(one: bytes, other: bytes, decoder: msgspec.msgpack.Decoder[Any]) -> bool:
    """Compare two records. A default may be written out or not, and a whole number may stand for a float."""
    if one == other:
        return True
    parts = [msgspec.structs.astuple(decoder.decode(each)) for each in (one, other)]
    try:
        first, second = (ENCODER.encode(restore_arrays(list(each))) for each in parts)
    except ValueError:
        return False
    return first == second


def _write_out(value: Any) -> Any:
    """Return a form of values msgspec does not know: arrays and NumPy numbers."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} cannot be recorded; use numbers, text, lists, mappings or arrays")


def _digest_large(value: Any) -> Any:
    large = isinstance(value, np.ndarray) and value.size > SMALL_ARRAY
    return array_digest(value) if large else _write_out(value)


def _keep_large(value: Any) -> Any:
    large = isinstance(value, np.ndarray) and value.size > SMALL_ARRAY
    return {**array_digest(value), "data": value.tobytes()} if large else _write_out(value)


def _refuse_large(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return _write_out(value)
    if value.size > SMALL_ARRAY:
        raise LargeArray
    return value.tolist()


ENCODER = msgspec.msgpack.Encoder(enc_hook=_digest_large)
"""Writes turns and truths."""
REPLY_ENCODER = msgspec.msgpack.Encoder(enc_hook=_write_out)
"""Writes replies, and entries that hold parts of them."""
STEP_ENCODER = msgspec.msgpack.Encoder(enc_hook=_refuse_large)
"""Writes whole steps fast; raises `LargeArray` if they hold one."""
_FULL_ENCODER = msgspec.msgpack.Encoder(enc_hook=_keep_large)
_KEPT = {"array", "shape", "dtype", "data"}
_KEY_ENCODER = msgspec.json.Encoder(enc_hook=_digest_large, order="sorted")
_FIXARRAY = 0x90
_TURNS, _REPLIES = msgspec.msgpack.Decoder(Turn), msgspec.msgpack.Decoder(Reply)
_TRUTHS = msgspec.msgpack.Decoder(Truth)
_BELIEFS = msgspec.msgpack.Decoder(Belief)
_VALUES = msgspec.msgpack.Decoder()
NO_TIME = Reply().took
"""The very object that a reply holds whose agent says nothing of the time it took."""
NO_TURN = ENCODER.encode(None)
"""Recorded where a reply led to no new turn: the trial was over, or the last turn of an episode was shown again."""
