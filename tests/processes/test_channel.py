"""Messages between a process and its child: they come whole, up to a size, or the silence ends."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfield.processes.channel import HEAD, Channel


@contextmanager
def channels() -> Iterator[tuple[Channel, Channel]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Channel(ours), Channel(theirs)


@pytest.fixture
def pair() -> Iterator[tuple[Channel, Channel]]:
    with channels() as both:
        yield both


@given(st.lists(st.binary(max_size=50)), st.integers(0, 1 << 18))
def test_messages_come_whole_and_in_order(messages: list[bytes], size: int) -> None:
    sent = [*messages, bytes(size)]
    with channels() as (ours, theirs):
        sender = threading.Thread(target=lambda: [theirs.send(each) for each in sent])
        sender.start()
        assert [ours.receive() for _ in sent] == sent
        sender.join()
        assert not ours.waiting
        theirs.close()
        with pytest.raises(EOFError):
            ours.receive()


def test_a_message_that_is_too_long_is_refused_before_it_is_read(pair: tuple[Channel, Channel]) -> None:
    ours, theirs = pair
    theirs._line.sendall(HEAD.pack(1 << 60))
    with pytest.raises(ValueError, match="1,152,921,504,606,846,976 bytes; at most 10 are taken"):
        ours.receive(10)


def test_half_a_message_and_silence_end_in_time(pair: tuple[Channel, Channel]) -> None:
    ours, theirs = pair
    theirs._line.sendall(HEAD.pack(10) + b"half")
    ours.wait_at_most(0.01)
    with pytest.raises(TimeoutError):
        ours.receive()
    ours.wait_at_most(0)
    with pytest.raises(TimeoutError):
        asyncio.run(ours.receive_soon(0.01))


def test_a_message_that_is_not_read_ends_in_time(pair: tuple[Channel, Channel]) -> None:
    ours, _ = pair
    ours.wait_at_most(0.01)
    with pytest.raises(TimeoutError):
        ours.send(bytes(10_000_000))


def test_an_event_loop_receives_what_a_thread_sends(pair: tuple[Channel, Channel]) -> None:
    ours, theirs = pair
    ours.wait_at_most(0)
    sender = threading.Thread(target=theirs.send, args=(bytes(1 << 20),))
    sender.start()
    assert asyncio.run(ours.receive_soon(60)) == bytes(1 << 20)
    sender.join()
    theirs.close()
    with pytest.raises(EOFError):
        asyncio.run(ours.receive_soon(60))


def test_a_heartbeat_is_sent_only_after_silence(pair: tuple[Channel, Channel]) -> None:
    ours, theirs = pair
    theirs.send(b"news")
    theirs.beat(600)
    theirs.beat(0, b"alive")
    assert [ours.receive(), ours.receive()] == [b"news", b"alive"]
