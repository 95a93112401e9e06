"""When steps are emitted: full chunks by the group, costly replies at once, everything with the end of an episode."""

from __future__ import annotations

from typing import Any

import pytest

import openfield as of
from openfield import record, rollout
from openfield.record import Chunk, EpisodeEnd, Recorder, read_chunk
from walks import WALKS


def play(replies: int, length: int = 1000) -> list[tuple[Any, ...]]:
    """What is emitted, group by group, while an agent replies so often."""
    groups: list[tuple[Any, ...]] = []
    (trial,) = WALKS.trials(count=1, length=length, training=0, before=2)
    under_way = of.Rollout(WALKS.world(trial), recorder=Recorder("cell", 1, lambda *group: groups.append(group)))
    for _ in range(replies):
        under_way.reply(of.Reply(1))
    return groups


def kept(groups: list[tuple[Any, ...]]) -> list[int]:
    """How many steps each chunk holds that no later one replaces."""
    chunks: list[Chunk] = []
    for chunk in (entry for group in groups for entry in group if isinstance(entry, Chunk)):
        chunks = [*(earlier for earlier in chunks if earlier.first < chunk.first), chunk]
    assert [chunk.first for chunk in chunks[1:]] == [chunk.first + chunk.count for chunk in chunks[:-1]]
    return [len(read_chunk(chunk)) for chunk in chunks]


def test_full_chunks_are_emitted_by_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout, "CHUNK_BYTES", 500)
    monkeypatch.setattr(record, "CHUNKS_AT_ONCE", 3)
    groups = play(900)
    assert {len(group) for group in groups} == {3}
    assert 800 < sum(kept(groups)) < 901


def test_the_end_of_an_episode_takes_all_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout, "CHUNK_BYTES", 500)
    groups = play(21, length=20)
    assert [isinstance(group[-1], EpisodeEnd) for group in groups] == [True]
    assert sum(kept(groups)) == 22


def test_a_costly_reply_is_emitted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout, "COSTLY_REPLY", -1)
    monkeypatch.setattr(rollout, "CHUNK_BYTES", 500)
    for replies in (1, 2, 30):
        groups = play(replies)
        assert len(groups) == replies
        assert sum(kept(groups)) == replies + 1


def test_a_cheap_reply_waits_for_its_chunk() -> None:
    assert play(30) == []
