"""When steps are emitted: full chunks without hurry, costly replies at once, everything with the end of an episode."""

from __future__ import annotations

import base64
import random
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

import openfield as of
from journal.test_writer import enter, episode
from openfield.core import Ask, Truth, Turn
from openfield.errors import AgentProtocol, DamagedRun
from openfield.journal import recorder as recorders
from openfield.journal import writer as journals
from openfield.journal.reader import Run
from openfield.journal.recorder import OversizedChunk, Recorder, read_chunk
from openfield.journal.writer import Journal
from openfield.record import Chunk, EpisodeEnd, has_too_many_values
from support.walks import WALKS


def play(replies: int, length: int = 1000, note: Any = None) -> list[tuple[Any, ...]]:
    """What is emitted, group by group, while an agent replies so often."""
    groups: list[tuple[Any, ...]] = []
    (trial,) = WALKS.trials(count=1, length=length, training=0, before=2, unchanged=0)
    under_way = of.rollout.Rollout(
        WALKS.world(trial), recorder=Recorder("cell", 1, lambda *group: groups.append(group))
    )
    for _ in range(replies):
        under_way.reply(of.Reply(1, note=note))
    return groups


def kept(groups: list[tuple[Any, ...]]) -> list[int]:
    """How many steps each chunk holds that no later one replaces."""
    chunks: list[Chunk] = []
    for chunk in (entry for group in groups for entry in group if isinstance(entry, Chunk)):
        chunks = [*(earlier for earlier in chunks if earlier.first < chunk.first), chunk]
    assert [chunk.first for chunk in chunks[1:]] == [chunk.first + chunk.count for chunk in chunks[:-1]]
    return [len(read_chunk(chunk)) for chunk in chunks]


def test_full_chunks_are_emitted_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorders, "CHUNK_BYTES", 500)
    groups = play(900)
    assert all(chunk.full for group in groups for chunk in group)
    assert 800 < sum(kept(groups)) < 901


def test_full_chunks_wait_for_company_in_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "FULL_SECONDS", 3600.0)
    with Journal(tmp_path / "run.sqlite") as journal:
        waiting = journal.add(Chunk("cell", 1, 0, 1, 0, b"", full=True))
        assert not waiting.done()
        journal.add(Chunk("cell", 1, 1, 1, 0, b"")).result(timeout=60)
        assert waiting.done()


@pytest.mark.parametrize("flush", [False, True])
def test_ends_wait_for_company_until_something_waits_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flush: bool
) -> None:
    monkeypatch.setattr(journals, "ENDED_SECONDS", 3600.0)
    place = {"cell": "cell", "attempt": 1, "phase": "test", "novel": False, "turns": 7}
    said = {"performance": 1.0, "belief": None, "ended": "terminated"}
    with Journal(tmp_path / "run.sqlite") as journal:
        receipts = [journal.add(EpisodeEnd(number=number, **place, **said)) for number in range(3)]
        assert [receipt.done() for receipt in receipts] == [False] * 3
        journal.flush() if flush else receipts[1].result(timeout=60)
        assert [receipt.done() for receipt in receipts] == [True] * 3


def test_the_end_of_an_episode_takes_all_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorders, "CHUNK_BYTES", 500)
    groups = play(21, length=20)
    assert [isinstance(group[-1], EpisodeEnd) for group in groups][-1]
    assert sum(kept(groups)) == 22


def test_a_costly_reply_is_emitted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorders, "COSTLY_REPLY", -1)
    monkeypatch.setattr(recorders, "CHUNK_BYTES", 500)
    for replies in (1, 2, 30):
        groups = play(replies)
        assert sum(kept(groups)) == replies + 1


def test_a_quick_reply_that_used_tokens_is_emitted_at_once() -> None:
    groups = play(30, note={"tokens_in": 0, "tokens_out": 7})
    assert sum(kept(groups)) == 31
    assert all(chunk.costly for group in groups for chunk in group)
    assert play(30, note={"tokens_in": 0, "mood": "good"}) == []


def test_a_costly_reply_that_ends_an_episode_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorders, "COSTLY_REPLY", -1)
    (ended,) = (group for group in play(21, length=20) if any(isinstance(entry, EpisodeEnd) for entry in group))
    assert [entry.costly for entry in ended if isinstance(entry, Chunk)] == [True]


def test_a_cheap_reply_waits_for_its_chunk() -> None:
    assert play(30) == []


def write(recorder: Recorder, first: int, last: int, took: int) -> None:
    for _ in range(first, last):
        recorder.write(None, took, None, None)


