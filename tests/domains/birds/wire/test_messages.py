"""Requests survive the way to bytes and back, in whatever pieces they arrive."""

import struct

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfield.domains.birds.wire import messages as protocol
from openfield.domains.birds.wire.messages import FIXED, BadFrame, Request, RequestReader, write_request

INT = st.integers(-(2**31), 2**31 - 1)
WORD = st.integers(0, 2**32 - 1)
FLOAT = st.floats(width=32, allow_nan=False)
KINDS = {"I": WORD, "B": st.integers(0, 255), "i": INT}
PLAIN = st.sampled_from(sorted(FIXED)).flatmap(
    lambda code: st.tuples(*(KINDS[kind] for kind in FIXED[code][1:])).map(lambda fields: Request(code, fields))
)
REPORT = st.builds(
    lambda *fields: Request(66, fields), FLOAT, FLOAT, st.lists(INT, max_size=5).map(tuple), INT, st.text(max_size=9)
)
DESCRIPTION = st.builds(lambda text: Request(67, (text,)), st.text(max_size=9))
SHOT = st.tuples(st.sampled_from([31, 32]), *[INT] * 6)
SEQUENCE = st.builds(
    lambda code, shots: Request(code, tuple(shots)), st.sampled_from([33, 43]), st.lists(SHOT, max_size=16)
)
WATCHED = st.builds(lambda *fields: Request(38, fields), *[INT] * 6)
REQUESTS = st.lists(PLAIN | REPORT | DESCRIPTION | SEQUENCE | WATCHED, max_size=5)


@given(REQUESTS, st.integers(1, 20))
def test_requests_come_through_in_any_pieces(requests, size):
    data = b"".join(bytes(2) + write_request(request) for request in requests)
    reader, read = RequestReader(), []
    for start in range(0, len(data), size):
        read += reader.feed(data[start : start + size])
    assert read == requests


@given(st.binary(max_size=200))
def test_any_bytes_are_requests_or_a_bad_frame(data):
    reader = RequestReader()
    try:
        for request in reader.feed(data):
            assert request.code in {*FIXED, 33, 38, 43, 66, 67}
    except BadFrame:
        pass


def test_the_older_client_sends_five_numbers_with_request_38():
    request = Request(38, (1, 2, 3, 4, 5))
    data = write_request(request, gtshoot_ints=5)
    assert len(data) == 21
    assert list(RequestReader(5).feed(data)) == [request]
    assert list(RequestReader(6).feed(data)) == []


@pytest.mark.parametrize(
    ("request_", "data"),
    [
        (Request(1, (7, 1)), "01 00000007 01"),
        (Request(31, (-1, 2, 0, 900)), "1f ffffffff 00000002 00000000 00000384"),
        (Request(53), "35"),
        (Request(66, (0.5, 0.25, (3,), 2, "é")), "42 3f000000 3e800000 00000001 00000003 00000002 00000002 c3a9"),
    ],
)
def test_layouts_to_the_byte(request_, data):
    assert write_request(request_) == bytes.fromhex(data.replace(" ", ""))


def test_replies_to_the_byte():
    assert protocol.number(258) == b"\x00\x00\x01\x02"
    assert protocol.numbers([1, 2]) == bytes.fromhex("000000020000000100000002")
    picture = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    assert protocol.image(picture) == struct.pack(">II", 2, 2) + bytes(range(12))
    facts = {"seconds": 60, "interactions": -1, "levels": 3, "attempts": 1}
    facts |= {"testing": True, "selection": False, "informed": True}
    assert protocol.set_facts(facts) == struct.pack(">IIIIBBB", 60, 0, 3, 1, 1, 0, 1)
    assert len(protocol.set_facts(facts)) == 19


def test_a_ground_truth_has_five_bytes_that_everybody_cuts_off():
    block = protocol.encode_ground_truth([{"percent": 1.0, "x": 3}])
    (length,) = struct.unpack(">I", block[:4])
    assert length == len(block) - 4
    assert block[4:-5] == b'[{"percent":1.0,"x":3}]'
    assert msgspec.json.decode(block[4:-5]) == [{"percent": 1.0, "x": 3}]
