"""The opcodes of a pickle that push a number, a text or a few bytes.

Every length is checked before anything is made of it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any

from openfield.objectives.pickle.numpy_scalars import Refused, shown
from openfield.objectives.pickle.pickle_state import PickleState

MAX_NUMBER = 255
"""Bytes of one integer; an image of 16 x 16 pixels in 16 levels needs 128."""
MAX_LINE = 2 * MAX_NUMBER + 110
"""Characters of a number of that size in decimal digits, with room to spare."""


Step = Callable[[PickleState, bytes, int], int]
"""Takes the bytes and the position after the opcode, returns the position after its argument."""


def read_line(data: bytes, at: int) -> tuple[str, int]:
    """Return the text up to the end of the line and the place after it.

    Raises:
        Refused: The line is longer than any number or name.
    """
    end = data.find(b"\n", at, at + MAX_LINE)
    if end < 0:
        if len(data) - at < MAX_LINE:
            raise IndexError("cut short")
        raise Refused("a line longer than any number or name")
    return data[at:end].decode("ascii"), end + 1


def _number(form: str) -> Step:
    unpack, size = struct.Struct(form).unpack_from, struct.calcsize(form)

    def step(state: PickleState, data: bytes, at: int) -> int:
        state.stack.append(unpack(data, at)[0])
        return at + size

    return step


def _long1(state: PickleState, data: bytes, at: int) -> int:
    state.stack.append(int.from_bytes(_take(data, at + 1, data[at]), "little", signed=True))
    return at + 1 + data[at]


def _long4(state: PickleState, data: bytes, at: int) -> int:
    raise Refused(f"an integer of {struct.unpack_from('<I', data, at)[0]} bytes in a form for more than 255")


def _take(data: bytes, at: int, size: int) -> bytes:
    """Return the next bytes, all of them."""
    part = data[at : at + size]
    if len(part) != size:
        raise IndexError("cut short")
    return part


_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)")
_REAL = re.compile(r"-?([0-9]{1,40}(\.[0-9]{0,40})?(e[+-]?[0-9]{1,5})?|inf|nan)")
"""Numbers as writers spell them. Unpicklers accept other forms and disagree about them: 010 is 8 for some."""


def _int_text(state: PickleState, data: bytes, at: int) -> int:
    text, end = read_line(data, at)
    if text in ("00", "01"):
        raise Refused("a truth value where a number should be")
    return _push_text(state, text, _WHOLE, end)


def _long_text(state: PickleState, data: bytes, at: int) -> int:
    text, end = read_line(data, at)
    return _push_text(state, text.removesuffix("L"), _WHOLE, end)


def _float_text(state: PickleState, data: bytes, at: int) -> int:
    text, end = read_line(data, at)
    return _push_text(state, text, _REAL, end)


def _push_text(state: PickleState, text: str, form: re.Pattern[str], end: int) -> int:
    if not form.fullmatch(text):
        raise Refused(f"{shown(text)} where a number should be")
    state.stack.append(int(text) if form is _WHOLE else float(text))
    return end


def _text1(state: PickleState, data: bytes, at: int) -> int:
    state.stack.append(_take(data, at + 1, data[at]).decode("ascii"))
    return at + 1 + data[at]


def _text4(state: PickleState, data: bytes, at: int) -> int:
    size = struct.unpack_from("<I", data, at)[0]
    if size > MAX_NUMBER:
        raise Refused(f"a text of {size} bytes")
    state.stack.append(_take(data, at + 4, size).decode("ascii"))
    return int(at + 4 + size)


def _bytes1(state: PickleState, data: bytes, at: int) -> int:
    state.stack.append(_take(data, at + 1, data[at]))
    return at + 1 + data[at]


def _constant(value: Any) -> Step:
    def step(state: PickleState, data: bytes, at: int) -> int:
        state.stack.append(value)
        return at

    return step


LITERALS: dict[int, Step] = {
    0x49: _int_text, 0x4C: _long_text, 0x46: _float_text,
    0x4B: _number("B"), 0x4D: _number("<H"), 0x4A: _number("<i"), 0x47: _number(">d"), 0x8A: _long1, 0x8B: _long4,
    0x58: _text4, 0x8C: _text1, 0x43: _bytes1,
    0x4E: _constant(None), 0x88: _constant(True), 0x89: _constant(False), 0x29: _constant(()),
}  # fmt: skip