@pytest.mark.parametrize("early", [(), (5,), (6,), (5, 6)])
def test_who_goes_on_from_the_middle_of_a_chunk_cuts_it_short(tmp_path: Path, early: tuple[int, ...]) -> None:
    """A state that was saved in a hidden episode waits a moment, and is then written with the steps after it."""
    path = tmp_path / "run.sqlite"
    with Journal(path) as journal:
        (cell,) = enter(journal)
        before = Recorder(cell.id, journal.begin(cell.id), journal.add)
        write(before, 0, 3, took=1)
        before.end_episode(episode(cell.id, 0), b"first", hidden=True)
        write(before, 3, 5, took=1)
        before.end_episode(episode(cell.id, 1), b"second", hidden=True)
        for steps in early:
            write(before, 5, steps, took=1)
            before.commit()
        write(before, max(early, default=5), 8, took=1)
        before.flush()
        journal.flush()
        with Run(path) as run:
            assert run.state(cell.id, 1) == (5, b"second")
        after = Recorder(cell.id, 1, journal.add, 8)
        after.rewind(5)
        write(after, 5, 7, took=2)
        after.commit()
        write(after, 7, 9, took=2)
        after.flush()
    with Run(path) as run:
        assert [step.took for step in run.steps(cell.id, 1)] == [1] * 5 + [2] * 4
        assert not any("turns before" in fault for fault in run.verify())


def test_a_chunk_is_at_most_100_megabytes_and_joined_ones_no_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    assert recorders.MAX_CHUNK == 100 << 20
    assert recorders.MAX_STEP + recorders.MAX_STEP // 2 + recorders.CHUNK_BYTES < recorders.MAX_CHUNK
    data = zlib.compress(bytes(recorders.MAX_CHUNK + 1), 1)
    with pytest.raises(DamagedRun, match="too large"):
        read_chunk(Chunk("cell", 1, 0, 1, zlib.crc32(data), data))


@pytest.mark.parametrize(("text", "part"), [("the goal is left of the wall " * 20_000, 0.2), (None, 1.1)])
def test_large_texts_are_compressed_and_large_noise_is_not(path: Path, text: str | None, part: float) -> None:
    shown = text or base64.b85encode(random.Random(1).randbytes(400_000)).decode()
    emitted: list[Chunk] = []
    recorder = Recorder("cell", 1, lambda *entries: emitted.extend(entries))  # type: ignore[arg-type]
    recorder.write(None, 0, Turn(ask=Ask.ACT, observation={"text": shown}), Truth())
    recorder.flush()
    (chunk,) = emitted
    assert len(chunk.data) < part * len(shown)
    assert read_chunk(chunk)[0].turn.observation == {"text": shown}  # type: ignore[union-attr]


def test_a_chunk_that_grows_without_end_is_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorders, "MAX_CHUNK", 1 << 20)
    data = zlib.compress(bytes(8 << 20))
    with pytest.raises(DamagedRun, match="too large"):
        read_chunk(Chunk("cell", 1, 0, 1, zlib.crc32(data), data))


def test_what_shrinks_to_almost_nothing_is_written_so_that_it_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    emitted: list[Chunk] = []
    recorder = Recorder("cell", 1, lambda *entries: emitted.extend(entries), full=True)  # type: ignore[arg-type]
    recorder.write(None, 0, Turn(observation=bytes(3 << 20)), Truth())
    recorder.flush()
    (chunk,) = emitted
    assert 1 < (3 << 20) / len(chunk.data) < recorders.MAX_RATIO
    assert read_chunk(chunk)[0].turn is not None
    monkeypatch.setattr(recorders, "MAX_RATIO", 10)
    with pytest.raises(OversizedChunk, match="cell cell, attempt 1, turns 0 to 0"):
        read_chunk(chunk)


def test_a_few_bytes_that_become_many_values_are_not_read(path: Path) -> None:
    nested = b"\xdd" + (600_000).to_bytes(4, "big") + b"\x90" * 600_000
    data = recorders._store(nested, len(nested))
    with pytest.raises(OversizedChunk, match="more than 4,000,000 values"):
        read_chunk(Chunk("cell", 1, 0, 1, zlib.crc32(data), data))


def test_values_are_counted_as_they_are_encoded() -> None:
    short = [None, True, 5, -5, 300, 1 << 20, 1 << 40, -300, -(1 << 20), -(1 << 40), 0.5, "a", "b" * 40, "c" * 300]
    sizes = ["d" * 70_000, b"e", b"f" * 300, b"\x90" * 70_000, {"key": []}, {str(n): n for n in range(20)}]
    kinds = [*short, *sizes, [0] * 20, [0] * 70_000, msgspec.msgpack.Ext(5, b"\x90" * 4)]
    kinds += [msgspec.msgpack.Ext(5, b"\x90" * size) for size in (1, 2, 8, 16, 3, 300, 70_000)]
    left = 4_000_000 - weigh(kinds) - 8
    assert not has_too_many_values(msgspec.msgpack.encode([kinds] + [0.5] * left))
    assert has_too_many_values(msgspec.msgpack.encode([kinds] + [0.5] * (left + 1)))


def weigh(value: Any) -> int:
    """How many values there are in one: lists and mappings count as eight."""
    if isinstance(value, dict):
        return 8 + sum(weigh(key) + weigh(each) for key, each in value.items())
    return 8 + sum(map(weigh, value)) if isinstance(value, list) else 1


def test_a_reply_of_too_many_values_is_the_agents_fault() -> None:
    (trial,) = WALKS.trials(count=1, training=0, before=2, unchanged=0)
    under_way = of.rollout.Rollout(WALKS.world(trial), recorder=Recorder("cell", 1, lambda *_: None))
    with pytest.raises(AgentProtocol, match="Turn 0: the reply has more than 4,000,000 values"):
        under_way.reply(of.Reply(1, note=[[]] * 600_000))
