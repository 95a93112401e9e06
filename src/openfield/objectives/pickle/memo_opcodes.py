"""The opcodes that put what is on the stack into a pickle's memo, and those that take it from there.

Under `opcodes`, whose tables have them.
"""

from __future__ import annotations

import struct

from openfield.objectives.pickle.literals import read_line
from openfield.objectives.pickle.scalars import ALLOWED, DType, Name, Refused, shown
from openfield.objectives.pickle.state import MARK, State

MEMO_DIGITS = 10
"""Of a memo number in text; the binary ones have 32 bits."""


def put1(state: State, data: bytes, at: int) -> int:
    """Put what is on top under a number of one byte."""
    _remember(state, data[at])
    return at + 1


def put4(state: State, data: bytes, at: int) -> int:
    """Put it under a number of four bytes."""
    _remember(state, struct.unpack_from("<I", data, at)[0])
    return at + 4


def put_text(state: State, data: bytes, at: int) -> int:
    """Put it under a number in digits."""
    key, end = _memo_number(data, at)
    _remember(state, key)
    return end


def put_next(state: State, data: bytes, at: int) -> int:
    """Put it under the next number."""
    _remember(state, state.scalars.puts)
    return at


def _memo_number(data: bytes, at: int) -> tuple[int, int]:
    text, end = read_line(data, at)
    if not text.isdecimal() or len(text) > MEMO_DIGITS:
        raise Refused(f"memo entry {shown(text)}")
    return int(text), end


def _remember(state: State, key: int) -> None:
    """Keys of the table are never asked for again, and a million of them would cost 200 MB: tuples are not kept."""
    value, scalars = state.stack[-1], state.scalars
    if key <= scalars.top:
        raise Refused(f"it puts memo entry {key} after entry {scalars.top}; writers count upwards")
    if value is MARK or value is state.last_put:
        raise Refused("a memo of nothing, or of one object twice")
    scalars.puts, scalars.top = scalars.puts + 1, key
    kind = type(value)
    if kind is int or kind is float:
        if not state.unsaved:
            raise Refused("a memo of a plain number; writers keep NumPy's only, and each once")
        state.last_put, state.unsaved = None, False
        scalars.add(key, value)
        return
    state.last_put = value
    if kind is tuple:
        return
    if kind is bytes and len(value) == 1:
        scalars.add(key, value)
        return
    state.memo[key] = value
    if kind is Name and ALLOWED[value] == "scalar":
        scalars.learn_function(key)
    elif kind is DType:
        value.key = key
        if value.order:
            scalars.learn(value)


def get1(state: State, data: bytes, at: int) -> int:
    """Take what is under a number of one byte."""
    _recall(state, data[at])
    return at + 1


def get4(state: State, data: bytes, at: int) -> int:
    """Take what is under a number of four bytes."""
    _recall(state, struct.unpack_from("<I", data, at)[0])
    return at + 4


def get_text(state: State, data: bytes, at: int) -> int:
    """Take what is under a number in digits."""
    key, end = _memo_number(data, at)
    _recall(state, key)
    return end


def _recall(state: State, key: int) -> None:
    value = state.memo.get(key)
    if value is None:
        value = state.scalars.find(key)
    if value is None:
        raise Refused(f"it refers to memo entry {key}, which holds nothing a table needs")
    state.stack.append(value)
