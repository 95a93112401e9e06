"""The bytes of the protocol: requests and replies, big-endian, the first byte of a request is its code.

It serves both sides: the server reads requests and writes replies, the client writes requests.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

LOG = logging.getLogger("openfield.birds")
PAD = b"     "
"""Every client cuts five bytes off a ground truth before parsing it; spaces are valid JSON for those that do not."""
MAX_TEXT = 1 << 20
MAX_OBJECTS = 100_000
MAX_SHOTS = 16
FIXED = {
    1: ">IB",
    70: ">ii",
    **dict.fromkeys((2, 51, 72), ">I"),
    **dict.fromkeys((31, 32, 41, 42), ">iiii"),
    **dict.fromkeys((11, 12, 13, 14, 15, 23, 34, 35, 36, 52, 53, 61, 62, 63, 64, 65, 68, 69, 71), ">"),
}
"""The layouts of requests with a fixed length."""
SEQUENCES, GT_SHOT, LIKELIHOOD, DESCRIPTION = (33, 43), 38, 66, 67


class Request(NamedTuple):
    """A request: its code and its fields."""

    code: int
    fields: tuple[Any, ...] = ()


class BadFrame(Exception):
    """The bytes are not a request, so the connection cannot go on."""


class RequestReader:
    """Splits a stream of bytes into requests."""

    def __init__(self, gtshoot_ints: int = 6) -> None:
        self._layouts = {**FIXED, GT_SHOT: ">" + "i" * gtshoot_ints}
        self._unknown = bytes(code for code in range(256) if code not in {*self._layouts, *READERS})
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Request]:
        """Yield the requests that are complete now; zeros and unknown codes between requests are skipped."""
        self._rest += data
        while self._skip():
            request, size = self._read(self._rest)
            if request is None:
                return
            self._rest = self._rest[size:]
            yield request

    def _skip(self) -> bool:
        """Skip bytes that are not a request code; return whether anything is left."""
        rest = self._rest.lstrip(self._unknown)
        passed = self._rest[: len(self._rest) - len(rest)].strip(b"\x00")
        if passed:
            LOG.warning("Passed over unknown request codes: %s", list(passed[:8]))
        self._rest = rest
        return bool(rest)

    def _read(self, data: bytes) -> tuple[Request | None, int]:
        """Return the first request and its length; None if more bytes are needed."""
        code = data[0]
        try:
            if code in READERS:
                fields, size = READERS[code](data)
                return Request(code, fields), size
            layout = struct.Struct(self._layouts[code])
            return Request(code, layout.unpack_from(data, 1)), 1 + layout.size
        except struct.error:
            return None, 0


def write_request(request: Request, gtshoot_ints: int = 6) -> bytes:
    """Return a request as bytes."""
    code, fields = request
    head = bytes((code,))
    if code == LIKELIHOOD:
        novel, normal, objects, level, text = fields
        data = text.encode()
        body = struct.pack(f">ffi{len(objects)}iii", novel, normal, len(objects), *objects, level, len(data))
        return head + body + bytes(data)
    if code == DESCRIPTION:
        data = fields[0].encode()
        return head + struct.pack(">I", len(data)) + bytes(data)
    if code in SEQUENCES:
        shots = b"".join(struct.pack(">B6i", kind, *numbers) for kind, *numbers in fields)
        return head + bytes((len(fields),)) + shots
    layout = ">" + "i" * gtshoot_ints if code == GT_SHOT else FIXED[code]
    return head + struct.pack(layout, *fields)


def flag(value: object) -> bytes:
    """Return one byte, 1 or 0."""
    return b"\x01" if value else b"\x00"


def number(value: int) -> bytes:
    """Return an unsigned number of four bytes."""
    return struct.pack(">I", max(0, min(value, 0xFFFFFFFF)))


def numbers(values: Sequence[int]) -> bytes:
    """Return a count, then each number."""
    return number(len(values)) + b"".join(map(number, values))


def text(data: bytes) -> bytes:
    """Return the length of a text, then the text."""
    return number(len(data)) + data


def image(pixels: Any) -> bytes:
    """Return width, height, and the pixels row by row from the top."""
    height, width, _ = pixels.shape
    return struct.pack(">II", width, height) + np.ascontiguousarray(pixels, dtype=np.uint8).tobytes()


def encode_ground_truth(truth: Any) -> bytes:
    """Return a ground truth with its length, which includes the five bytes that every client cuts off."""
    return text(msgspec.json.encode(truth) + PAD)


def ground_truths(frames: Iterable[Any]) -> bytes:
    """Return a count, then each ground truth."""
    blocks = [encode_ground_truth(frame) for frame in frames]
    return number(len(blocks)) + b"".join(blocks)


def set_facts(facts: dict[str, Any]) -> bytes:
    """Return the 19 bytes that describe a set to an agent."""
    limits = [max(0, facts[key]) for key in ("seconds", "interactions", "levels", "attempts")]
    return struct.pack(">IIIIBBB", *limits, facts["testing"], facts["selection"], facts["informed"])


def _read_likelihood(data: bytes) -> tuple[tuple[Any, ...], int]:
    novel, normal, count = struct.unpack_from(">ffi", data, 1)
    if not 0 <= count <= MAX_OBJECTS:
        raise BadFrame(f"a report with {count} objects")
    *objects, level, length = struct.unpack_from(f">{count}iii", data, 13)
    start = 13 + 4 * count + 8
    text = _text(data, start, length)
    return (novel, normal, tuple(objects), level, text), start + length


def _read_description(data: bytes) -> tuple[tuple[Any, ...], int]:
    (length,) = struct.unpack_from(">I", data, 1)
    return (_text(data, 5, length),), 5 + length


def _read_sequence(data: bytes) -> tuple[tuple[Any, ...], int]:
    (count,) = struct.unpack_from(">B", data, 1)
    if count > MAX_SHOTS:
        raise BadFrame(f"a sequence of {count} shots")
    shots = tuple(struct.unpack_from(">B6i", data, 2 + 25 * index) for index in range(count))
    if any(kind not in (31, 32, 41, 42) for kind, *_ in shots):
        raise BadFrame("a sequence of something else than shots")
    return shots, 2 + 25 * count


def _text(data: bytes, start: int, length: int) -> str:
    if not 0 <= length <= MAX_TEXT:
        raise BadFrame(f"a text of {length} bytes")
    if len(data) < start + length:
        raise struct.error
    return data[start : start + length].decode("utf-8", "replace")


READERS = {LIKELIHOOD: _read_likelihood, DESCRIPTION: _read_description, **dict.fromkeys(SEQUENCES, _read_sequence)}
"""Readers of the requests that contain their length."""
