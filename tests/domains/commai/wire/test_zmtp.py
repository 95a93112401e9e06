"""ZeroMQ's frames: what a peer sends, put together, and what it must be sent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfield.domains.commai.wire.zmtp import GREETING, Connection, encode_command, encode_frame, read_properties
from openfield.errors import AgentProtocol

READY = encode_command(b"READY", b"\x0bSocket-Type\0\0\0\4PAIR\x08Identity\0\0\0\0")


@given(st.lists(st.lists(st.binary(max_size=300), min_size=1, max_size=3), max_size=5), st.integers(1, 90))
def test_messages_arrive_however_the_stream_is_cut(messages, size):
    frames = [encode_frame(part, number < len(m) - 1) for m in messages for number, part in enumerate(m)]
    stream = GREETING + READY + b"".join(frames)
    connection = Connection()
    got = [m for at in range(0, len(stream), size) for m in connection.feed(stream[at : at + size])]
    assert got == messages
    assert connection.ready


def test_greeting_ready_and_pings_are_answered():
    connection = Connection()
    assert connection.take_outgoing() == GREETING
    list(connection.feed(GREETING))
    sent = connection.take_outgoing()
    assert read_properties(sent[8:]) == {b"socket-type": b"PAIR"}
    list(connection.feed(READY + encode_command(b"PING", b"\0\0context")))
    assert connection.take_outgoing() == encode_command(b"PONG", b"context")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"GET / HTTP/1.1\r\n", "does not speak ZeroMQ"),
        (GREETING[:10] + b"\x01\x00", "ZMTP 1; version 3 is needed"),
        (GREETING.replace(b"NULL", b"PLAI"), "secured"),
        (GREETING + encode_command(b"READY", b"\x0bSocket-Type\0\0\0\3REQ"), "a REQ; it must be a PAIR"),
        (GREETING + b"\x02" + (1 << 40).to_bytes(8, "big"), "a frame of 1099511627776 bytes"),
        (GREETING + encode_command(b"ERROR", b"\x02no"), "refuses: no"),
        (GREETING + encode_command(b"READY", b"\x0bSocket"), "cut off"),
    ],
)
def test_strangers_are_told_apart(data, says):
    with pytest.raises(AgentProtocol, match=says):
        list(Connection().feed(data))
