from __future__ import annotations

import zlib
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfield.core import Ask, Belief, Reply, Truth, Turn
from openfield.errors import DamagedRun
from openfield.journal.recorder import HIDDEN_NANOSECONDS, Recorder, fill_truth, read_chunk, read_raw_chunk
from openfield.record import (
    ENCODER,
    SMALL_ARRAY,
    AgentState,
    AttemptEnd,
    Chunk,
    Entry,
    EpisodeEnd,
    Step,
    array_digest,
    is_same_turn,
    restore_arrays,
)
from support.stories import Kept


def written(value: object) -> object:
    """What the record has of a value a turn shows."""
    return msgspec.msgpack.decode(ENCODER.encode(value))


scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text()
payloads = st.recursive(
    scalars | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
small = st.integers(0, 2**32 - 1)
numbers = st.floats(allow_nan=False)
beliefs = st.builds(Belief, numbers | st.lists(numbers).map(tuple), st.none() | st.integers(0, 99), payloads)
replies = st.builds(Reply, payloads, st.none() | beliefs, st.just(0.0) | st.floats(0, 1e6))
turns = st.builds(
    Turn,
    ask=st.sampled_from(Ask),
    observation=payloads,
    reward=numbers,
    feedback=payloads,
    phase=st.sampled_from(["training", "test"]),
    first=st.booleans(),
    last=st.sampled_from([None, "terminated", "truncated"]),
    red_light=st.sampled_from([None, False, True]),
)
truths = st.builds(
    Truth, novel=st.booleans(), episode_over=st.booleans(), performance=st.none() | st.floats(0, 1), detail=payloads
)
steps = st.builds(Step, st.none() | replies, st.integers(0, 2**62), st.none() | turns, st.none() | truths)
episodes = st.builds(
    EpisodeEnd,
    cell=st.text(max_size=12),
    attempt=st.integers(1, 9),
    number=st.integers(0, 999),
    phase=st.sampled_from(["training", "test"]),
    novel=st.booleans(),
    turns=st.integers(0, 999),
    performance=st.none() | numbers,
    belief=st.none() | beliefs,
    ended=st.sampled_from(["terminated", "truncated"]),
)
entries = (
    episodes
    | st.builds(Chunk, st.text(max_size=12), small, small, small, small, st.binary())
    | st.builds(AgentState, st.text(max_size=12), small, small, st.binary())
    | st.builds(AttemptEnd, st.text(max_size=12), small, st.text(), st.text(), numbers)
)


def record(written: list[Step]) -> Chunk:
    """A chunk with these steps, written as a rollout writes them."""
    kept = Kept()
    recorder = Recorder("c0ffee", 2, kept)
    for step in written:
        recorder.write(step.reply, step.took, step.turn, step.truth)
    recorder.commit()
    (chunk,) = kept.of(Chunk)
    return chunk


@settings(deadline=None)
@given(st.lists(steps, min_size=1, max_size=5))
def test_steps_come_back_as_they_were(written: list[Step]) -> None:
    chunk = record(written)
    assert (chunk.cell, chunk.attempt, chunk.first, chunk.count) == ("c0ffee", 2, 0, len(written))
    assert read_chunk(chunk) == written
    for raw, step in zip(read_raw_chunk(chunk), written, strict=True):
        assert (raw.reply, raw.took, raw.truth) == (step.reply, step.took, step.truth)
        assert bytes(raw.turn) == ENCODER.encode(step.turn)


@settings(deadline=None)
@given(st.lists(entries, max_size=4))
def test_entries_come_back_as_they_were(written: list[Entry]) -> None:
    assert msgspec.msgpack.decode(ENCODER.encode(written), type=list[Entry]) == written


@given(st.data())
def test_a_damaged_chunk_is_named(data: st.DataObject) -> None:
    chunk = record([Step(Reply(n), n, Turn(observation=n)) for n in range(20)])
    place, bit = data.draw(st.integers(0, len(chunk.data) - 1)), data.draw(st.integers(0, 7))
    damaged = bytearray(chunk.data)
    damaged[place] ^= 1 << bit
    for read in (read_chunk, read_raw_chunk):
        with pytest.raises(DamagedRun, match=r"cell c0ffee, attempt 2, turns 0 to 19"):
            read(msgspec.structs.replace(chunk, data=bytes(damaged)))


def test_a_chunk_that_holds_something_else_is_named_too() -> None:
    chunk = record([Step(Reply(1), 1, None)])
    for content in (b"no zlib", zlib.compress(b"\xc1"), zlib.compress(msgspec.msgpack.encode([1, 2]))):
        fake = msgspec.structs.replace(chunk, data=content, crc=zlib.crc32(content))
        with pytest.raises(DamagedRun, match="turns 0 to 0"):
            read_chunk(fake)
    with pytest.raises(DamagedRun, match="it holds 1 turns"):
        read_chunk(msgspec.structs.replace(chunk, count=2))


def test_truth_is_filled_in_until_it_changes() -> None:
    first, second = Truth(performance=0.1), Truth(novel=True)
    written = [Step(None, 0, None, first), Step(None, 0, None), Step(None, 0, None, second), Step(None, 0, None)]
    assert [step.truth for step in fill_truth(iter(written))] == [first, first, second, second]


def test_small_arrays_are_written_out_and_large_ones_leave_a_digest() -> None:
    small, large = np.arange(SMALL_ARRAY), np.arange(SMALL_ARRAY + 1, dtype="uint8").reshape(5, 13)
    assert written(small) == list(range(SMALL_ARRAY))
    assert written(large) == {"array": array_digest(large)["array"], "shape": [5, 13], "dtype": "uint8"}
    assert array_digest(large) == array_digest(np.asfortranarray(large))
    assert array_digest(large)["array"] != array_digest(large + 1)["array"]
    assert written(np.float32(0.5)) == 0.5
    with pytest.raises(TypeError, match="a object cannot be recorded"):
        written(object())


def test_a_recorder_numbers_its_chunks_and_replaces_what_it_committed_early() -> None:
    kept = Kept()
    recorder = kept.recorder(written=10)

    def write(number: int) -> None:
        recorder.write(Reply(number), 0, None, None)

    write(10)
    recorder.commit()
    write(11)
    recorder.commit()
    recorder.commit()
    write(12)
    recorder.end("done", "", 1.0)
    recorder.end("done", "", 1.0)
    assert [(c.first, c.count) for c in kept.of(Chunk)] == [(10, 1), (11, 1), (10, 3)]
    assert [c.fresh for c in kept.of(Chunk)] == [False, True, False]  # before the first, others may have written
    assert [step.reply for step in read_chunk(kept.of(Chunk)[-1])] == [Reply(10), Reply(11), Reply(12)]


def test_a_rewound_recorder_replaces_what_came_later() -> None:
    kept = Kept()
    recorder = kept.recorder(written=10)
    recorder.rewind(4)
    recorder.write(Reply(1), 0, None, None)
    recorder.commit()
    assert [(c.first, c.count, c.fresh) for c in kept.of(Chunk)] == [(4, 1, False)]


def test_a_chunk_is_fresh_where_nothing_was_committed_early() -> None:
    kept = Kept()
    recorder = kept.recorder()
    for number in range(3):
        recorder.write(Reply(number), 0, None, None)
        recorder.flush()
    assert [(c.first, c.fresh) for c in kept.of(Chunk)] == [(0, False), (1, True), (2, True)]


def test_the_end_of_a_hidden_episode_waits_for_company_but_not_long(monkeypatch: pytest.MonkeyPatch) -> None:
    start, kept = 10 * HIDDEN_NANOSECONDS, Kept()
    clock = (start + passed for passed in (0, HIDDEN_NANOSECONDS, HIDDEN_NANOSECONDS + 1, HIDDEN_NANOSECONDS + 2))
    monkeypatch.setattr("openfield.journal.recorder.time", SimpleNamespace(monotonic_ns=lambda: next(clock)))
    recorder, fields = kept.recorder(), {"phase": "test", "novel": False, "turns": 1, "performance": None}
    booked = []
    for number, hidden in enumerate([False, True, True, False]):
        end = EpisodeEnd(cell="cell", attempt=1, number=number, belief=None, ended="terminated", **fields)
        recorder.end_episode(end, None, hidden)
        booked.append([episode.number for episode in kept.of(EpisodeEnd)])
    assert booked == [[0], [0], [0, 1, 2], [0, 1, 2, 3]]


def test_large_arrays_of_a_reply_are_written_in_full_and_those_of_a_turn_as_digests() -> None:
    kept = Kept()
    image, scores = np.arange(100, dtype=np.uint8), np.linspace(0, 1, 100)
    recorder = kept.recorder()
    recorder.write(None, 0, Turn(observation=image), Truth())
    recorder.write(Reply({"scores": scores}), 7, Turn(observation={"seen": image}), None)
    recorder.end("done", "", 0.0)
    first, second = kept.steps()
    assert first.turn is not None
    assert first.turn.observation == array_digest(image)
    assert second.reply is not None
    assert second.reply.action == {"scores": scores.tolist()}
    assert second.turn is not None
    assert second.turn.observation == {"seen": array_digest(image)}
    assert second.took == 7


def test_large_arrays_of_a_turn_are_kept_beside_their_digests_if_that_is_wanted() -> None:
    kept, image = Kept(), np.arange(300, dtype=np.int16).reshape(30, 10)
    recorder = Recorder("cell", 1, kept, full=True)
    recorder.write(None, 0, Turn(observation={"seen": image, "small": np.zeros(3)}), Truth(detail=image))
    recorder.end("done", "", 0.0)
    (step,), (raw,) = kept.steps(), read_raw_chunk(kept.of(Chunk)[0])
    assert step.turn is not None
    assert step.truth is not None
    assert step.turn.observation["seen"] == {**array_digest(image), "data": image.tobytes()}
    assert step.truth.detail == array_digest(image)
    restored = restore_arrays(step.turn.observation)
    assert restored["small"] == [0.0] * 3
    assert np.array_equal(restored["seen"], image)
    assert (restored["seen"].dtype, restored["seen"].flags.writeable) == (image.dtype, True)
    assert is_same_turn(Turn(observation={"seen": image, "small": np.zeros(3)}), raw.turn)
    assert not is_same_turn(Turn(observation={"seen": image + 1, "small": np.zeros(3)}), raw.turn)


@pytest.mark.parametrize(
    "change",
    [
        {"data": b"\0" * 600},
        {"data": b""},
        {"data": None},
        {"shape": [-1]},
        {"shape": [1 << 62, 1 << 62]},
        {"shape": 300},
        {"dtype": "O"},
        {"dtype": "i4,("},
        {"array": "0" * 32},
    ],
)
def test_bytes_that_do_not_fit_their_digest_are_refused(change: dict[str, object]) -> None:
    image = np.arange(300, dtype=np.int16)
    kept = {**array_digest(image), "data": image.tobytes(), **change}
    with pytest.raises(ValueError, match="a recorded array"):
        restore_arrays([{"seen": kept}])
    assert not is_same_turn(Turn(observation=image), msgspec.Raw(msgspec.msgpack.encode(Turn(observation=kept))))


def test_a_full_record_of_large_pictures_is_compressed() -> None:
    image, sizes = np.zeros((400, 400, 3), np.uint8), []
    for full in (False, True):
        kept = Kept()
        recorder = Recorder("cell", 1, kept, full=full)
        recorder.write(None, 0, Turn(observation=image), Truth())
        recorder.end("done", "", 0.0)
        sizes.append(len(kept.of(Chunk)[0].data))
    assert sizes[0] < 300 < sizes[1] < 10_000
